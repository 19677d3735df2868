"""Oscar, a shop from PyPI: products in a tree of categories, with facets, variants and reviews.

Its set-up follows its manual ("Building your own shop"), with the search engine of its sandbox. An
article is a product that the shop lists, so variants do not count separately. The page with all
reviews of a product is an article too, if the product's page shows only the first three.
"""

from __future__ import annotations

import re
from random import Random
from typing import TYPE_CHECKING, Any

from bench.yields import on_django, texts
from bench.yields.application import Application, installed
from bench.yields.judging import Truth, query_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bench.yields.application import Place

OSCAR = (
    "django-oscar[sorl-thumbnail]==4.2.1",
    "django==5.2.19",
    "whoosh-reloaded==2.7.5",
)
TOPS, PRODUCTS, RECOMMENDED, RANGES, DAYS = 6, 400, 5, 4, 730
KINDS = ("Book", "Tool", "Garment", "Instrument", "Toy")
PARTNERS = ("North store", "South store", "Importer")
SIZES = ("small", "medium", "large")
SETTINGS = """
from oscar.defaults import *
INSTALLED_APPS += [
    "django.contrib.sites",
    "django.contrib.flatpages",
    "oscar.config.Shop",
    "oscar.apps.analytics.apps.AnalyticsConfig",
    "oscar.apps.checkout.apps.CheckoutConfig",
    "oscar.apps.address.apps.AddressConfig",
    "oscar.apps.shipping.apps.ShippingConfig",
    "oscar.apps.catalogue.apps.CatalogueConfig",
    "oscar.apps.catalogue.reviews.apps.CatalogueReviewsConfig",
    "oscar.apps.communication.apps.CommunicationConfig",
    "oscar.apps.partner.apps.PartnerConfig",
    "oscar.apps.basket.apps.BasketConfig",
    "oscar.apps.payment.apps.PaymentConfig",
    "oscar.apps.offer.apps.OfferConfig",
    "oscar.apps.order.apps.OrderConfig",
    "oscar.apps.customer.apps.CustomerConfig",
    "oscar.apps.search.apps.SearchConfig",
    "oscar.apps.voucher.apps.VoucherConfig",
    "oscar.apps.wishlists.apps.WishlistsConfig",
    "oscar.apps.dashboard.apps.DashboardConfig",
    "oscar.apps.dashboard.reports.apps.ReportsDashboardConfig",
    "oscar.apps.dashboard.users.apps.UsersDashboardConfig",
    "oscar.apps.dashboard.orders.apps.OrdersDashboardConfig",
    "oscar.apps.dashboard.catalogue.apps.CatalogueDashboardConfig",
    "oscar.apps.dashboard.offers.apps.OffersDashboardConfig",
    "oscar.apps.dashboard.partners.apps.PartnersDashboardConfig",
    "oscar.apps.dashboard.pages.apps.PagesDashboardConfig",
    "oscar.apps.dashboard.ranges.apps.RangesDashboardConfig",
    "oscar.apps.dashboard.reviews.apps.ReviewsDashboardConfig",
    "oscar.apps.dashboard.vouchers.apps.VouchersDashboardConfig",
    "oscar.apps.dashboard.communications.apps.CommunicationsDashboardConfig",
    "oscar.apps.dashboard.shipping.apps.ShippingDashboardConfig",
    "widget_tweaks",
    "haystack",
    "treebeard",
    "sorl.thumbnail",
    "django_tables2",
]
MIDDLEWARE += [
    "oscar.apps.basket.middleware.BasketMiddleware",
    "django.contrib.flatpages.middleware.FlatpageFallbackMiddleware",
]
CONTEXT += [
    "oscar.apps.search.context_processors.search_form",
    "oscar.apps.checkout.context_processors.checkout",
    "oscar.apps.communication.notifications.context_processors.notifications",
    "oscar.core.context_processors.metadata",
]
AUTHENTICATION_BACKENDS = [
    "oscar.apps.customer.auth_backends.EmailBackend",
    "django.contrib.auth.backends.ModelBackend",
]
DATABASES["default"]["ATOMIC_REQUESTS"] = True
HAYSTACK_CONNECTIONS = {
    "default": {
        "ENGINE": "haystack.backends.whoosh_backend.WhooshEngine",
        "PATH": str(BASE_DIR / "whoosh_index"),
        "INCLUDE_SPELLING": True,
    },
}
"""
URLS = """
from django.apps import apps
from django.conf import settings
from django.contrib import admin
from django.urls import include, path
from django.views.static import serve
urlpatterns = [
    path("i18n/", include("django.conf.urls.i18n")),
    path("admin/", admin.site.urls),
    path("media/<path:path>", serve, {"document_root": settings.MEDIA_ROOT}),
    path("", include(apps.get_app_config("oscar").urls[0])),
]
"""
# Fills the shop with Oscar's own models, and indexes it once at the end.
FILL = """
import io, json, sys
from datetime import timedelta
import django
from django.conf import settings
settings.HAYSTACK_SIGNAL_PROCESSOR = "haystack.signals.BaseSignalProcessor"
django.setup()
from django.core.files.base import ContentFile
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone
from oscar.apps.catalogue.categories import create_from_breadcrumbs
from oscar.core.loading import get_model
from PIL import Image, ImageDraw
Kind, Field, Product, Picture, Recommendation = (
    get_model("catalogue", name) for name in (
        "ProductClass", "ProductAttribute", "Product", "ProductImage", "ProductRecommendation"))
Partner, Stock = get_model("partner", "Partner"), get_model("partner", "StockRecord")
Review, Range = get_model("reviews", "ProductReview"), get_model("offer", "Range")
Condition, Benefit, Offer = (
    get_model("offer", name) for name in ("Condition", "Benefit", "ConditionalOffer"))
asked, now = json.load(sys.stdin), timezone.now()
def picture(product, colour, at):
    image = Image.new("RGB", (480, 400), f"hsl({colour}, 60%, 80%)")
    ImageDraw.Draw(image).ellipse((60 + 40 * at, 60, 400, 340), fill=f"hsl({colour}, 70%, 40%)")
    data = io.BytesIO()
    image.save(data, "PNG")
    file = ContentFile(data.getvalue(), name=f"{product.pk}-{at}.png")
    Picture.objects.create(product=product, original=file, display_order=at)
def stock(product, one, price):
    Stock.objects.create(
        product=product, partner=partners[one["partner"]], partner_sku=product.upc,
        price=price, num_in_stock=one["stock"])
with transaction.atomic():
    kinds = {}
    for name in asked["kinds"]:
        kinds[name] = Kind.objects.create(name=name)
        for code in ("maker", "material"):
            Field.objects.create(
                product_class=kinds[name], name=code.capitalize(), code=code, type="text")
    partners = {name: Partner.objects.create(name=name) for name in asked["partners"]}
    categories = [create_from_breadcrumbs(path) for path in asked["categories"]]
    for category, text in zip(categories, asked["category_texts"]):
        type(category).objects.filter(pk=category.pk).update(description=text)
    made = []
    for one in asked["products"]:
        structure = "parent" if one["sizes"] else "standalone"
        product = Product(
            structure=structure, product_class=kinds[one["kind"]], title=one["title"],
            description=one["text"], upc=one["upc"])
        product.attr.maker, product.attr.material = one["maker"], one["material"]
        product.save()
        product.categories.set(categories[at] for at in one["categories"])
        for at in range(one["pictures"]):
            picture(product, one["colour"], at)
        if not one["sizes"]:
            stock(product, one, one["price"])
        for at, size in enumerate(one["sizes"]):
            child = Product.objects.create(
                structure="child", parent=product, title=f"{one['title']}, {size}",
                upc=f"{one['upc']}-{at}")
            stock(child, one, one["price"] + at)
        Product.objects.filter(pk=product.pk).update(
            date_created=now - timedelta(hours=one["hours"]))
        for said in one["reviews"]:
            review = Review.objects.create(
                product=product, score=said["score"], title=said["title"], body=said["text"],
                name=said["by"], email="customer@example.org")
            Review.objects.filter(pk=review.pk).update(
                date_created=now - timedelta(hours=said["hours"]))
        made.append(product)
    for product, one in zip(made, asked["products"]):
        for rank, at in enumerate(one["recommended"]):
            Recommendation.objects.create(
                primary=product, recommendation=made[at], ranking=rank)
    for one in asked["ranges"]:
        goods = Range.objects.create(name=one["name"], description=one["text"], is_public=True)
        for at in one["products"]:
            goods.add_product(made[at])
        Offer.objects.create(
            name=f"A fifth off {one['name']}", description=one["text"], offer_type="Site",
            condition=Condition.objects.create(range=goods, type="Count", value=3),
            benefit=Benefit.objects.create(range=goods, type="Percentage", value=20))
call_command("rebuild_index", interactive=False, verbosity=0)
listed = Product.objects.browsable()
keys = [f"product {product.pk}" for product in listed]
keys += [f"reviews {product.pk}" for product in listed if product.num_approved_reviews > 3]
print(json.dumps(keys))
"""
SHOWN = re.compile(r"/catalogue/[\w-]*_([0-9]+)/(reviews/)?")


