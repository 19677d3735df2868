"""Fuzzed functions and their limits.

A target takes bytes, raises only declared exceptions, and takes time and memory in proportion to
the bytes. `fragments` are repeated to check that.
"""

from __future__ import annotations

import gzip
import json
import time
import tomllib
from base64 import urlsafe_b64encode
from collections.abc import Callable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass

from orbweaver.adapters.web.headers import response_headers
from orbweaver.api import requests
from orbweaver.control import definition
from orbweaver.control.definition_keys import ITEMS
from orbweaver.extraction import css, json_ld
from orbweaver.extraction.extract import extract
from orbweaver.frontier import envelope, messages, warc
from orbweaver.model.url import canonicalize
from orbweaver.parsing import charset, pii_redaction, sitemap
from orbweaver.parsing.html_scan import is_small
from orbweaver.parsing.links import refresh_of
from orbweaver.parsing.main_text import main_text
from orbweaver.parsing.media_type import parse as parse_type
from orbweaver.parsing.page import parse as parse_page
from orbweaver.parsing.sniffing import kind_of
from orbweaver.politeness import robots_txt

URL = "https://example.com/a/b?c=d"
LISTING = ("pages", "shop")
# Fixed part of the CPU time of an input, plus a share by bytes. Both are ample, because a machine
# may be busy, and a fuzzer counts every branch.
BASE_S, PER_KB_S = 0.5, 0.02
KB = 1024


class BrokenPromise(AssertionError):
    """A target returned a forbidden result."""


class Slow(AssertionError):
    """A target took too much time."""


