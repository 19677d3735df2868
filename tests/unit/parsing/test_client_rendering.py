"""Pages that are empty until their scripts have run, and pages that are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from orbweaver.parsing.client_rendering import (
    BARE_BYTES_MAX,
    HTML_BYTES_MAX,
    LINKS_MAX,
    TAGS_MAX,
    TEXT_BYTES_MAX,
    needs_rendering,
)
from orbweaver.parsing.page import parse
from tests.costs import LINEAR, slope, within

HEAD = '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A title</title>'
BUILT = '<script type="module" crossorigin src="/assets/index-CizuXTuG.js"></script>'
CLASSIC = '<script defer="defer" src="/static/js/main.8f2.js"></script>'
ASKS = "<noscript>You need to enable JavaScript to run this app.</noscript>"
STATE = '<script id="__NEXT_DATA__" type="application/json">{"props":{"p":"%s"}}</script>'
PROSE = "<p>A sentence of the kind that pages have, of some length and of no interest.</p>"


def needed(body: str, *, head: str = "", links: int = 0) -> bool:
    html = f"{HEAD}{head}</head><body>{body}{'<a href=/x></a>' * links}</body></html>"
    return parse(html.encode(), "https://example.com/", "text/html").needs_rendering


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (BUILT, '<div id="root"></div>'),
        (BUILT, "<div id=app></div>"),
        (BUILT, "<div id='app'>\n <!-- filled later -->\n </div>"),
        (CLASSIC, ASKS + '<div id="root"></div>'),
        ("", ASKS.replace("You", "<strong>You") + '<div id="app"></div><script src=a.js></script>'),
        (f"<style>{'a{b:c}' * 9_000}</style>",
         '<app-root></app-root><script src="main.js" type="module"></script>'),
        ("", '<shop-app base="/">Loading…</shop-app>' + BUILT),
        ("", '<div id="__next"></div>' + STATE % "x" + CLASSIC),
        (STATE % ("x" * 400_000), '<div id="__next"></div>' + CLASSIC),
        ("", '<div id="__next"><div class="spinner"><img src=logo.svg></div></div>' + CLASSIC),
        ("", "<div id=__nuxt></div><script>window.__NUXT__={}</script>" + CLASSIC),
        ("", "<p>Loading…</p><script>(self.__next_f=self.__next_f||[]).push([0])</script>"),
        ("", f'<template data-dgst="BAILOUT_TO_CLIENT_SIDE_RENDERING"></template>{PROSE}{CLASSIC}'),
        ("", '<div style="display: contents"><script>{__sveltekit_1={base:""}}</script></div>'),
        ("", '<div id="swagger-ui"></div><script src="./bundle.js" charset="UTF-8"> </script>'),
        ("", "<redoc spec-url=x.json></redoc><script src=redoc.js></script>"),
        ("", "<div ng-view></div><script src=angular.js></script>"),
        ("", '<astro-island client="only"></astro-island><script>x</script>'),
        ("", "<div id=main data-reactroot></div>" + CLASSIC),
        ("", ASKS + "<div class=page></div>" + CLASSIC),
        ("", "<header>A shop</header><div id=root></div><footer>Imprint</footer>" + CLASSIC),
        ("", "<div id=app><p>Please wait</p></div><script type=text/babel></script>"),
        ("", "<DIV ID=ROOT></DIV>" + BUILT),
        ("", "<div id=root>" + BUILT),
    ],
)  # fmt: skip
def test_page_with_framework_marks_and_no_text_needs_rendering(head: str, body: str) -> None:
    assert needed(body, head=head)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        # Pages rendered on the server by the same frameworks.
        (BUILT, f'<div id="root" data-reactroot><h1>Hours</h1>{PROSE * 5}</div>' + ASKS),
        ("", f'<div id="__next"><main>{PROSE * 5}</main></div>' + STATE % "x" + CLASSIC),
        ("", f"<div id=__nuxt><p>{'Text. ' * 60}</p></div>" + BUILT),
        ("", f'<app-root ng-version="22">{PROSE * 5}</app-root>' + BUILT),
        ("", "<div id=__nuxt><h1>Hours</h1><p>Nine to five.</p></div>" + BUILT),
        ("", f"<main>{PROSE * 5}</main><div id=app></div>" + BUILT),
        ("", '<div id="__next"><form><input name=user><input name=word></form></div>' + CLASSIC),
        ("", '<div hidden id="S:0">' + PROSE * 5 + "</div><script>self.__next_f.push(1)</script>"),
        # Pages that are empty for other reasons.
        ("", ""),
        ("", "<script>location.href='/new'</script>"),
        ("", "<img src=large.jpg><script src=zoom.js></script>"),
        ("", "<script src=count.js></script>"),
        ("<meta http-equiv=refresh content='0; url=/new'>", "<div id=root></div>" + BUILT),
        ("", "<h1>404</h1><p>Not found</p><script src=count.js></script>"),
        ("", "<canvas></canvas><script type=module src=game.js></script>"),
        ("", "<iframe src=/inner></iframe>" + BUILT),
        # Pages without scripts.
        ("", "<div id=root></div>"),
        ("", '<div id=root></div><script type="application/ld+json">{}</script>'),
        ("", '<div id=root></div><script type="text/template"><p></script>'),
        ("", "<div id=root></div><noscript><script src=x.js></script></noscript>"),
        # Text that is readable without scripts.
        ("", f"<div id=root></div><noscript>{PROSE * 5}</noscript>" + BUILT),
        # Words that only resemble framework marks.
        ("", "<div id=rooted></div><p>id=root</p>" + CLASSIC),
        ("", "<!-- <div id=root></div> -->" + CLASSIC),
        ("", "<script>'<div id=root></div>'</script>"),
        ("", f"<noscript>Text and pictures.</noscript>{CLASSIC}"),
    ],
)  # fmt: skip
def test_page_with_text_or_without_marks_needs_no_rendering(head: str, body: str) -> None:
    assert not needed(body, head=head)


def test_frameset_needs_no_rendering() -> None:
    html = HEAD + BUILT + "<frameset><frame src=/a></frameset>"
    assert not parse(html.encode(), "https://example.com/", "text/html").needs_rendering


def test_page_with_refresh_header_needs_no_rendering() -> None:
    html = f"{HEAD}<div id=root></div>{BUILT}".encode()
    page = parse(html, "https://example.com/", "text/html", refresh="0; url=/new")
    assert not page.needs_rendering


def test_rendering_limits_are_exact() -> None:
    shell = "<div id=root></div>" + BUILT
    assert needed(shell, links=LINKS_MAX)
    assert not needed(shell, links=LINKS_MAX + 1)
    assert needed(f"<p>{'x' * TEXT_BYTES_MAX}</p>{shell}")
    assert not needed(f"<p>{'x' * (TEXT_BYTES_MAX + 1)}</p>{shell}")
    assert needed(f"<div id=root><p>{'x' * BARE_BYTES_MAX}</p></div>" + BUILT)
    assert not needed(f"<div id=root><p>{'x' * (BARE_BYTES_MAX + 1)}</p></div>" + BUILT)
    assert needed(shell + "<i>" * (TAGS_MAX - 40))
    assert not needed(shell + "<i>" * TAGS_MAX)
    assert needed(shell, head=f"<style>{'x' * (HTML_BYTES_MAX - 1_000)}</style>")
    assert not needed(shell, head=f"<style>{'x' * HTML_BYTES_MAX}</style>")


def test_rendering_guide_states_limits_of_code() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "rendering.md").read_text()
    size = f"{TAGS_MAX:,} tags or {HTML_BYTES_MAX >> 10} KiB"
    assert f"more than {LINKS_MAX} links, {TEXT_BYTES_MAX} bytes of text, {size}" in guide
    assert guide.count(f"at most {BARE_BYTES_MAX} bytes of text") == 2


ATTACKS = {
    "mount points": b"<div id=app></div>",
    "nesting": b"<div>",
    "links in a script": b"<script>" + b"<" * 999,
    "ends in a script": b"<script>" + b"</scrip" * 99,
    "comments": b"<!--",
    "quotes": b"<a ' \"",
    "names": b"<a-roo" + b"-roo" * 999 + b">",
    "names in names": b"<a" * 999 + b">",
    "attributes": b"<div " + b" id " * 900 + b">",
    "spaces": b"<div id" + b" " * 999 + b">",
    "types": b"<script " + b" type   " * 99 + b"></script>",
    "noscript": b"<noscript>",
    "tags of a noscript": b"<noscript>" + b"<b>" * 999 + b"</noscript>",
    "no tags": b"< ",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_hostile_page_is_checked_in_linear_time(name: str) -> None:
    piece = ATTACKS[name]

    def looking(size: int) -> Callable[[], bool]:
        html = b"<script></script>" + piece * (size // len(piece) - 1)
        return lambda: needs_rendering(html, 0)

    assert slope(looking, (HTML_BYTES_MAX // 4, HTML_BYTES_MAX)) < LINEAR
    assert within(0.3, looking(HTML_BYTES_MAX))
