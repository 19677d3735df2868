"""Pages that are expensive to read, and the crawl options that they attack.

    for attack in ATTACKS:
        site.put(f"https://{attack.name}.example/", attack.body())

Unless noted, each body has the maximum size. `small` ones are below 64 KB, where the parser may
build a tree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.http_exchange import Response
from orbweaver.model.item_rules import Field, ItemRule, ValueSource

BYTES_MAX = 5 * 1024 * 1024
TITLE = Field(name="name", source=ValueSource.JSONLD, where="name")
JSON_LD = ItemRule(
    name="products", match="/", source=ValueSource.JSONLD, of="Product", fields=(TITLE,)
)
NESTED = ItemRule(
    name="boxes",
    match="/",
    each="div",
    fields=tuple(Field(name=f"f{place}", where="div div", many=True) for place in range(10)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """A page, and the crawl options that it attacks."""

    name: str
    body: Callable[[], bytes]
    kind: str = "text/html; charset=utf-8"
    crawl: dict[str, Any] = field(default_factory=dict)

    @property
    def answer(self) -> Response:
        return Response(status=200, headers={"content-type": self.kind}, body=self.body())


def repeated(piece: bytes, size: int = BYTES_MAX) -> bytes:
    return piece * (size // len(piece))


def numbered(piece: str, number: int, size: int = BYTES_MAX) -> bytes:
    return "".join(piece.format(place) for place in range(number)).encode()[:size]


def _random_links() -> bytes:
    random = Random(14)
    paths = ("".join(random.choices("ab", k=1_980)) for _ in range(2_436))
    return "".join(f"<a href=/{path}>x</a>" for path in paths).encode()


def _noise() -> bytes:
    random = Random(15)
    return bytes(random.choices(range(128, 256), k=BYTES_MAX))


def _references() -> bytes:
    shared = '{"@id":"#a","@type":"Product","name":"' + "x" * 600 + '"}'
    refs = ",".join(
        '{"@type":"Product","name":"n","isRelatedTo":{"@id":"#a"}}' for _ in range(2_000)
    )
    return f'<script type="application/ld+json">[{shared},{refs}]</script>'.encode()


def _one_tag(number: int) -> bytes:
    return b"<p " + b" ".join(b"a%x" % place for place in range(number)) + b">x"


def _table() -> bytes:
    return b"<main><table>" + repeated(b"<tr><td colspan=999>x", 4_000) + b"</table></main>"


_TEXTS: dict[str, Any] = {"texts": True}
_LINKS: dict[str, Any] = {"links": True}
_REDACTED: dict[str, Any] = {"redacted": ("email", "phone")}

ATTACKS = (
    Attack(name="dots", body=lambda: b'<a href="' + b"../" * 1_700_000 + b'x">'),
    Attack(name="dots-of-base", body=lambda: b'<base href="' + b"../" * 1_700_000 + b'">'
           b"<a href=y>"),
    Attack(name="dots-small", body=lambda: b'<a href="' + b"../" * 20_000 + b'x">'),
    Attack(name="random-links", body=_random_links),
    Attack(name="short-links", body=lambda: numbered("<a href={}>", 500_000)),
    Attack(name="fragments", body=lambda: numbered("<a href=#{}>", 500_000)),
    Attack(name="long-query", body=lambda: b"<a href=?" + b"a&" * 2_000_000 + b">"),
    Attack(name="tracked-query", body=lambda: b"<a href=?" + b"utm_source=1&" * 300_000 + b">"),
    Attack(name="formats-open", body=lambda: numbered("<p><font x={}>", 300_000)),
    Attack(name="formats-open-small", body=lambda: numbered("<p><font x={}>", 1_000)),
    Attack(name="formats-kept", body=lambda: numbered("<b x={}>", 490) + b"<p>y" * 490),
    Attack(name="formats-as-links", body=lambda: numbered("<p><font href={}>", 1_000)),
    Attack(name="formats-long", body=lambda: numbered("<p><i x={:0>700}>", 85)),
    Attack(name="attributes", body=lambda: _one_tag(600_000)),
    Attack(name="attributes-small", body=lambda: _one_tag(12_000)[:65_000] + b">"),
    Attack(name="attributes-quoted", body=lambda: numbered(' a{}=">"', 7_000).join((b"<p", b">"))),
    Attack(name="bodies-merged", body=lambda: numbered("<body " + " ".join(
        f"b{{0}}x{place}" for place in range(80)) + ">", 90)),
    Attack(name="nested", body=lambda: repeated(b"<div>")),
    Attack(name="nested-small", body=lambda: b"<div>" * 2_000),
    Attack(name="tables", body=lambda: repeated(b"<table><td>")),
    Attack(name="templates", body=lambda: repeated(b"<template>")),
    Attack(name="svg", body=lambda: repeated(b"<svg><desc><math>")),
    Attack(name="less-than", body=lambda: repeated(b"<")),
    Attack(name="comments", body=lambda: repeated(b"<!--x")),
    Attack(name="entities", body=lambda: b"<title>404 not found</title>" + repeated(b"&amp;")),
    Attack(name="not-found", body=lambda: b"<title>404 not found</title>" + repeated(b"<p>ab ")),
    Attack(name="not-found-light", body=lambda: b"<title>404 not found</title>"
           + repeated(b"<p>it is not here ", 280_000)),
    Attack(name="titles", body=lambda: repeated(b"<title>a</title>")),
    Attack(name="wishes", body=lambda: numbered('<meta name=robots content="a{} b">', 150_000)),
    Attack(name="noise", body=_noise, kind="text/html"),
    Attack(name="utf-16", body=lambda: ("\ufeff" + "<p>h\u00e4l" * 500_000).encode("utf-16-le")),
    Attack(name="json-ld-escapes", body=lambda: b'<script type="application/ld+json">{"name":"'
           + b"\\\\u0041" * 20_000, crawl={"items": (JSON_LD,)}),
    Attack(name="json-ld-references", body=_references, crawl={"items": (JSON_LD,)}),
    Attack(name="items-nested", body=lambda: b"<div>x" * 240 + b"<p>" * 1_000,
           crawl={"items": (NESTED,)}),
    Attack(name="items-many", body=lambda: b"<div><div>x</div></div>" * 30_000,
           crawl={"items": (NESTED,)}),
    Attack(name="items-orderly", body=lambda: b"<p>" + numbered("<i a={}>", 10)
           + b"<div title=" + b"x" * 40_000 + b">x</div>" + b"<div>x</div>" * 950 + b"</i>" * 10,
           crawl={"items": (NESTED,)}),
    Attack(name="texts-large", body=lambda: repeated(b"<p>hello <b>you</b> "), crawl=_TEXTS),
    Attack(name="texts-formats", body=lambda: numbered("<p><font x={}>y", 500), crawl=_TEXTS),
    Attack(name="texts-formats-large", body=lambda: numbered("<p><font x={}>y", 1_000),
           crawl=_TEXTS),
    Attack(name="texts-attributes", body=lambda: _one_tag(6_000)[:27_000] + b">y", crawl=_TEXTS),
    Attack(name="texts-table", body=_table, crawl=_TEXTS),
    Attack(name="texts-lists", body=lambda: repeated(b"<ul><li>x", 60_000), crawl=_TEXTS),
    Attack(name="texts-quotes", body=lambda: b"<blockquote>" * 20 + b"<p>x</p>" * 7_000,
           crawl=_TEXTS),
    Attack(name="rows-images", body=lambda: numbered("<img src={}>", 100_000), crawl=_LINKS),
    Attack(name="rows-open-link", body=lambda: b"<a href=x>" + repeated(b"<img src=y>text "),
           crawl=_LINKS),
    Attack(name="phones", body=lambda: repeated(b"tel:+"), crawl=_REDACTED),
    Attack(name="digits", body=lambda: repeated(b"+49 30 123456 "), crawl=_REDACTED),
    Attack(name="addresses", body=lambda: repeated(b"a@b.cc "), crawl=_REDACTED),
    Attack(name="ats", body=lambda: repeated(b"a@"), crawl=_REDACTED),
    Attack(name="no-page", body=lambda: repeated(b"tel:+49 30 123456 "), kind="text/plain",
           crawl={"bodies": Bodies.ALL, **_REDACTED}),
)  # fmt: skip
# One attack of each sort, for tests that cannot try all.
CHOSEN = (
    *("dots", "random-links", "short-links", "formats-open", "formats-as-links"),
    *("attributes-small", "bodies-merged", "templates", "not-found", "noise", "wishes"),
    *("json-ld-references", "items-nested", "texts-table", "digits", "no-page"),
)
BY_NAME = {attack.name: attack for attack in ATTACKS}