def prepare(place: Place) -> Truth:
    on_django.begin(place, _python(), SETTINGS, URLS)
    return Truth(articles=frozenset(on_django.filled(place, _python(), FILL, _content())))


def serve(place: Place, port: int) -> None:
    on_django.serve(place, port, _python())


def keys_of(target: str) -> Iterable[str]:
    """Return the key of the product, or of the page with a product's reviews."""
    path, _ = query_of(target)
    found = SHOWN.fullmatch(path)
    if found is None:
        return ()
    return (f"reviews {found[1]}" if found[2] else f"product {found[1]}",)


def _python() -> Path:
    return installed(OSCAR, "oscar")


def _content() -> dict[str, Any]:
    random = Random("oscar")
    categories = _categories()
    return {
        "kinds": KINDS,
        "partners": PARTNERS,
        "categories": [" > ".join(path) for path in categories],
        "category_texts": [texts.paragraph(random) for _ in categories],
        "products": [_product(number, random, len(categories)) for number in range(PRODUCTS)],
        "ranges": [
            {
                "name": texts.title(90 + number),
                "text": texts.paragraph(random),
                "products": random.sample(range(PRODUCTS), 45),
            }
            for number in range(RANGES)
        ],
    }


def _categories() -> list[tuple[str, ...]]:
    """Return 30 paths: top categories with one to three below each, and some below those."""
    found: list[tuple[str, ...]] = []
    names = (texts.title(60 + number) for number in range(PRODUCTS))
    for top in range(TOPS):
        found.append(first := (next(names),))
        for below in range(1 + (top + 1) % 3):
            found.append(second := (*first, next(names)))
            found += [(*second, next(names)) for _ in range((top + below) % 3)]
    return found