@dataclass(frozen=True, slots=True)
class Target:
    """A function and its limits.

    Inputs have at most `bytes_max`; `start` is before repeated fragments.
    """

    name: str
    run: Callable[[bytes], object]
    bytes_max: int
    fragments: tuple[bytes, ...]
    _: KW_ONLY
    raises: tuple[type[Exception], ...] = ()
    start: bytes = b""
    # True if it parses pages into trees. In a crawl, only the child process reads large ones.
    parses_tree: bool = False

    def play(self, data: bytes, *, timed: bool = True) -> None:
        """Run an input; raise undeclared exceptions, and if `timed`, `Slow` for too much time."""
        if self.parses_tree and not is_small(data):
            return
        before_s = time.process_time()
        with suppress(*self.raises):
            self.run(data)
        took_s = time.process_time() - before_s
        if timed and took_s > BASE_S + PER_KB_S * len(data) / KB:
            raise Slow(f"{self.name}: {took_s:.2f} s for {len(data)} bytes")

    def repeated(self, fragment: bytes, size: int) -> bytes:
        return self.start + fragment * (size // len(fragment))


def _promise(kept: bool, what: str) -> None:
    if not kept:
        raise BrokenPromise(what)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _parted(data: bytes) -> tuple[str, bytes]:
    """Return the first line and the rest, as two arguments."""
    line, _, rest = data.partition(b"\n")
    return _text(line), rest


def _canonicalize(data: bytes) -> None:
    base, reference = _parted(data)
    url = canonicalize(_text(reference), canonicalize(base) if base else None)
    _promise(canonicalize(url) == url, "a canonical URL is another one")
    _promise(url.isascii() and url.startswith(("http://", "https://")), "it is no URL")


def _page(data: bytes) -> None:
    page = parse_page(data, URL, None)
    _promise(len(set(page.links)) == len(page.links), "a link is there twice")
    _promise(page.text == " ".join(page.text.split()), "the text has spaces")


def _charset(data: bytes) -> None:
    content_type, body = _parted(data)
    name, html = charset.decode(body, content_type)
    html.decode()
    charset.encode_query("?" + _text(body[:500]), name)


def _robots(data: bytes) -> None:
    path, body = _parted(data)
    rules = robots_txt.parse(body)
    verdict = rules.decide("orbweaver", f"https://example.com/{path[:2_000]}")
    _promise(verdict.decided or not verdict.allowed, "what is not decided is allowed")
    delay_s = rules.crawl_delay("orbweaver")
    _promise(delay_s is None or 0 <= delay_s < float("inf"), "a delay has no end")


def _sitemap(data: bytes) -> None:
    read = sitemap.read(data, URL)
    _promise(all(canonicalize(one.url) == one.url for one in read.entries[:100]), "no URL")


def _json_ld(data: bytes) -> None:
    objects = json_ld.json_ld([_text(data)])
    for one in objects.with_type("Product")[:100]:
        objects.values("offers.price", one)
        objects.values("image", one, url=True)


def _selector(data: bytes) -> None:
    selector, html = _parted(data)
    if css.problem_of(selector) is None:
        root = parse_page(html, URL, None).tree.root
        if root is not None:
            css.found(selector, root)


ITEM_RULES = ITEMS.read(
    [
        {
            "name": "things",
            "match": "/",
            "each": "div, li > a, #x ~ p",
            "fields": {
                "title": {"css": "a, b", "list": True},
                "price": {"css": "b", "type": "price"},
                "when": {"css": "a", "attribute": "href", "type": "date"},
            },
        },
        {
            "name": "products",
            "match": "/",
            "source": "jsonld:Product",
            "fields": {"name": {"path": "name"}, "price": {"path": "offers.price"}},
        },
        {
            "name": "micro",
            "match": "/",
            "source": "microdata:Product",
            "fields": {"name": {"path": "name"}},
        },
    ]
)


def _items(data: bytes) -> None:
    extract(parse_page(data, URL, None), URL, ITEM_RULES)


def _message(data: bytes) -> None:
    decoded = messages.decode(_text(data))
    if not isinstance(decoded, messages.Malformed | envelope.Newer):
        _promise(messages.decode(messages.encode(decoded)) == decoded, "it is read as another one")


def _cursor(data: bytes) -> None:
    # One with the correct checksum, which anybody can compute, then one as given.
    forged = urlsafe_b64encode(requests._sum(LISTING, data) + data).rstrip(b"=").decode()
    with suppress(requests.CursorError):
        requests.decode_cursor(LISTING, forged, ("", 0, ""))
    requests.decode_cursor(LISTING, _text(data), ("", 0, ""))


def _headers(data: bytes) -> None:
    pairs = [(name, value) for name, _, value in (b.partition(b":") for b in data.split(b"\n"))]
    headers, cut = response_headers(pairs)
    _promise(len(headers) + cut <= len(pairs), "a header is counted twice")
    _promise(all("\n" not in value for value in headers.values()), "a header has two lines")
    kind_of(headers, data[:1_445])
    parse_type(headers.get("content-type", ""))


def _warc(data: bytes) -> None:
    for member in warc.members(data):
        _promise(member.length > 0, "a member has no bytes")


def _warc_record(data: bytes) -> None:
    record = warc.read(gzip.compress(data, 1))
    length = record.headers["content-length"]
    _promise(len(record.payload) == int(length), "the length is not that of the record")
    if record.type == "response":
        record.body()


def _warc_written(data: bytes) -> None:
    line, body = _parted(data)
    name, _, value = line.partition(":")
    headers = {name: value, "content-type": value}
    written = warc.response(URL, 0, status=200, headers=headers, body=body, truncated=False)
    _promise(warc.read(written).body() == body, "a body is read as another one")


def _redaction(data: bytes) -> None:
    pii_redaction.redact_bytes(data, pii_redaction.KINDS)
    text = pii_redaction.redact(_text(data), pii_redaction.KINDS)
    _promise(len(text) <= 2 * len(data) + 100, "it grows")


def _refresh(data: bytes) -> None:
    refresh = refresh_of(_text(data))
    _promise(refresh is None or refresh.delay_s >= 0, "a refresh was in the past")


def _definition(loads: Callable[[str], object]) -> Callable[[bytes], object]:
    def run(data: bytes) -> None:
        try:
            document = loads(_text(data))
        except (ValueError, RecursionError):
            return  # As the command line and the API read them.
        definition.parse(document)

    return run


_MB = 1024 * KB
_PAGES = (
    *(b"<a href=x>", b"<font x=1><p>", b"<div>", b"<b><p>", b"<table><a>", b"<!--", b"<"),
    *(b"&#", b"&amp;", b"<a href='../'>", b"</p>", b"<svg><p>", b"<a ", b"=\"'>", b"<select><p>"),
    *(b"<script>", b"<title>", b"<li>", b"<td>", b"\0", b"\xff", b"<template>", b"<li><ul>"),
    b"<p x='" + b"y" * 200 + b"'>",
)
# lexbor's time is quadratic in the depth of a tree (tests/unit/adapters/test_hostile_trees.py).
_NESTING = (b"<div>", b"<li><ul>")
_ALL = (
    Target("canonicalize", _canonicalize, 5 * _MB, (
        *(b"../", b"/..", b"./", b"%", b"%2e", b"?a=b&", b";a=b", b"[", b"@", b" ", b"\t", b"//"),
        *(b"\\", b"#", b"utm_a=b&", b"xn--", b"1.", b":", b"\xc3\xa9", b"x"),
    ), start=b"https://example.com/a/b\n", raises=(ValueError,)),
    Target("page", _page, 5 * _MB, _PAGES),
    Target("main-text", main_text, 5 * _MB, tuple(one for one in _PAGES if one not in _NESTING),
           parses_tree=True),
    Target("charset", _charset, 5 * _MB, (
        *(b"<meta ", b"<meta charset=", b"charset", b"<!--", b"<a b='", b"\xff\xfe", b"\x80"),
        *(b"\xe9", b"<meta http-equiv=content-type content='charset=", b" ", b"/"),
    ), start=b"text/html\n"),
    Target("robots", _robots, 500 * KB, (
        *(b"Disallow: /*a*a*a*b\n", b"*", b"a*", b"Disallow: /", b"allow:*a\n", b"%", b"\r", b":"),
        *(b"user-agent: *\ndisallow:*b\n", b"Sitemap: /x\n", b"crawl-delay: 1\n"),
    ), start=b"a" * 2_000 + b"\nUser-agent: *\n"),
    Target("sitemap", _sitemap, 5 * _MB, (
        *(b"<url><loc>http://e.com/</loc></url>", b"<a>", b"<a/>", b"&#", b"&x;", b"<"),
        *(b"<loc>../", b"<!--", b"<![CDATA[", b"<a b='", b"]]>", b"\n", b"<url>", b"<a b=''>"),
    ), start=b"<urlset>"),
    Target("json-ld", _json_ld, 5 * _MB, (
        *(b'{"@id": "x"},', b'\\"', b'"\\', b"[", b"{", b',"', b"]", b"}", b" ", b",}", b",,"),
        *(b'{"offers":', b"&quot;", b"/*", b"<!--", b"1", b"\n", b'"', b"\\u00"),
    ), start=b'{"@type": "Product", "offers": ['),
    Target("selector", _selector, 5 * _MB, (b"<p><a>", b"<li><b>", b"<p>", b"<a>"),
           start=b"div > p ~ a, li b\n", parses_tree=True),
    Target("items", _items, 5 * _MB, (
        *(b"<li><a href=x>y</a>", b"<p id=x>", b"<a itemprop=name itemscope itemtype=Product>"),
        *(b'<script type="application/ld+json">', b"<p itemref='x x'>"),
        b"<div itemscope itemref=x id=x>",
    ), parses_tree=True),
    Target("message", _message, _MB, (
        b'"x",', b"[", b"{", b'{"a":', b'"\\', b"1", b" ", b'"http://e.com/",', b"9",
    ), start=b'{"v": 1, "kind": "seeds", "references": ['),
    Target("cursor", _cursor, 64 * KB, (b"A", b"=", b"-_", b"\xff", b"W10", b"["),
           raises=(requests.CursorError,)),
    Target("headers", _headers, 64 * KB, (
        *(b"a", b";", b"\n", b"a:b\n", b"set-cookie: a=b\n", b'x="\\', b"charset=", b","),
        *(b"\nlink: <x>", b" ", b"\t", b"\xff", b"\r", b";a=b"),
    ), start=b"content-type: text/html;"),
    Target("warc-file", _warc, 5 * _MB, (
        warc.response(URL, 0, status=200, headers={}, body=b"x", truncated=False),
        *(b"\x1f\x8b", gzip.compress(b"", mtime=0), b"\0"),
    ), raises=(warc.WarcError,)),
    Target("warc-record", _warc_record, 5 * _MB, (
        b"a: b\r\n", b"\r\n", b"\r", b":", b"x", b"\xff", b"Content-Length: 1\r\n",
    ), start=b"WARC/1.1\r\nWARC-Type: response\r\nContent-Length: 1\r\n",
       raises=(warc.WarcError,)),
    Target("warc-written", _warc_written, 5 * _MB,
           (b"a: b\r", b"\n", b"\r\n\r\n", b"x", b"\xff", b":")),
    Target("redaction", _redaction, 5 * _MB, (
        *(b"a@", b"@", b"a.", b"a@b.", b"1", b"+1 ", b"tel:", b"mailto:", b"%40", b"-", b"&#64;"),
        *(b"(0", b"href=tel:1", b"a@b.cc", b"+49 30 123456 ", b"&#", b"0 ", b"\xff", b"tel:+"),
        *(b'<a href="tel:', b"(", b"1-"),
    )),
    Target("refresh", _refresh, 64 * KB,
           (b"0", b" ", b";", b"url=", b"0;url=", b".", b"'", b"\t,", b"u")),
    # Not "a.": the library reads dotted keys in quadratic time, but only in a file of the user.
    Target("definition", _definition(tomllib.loads), 256 * KB, (
        *(b"a = 1\n", b"[a]\n", b"[[items]]\n", b"seeds = ['x']\n", b"[", b'"', b"a = [", b"#"),
        *(b"[[rules]]\nmatch = 'x'\n", b"\\u", b"'''"),
    ), raises=(definition.DefinitionError,)),
    Target("definition-json", _definition(json.loads), 256 * KB,
           (b'"x",', b"[", b'{"a":', b"1", b'"\\'),
           start=b'{"seeds": [', raises=(definition.DefinitionError,)),
)  # fmt: skip
TARGETS = {target.name: target for target in _ALL}
