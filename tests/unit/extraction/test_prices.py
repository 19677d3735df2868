"""Prices in pages that are ambiguous are invalid."""

from __future__ import annotations

import pytest

import orbweaver

URL = "https://example.com/"


def price_in(html: str, **where: str) -> object:
    field = {"css": "p", "type": "price"} if not where else {**where, "type": "price"}
    rules = [{"name": "things", "match": ".", "fields": {"price": field}}]
    (item,) = orbweaver.extract(rules, html.encode(), URL, "text/html; charset=utf-8")
    return item.fields["price"]


@pytest.mark.parametrize(
    ("html", "price"),
    [
        ("$19<sup>99</sup>", "19.99"),
        ("$1,299 <b>x</b>", "1299"),
        ("$1,299<SUP class=c> 99 </SUP>", "1299.99"),
        ("<b>$19</b>.<b>99</b>", "19.99"),
        ("19.99<sup>*</sup>", "19.99"),
        ("$19<span>99</span>", None),
        ("$19.99<sup>12</sup>", None),
        ("19<sup>1</sup> €", None),
        ("10万円", None),
        ("1.5億円", None),
        ("$5k", None),
        ("$5 M", None),
        ("$3 million", None),
        ("₹ 5 lakh", None),
        ("2 Mio. €", None),
        ("$1.2bn", None),
        ("£10 mug", "10"),
        ("1 299 kr", "1299"),
    ],
)
def test_price_with_ambiguous_digits_is_invalid(html: str, price: str | None) -> None:
    assert price_in(f"<p>{html}</p>") == price


@pytest.mark.parametrize(
    ("said", "price"),
    [('"1.659"', "1.659"), ("1.659", "1.659"), ('"1,659"', "1659"), ('"1.5"', "1.5")],
)
def test_point_in_json_ld_price_is_decimal(said: str, price: str) -> None:
    data = f'{{"@type": "Product", "offers": {{"price": {said}}}}}'
    html = f'<script type="application/ld+json">{data}</script>'
    assert price_in(html, jsonld="Product:offers.price") == price