def _product(number: int, random: Random, categories: int) -> dict[str, Any]:
    hours = random.randrange(24 * DAYS)
    return {
        "title": texts.title(number + 4_000 * (number >= len(texts.OTHER_SCRIPTS))),
        "upc": f"{9_780_000 + number}",
        "kind": random.choice(KINDS),
        "text": "".join(f"<p>{texts.paragraph(random)}</p>" for _ in range(random.randint(1, 4))),
        "maker": texts.title(100 + random.randrange(30)),
        "material": texts.title(140 + random.randrange(12)).split()[0],
        "categories": random.sample(range(categories), random.choice((1, 1, 1, 2))),
        "pictures": random.choice((1, 1, 2)),
        "colour": random.randrange(360),
        "price": random.randint(3, 90),
        "partner": random.choice(PARTNERS),
        "stock": random.choice((0, 3, 20, 100)),
        "sizes": SIZES if number % 16 == 9 else (),
        "hours": hours,
        "reviews": [_review(random, hours) for _ in range(int(9 * random.random() ** 2))],
        "recommended": random.sample(range(PRODUCTS), random.choice((0, RECOMMENDED))),
    }


def _review(random: Random, hours: int) -> dict[str, Any]:
    return {
        "score": random.choice((1, 2, 3, 4, 4, 5, 5)),
        "title": texts.sentence(random)[:60].rstrip("."),
        "text": texts.paragraph(random),
        "by": texts.title(300 + random.randrange(80)),
        "hours": random.randrange(hours + 1),
    }


APPLICATION = Application(
    name="oscar",
    title="Oscar",
    prepare=prepare,
    serve=serve,
    keys_of=keys_of,
)
