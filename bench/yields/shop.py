"""A shop with facets: 600 products in 24 categories, with more URLs than any crawl can request.

- It is as hostile as real shops: listings filtered by any set of facets, with several sort orders
  and layouts, products with tracking parameters, print views, a comparison list that grows with
  each link, buttons that are links, an endless calendar, session ids in URLs.
- It marks duplicates like real shops: sorted or filtered listings and decorated products have a
  canonical URL, listings with two filters are marked noindex, and robots.txt excludes the cart.
- A product is found by its page.
"""

from __future__ import annotations

from functools import cache
from html import escape
from random import Random
from typing import TYPE_CHECKING

from bench.yields import texts
from bench.yields.application import Application
from bench.yields.judging import Truth, query_of
from bench.yields.own import Page, Visit, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bench.yields.place import Place

PRODUCTS, TOPS, SUBS, A_PAGE = 600, 6, 4, 10
FACETS = {
    "brand": [texts.title(30_000 + number).split()[0] for number in range(12)],
    "colour": ["red", "blue", "green", "black", "white", "grey", "yellow", "brown"],
    "size": ["xs", "s", "m", "l", "xl"],
    "price": ["0-20", "20-50", "50-100", "100-500"],
}
SORTS = ("price_asc", "price_desc", "name", "newest")
# Parameters that change a listing's appearance without filtering it.
LAYOUTS = {"sort": SORTS, "view": ("grid", "list"), "per_page": ("10", "20", "40")}
MENU = ("/", "/search", "/sale", "/events", "/cart", "/login")
ROBOTS = "User-agent: *\nDisallow: /cart\nDisallow: /checkout\n"
MONTHS = 12 * 9_999
NOT_FOUND = Page("Not found", "There is no such page.", status=404)


@cache
def catalogue() -> tuple[dict[str, str], ...]:
    """Return all products, always the same."""
    random = Random("catalogue")
    return tuple(
        {
            "id": str(number),
            "name": texts.title(100 + number),
            "path": f"/p/{texts.title(100 + number).lower().replace(' ', '-')}-{number}",
            "category": f"/c/{number % TOPS}/{number // TOPS % SUBS}",
            **{facet: random.choice(values) for facet, values in FACETS.items()},
        }
        for number in range(PRODUCTS)
    )


def prepare(place: Place) -> Truth:
    return Truth(articles=frozenset(product["path"] for product in catalogue()))


def keys_of(target: str) -> Iterable[str]:
    """Return the path of a product's page, with any parameters."""
    return (query_of(target)[0],)


def page(visit: Visit) -> Page:
    top, *rest = visit.path.strip("/").split("/")
    views: dict[str, Callable[[Visit, list[str]], Page]] = {
        "": _home,
        "c": _listing,
        "sale": _listing,
        "search": _listing,
        "p": _product,
        "events": _events,
        "compare": _compare,
        "cart": _cart,
        "wishlist": lambda visit, _: Page(location=visit.href("/login", returnto=visit.path)),
        "login": lambda *_: Page("Log in", "<form method=post><input name=user></form>"),
    }
    return views.get(top, _absent)(visit, rest)


def _absent(_visit: Visit, _rest: list[str]) -> Page:
    return NOT_FOUND


def _home(visit: Visit, _rest: list[str]) -> Page:
    return Page("The shop", _categories(visit) + _products(visit, catalogue()[:6]))


def _cart(visit: Visit, rest: list[str]) -> Page:
    return Page(location=visit.href("/cart")) if rest else Page("Your cart", "It is empty.")


def _categories(visit: Visit) -> str:
    links = (
        f"<li>{visit.link(f'Department {top}', f'/c/{top}')}: "
        + ", ".join(
            visit.link(texts.title(top * 90 + sub), f"/c/{top}/{sub}") for sub in range(SUBS)
        )
        for top in range(TOPS)
    )
    return f"<ul>{''.join(links)}</ul>"


def _listing(visit: Visit, rest: list[str]) -> Page:
    query = visit.query
    found = [product for product in catalogue() if _matches(visit, rest, product)]
    if not found and not query:
        return NOT_FOUND
    if (sort := query.get("sort")) in SORTS:
        keys = {"price_asc": "price", "price_desc": "price", "name": "name", "newest": "id"}
        found.sort(key=lambda product: product[keys[sort]], reverse=sort != "price_asc")
    size = visit.number("per_page", A_PAGE, 40) or A_PAGE
    pages = max(1, -(-len(found) // size))
    at = max(1, visit.number("page", 1, pages))
    shown = found[(at - 1) * size : at * size]

    def to(**change: object) -> str:
        return visit.href(visit.path, **{**query, "page": None, **change})

    links = [(f"page {number}", to(page=number)) for number in range(1, pages + 1) if number != at]
    for name, values in {**FACETS, **LAYOUTS}.items():
        links += [(f"{name}: {value}", to(**{name: value})) for value in values]
        links += [(f"any {name}", to(**{name: None}))] if name in query else []
    text = "".join(f'<li><a href="{escape(url)}">{escape(label)}</a>' for label, url in links)
    filters = FACETS.keys() & query.keys()
    head = f'<link rel="canonical" href="{visit.path}">' if query.keys() - {"page"} else ""
    head += '<meta name="robots" content="noindex, follow">' * (len(filters) > 1)
    name = f"{' '.join(rest) or visit.path.strip('/')}: {len(found)} products"
    body = f"{_products(visit, shown)}<ul>{text}</ul>"
    return Page(f"Products of {name}", body, head=head)


def _matches(visit: Visit, rest: list[str], product: dict[str, str]) -> bool:
    if any(product[name] != visit.query[name] for name in FACETS.keys() & visit.query.keys()):
        return False
    if visit.path == "/sale":
        return int(product["id"]) % 9 == 0
    if visit.path == "/search":
        return visit.query.get("q", "").lower() in product["name"].lower()
    return product["category"].startswith("/".join(["/c", *rest]))


def _products(visit: Visit, products: Iterable[dict[str, str]]) -> str:
    """Return products of a listing: a link with its position, buttons, a picture."""
    ref = visit.path.strip("/") or "home"
    lines = (
        f"<li>{visit.link(one['name'], one['path'], ref=ref, pos=at)} {one['colour']}"
        f" {visit.link('add to cart', '/cart/add/' + one['id'])}"
        f" {visit.link('wish', '/wishlist/add/' + one['id'])}"
        f" {visit.link('compare', '/compare', ids=one['id'])}"
        for at, one in enumerate(products)
    )
    return f"<ol>{''.join(lines)}</ol>"


def _product(visit: Visit, rest: list[str]) -> Page:
    number = rest[0].rpartition("-")[2] if rest else ""
    found = [product for product in catalogue() if product["id"] == number]
    if not found or found[0]["path"] != f"/p/{rest[0]}":
        return NOT_FOUND
    product = found[0]
    random = Random(f"product {number}")
    if len(rest) > 1:
        return _beside_product(visit, product, rest[1], random)
    path = product["path"]
    variants = (visit.link(colour, path, colour=colour) for colour in FACETS["colour"])
    links = [visit.link("print", path, print=1), visit.link("reviews", f"{path}/reviews")]
    links += [visit.link("tell a friend", f"{path}/tell"), *variants]
    links.append(visit.link("all of this category", product["category"]))
    links.append(visit.link(product["brand"], "/search", brand=product["brand"]))
    near = [catalogue()[random.randrange(PRODUCTS)] for _ in range(4)]
    head = f'<link rel="canonical" href="{path}">'
    body = f"<p>{texts.paragraph(random)}</p><p>{texts.paragraph(random)}</p>"
    return Page(product["name"], f"{body}{' '.join(links)}{_products(visit, near)}", head=head)


def _beside_product(visit: Visit, product: dict[str, str], view: str, random: Random) -> Page:
    if view == "tell":
        return Page("Tell a friend", "<form method=post><input name=mail></form>")
    if view != "reviews":
        return NOT_FOUND
    sorts = (visit.link(by, visit.path, sort=by) for by in ("helpful", "newest", "stars"))
    text = "".join(f"<p>{texts.sentence(random)}</p>" for _ in range(4))
    links = f"{' '.join(sorts)} {visit.link(product['name'], product['path'])}"
    return Page(f"Reviews of {product['name']}", text + links)


def _events(visit: Visit, _rest: list[str]) -> Page:
    """Show a month of an endless calendar."""
    month = visit.number("month", 2_020 * 12, MONTHS)
    day = visit.number("day", 0, 31)
    links = [visit.link("before", "/events", month=max(0, month - 1))]
    links += [visit.link("after", "/events", month=month + 1)]
    links += [
        visit.link(str(number), "/events", month=month, day=number) for number in range(1, 29)
    ]
    title = f"Events of {month // 12}-{month % 12 + 1:02}" + f"-{day:02}" * bool(day)
    return Page(title, f"Nothing is planned. {' '.join(links)}")


def _compare(visit: Visit, _rest: list[str]) -> Page:
    """Compare products. Each link on the page adds one more."""
    asked = [number for number in visit.query.get("ids", "").split(",") if number.isdigit()][:50]
    chosen = [product for product in catalogue() if product["id"] in asked]
    random = Random(",".join(asked))
    more = (str(random.randrange(PRODUCTS)) for _ in range(5))
    links = (visit.link("and this one", "/compare", ids=",".join([*asked, one])) for one in more)
    return Page("Compare products", f"{_products(visit, chosen)}{' '.join(links)}")


APPLICATION = Application(
    name="shop",
    title="Shop with facets",
    prepare=prepare,
    serve=serving("shop"),
    keys_of=keys_of,
)
