"""Cases 61 to 64: endless links, false bases, refreshes, and nofollow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.sites.hostile.model import Asked, Row, head, page
from tests.sites.steps import Act

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.sites.steps import Step

LINKS = 1_000_000
AT_ONCE = 10_000
# Links accepted from one page, at this setting.
LINKS_TAKEN = 100


def _many(asked: Asked) -> Iterable[Step]:
    yield head("Content-Type: text/html")
    for start in range(0, LINKS, AT_ONCE):
        yield "".join(f"<a href=/many/{n}>" for n in range(start, start + AT_ONCE)).encode()
    yield Act.CLOSE


def _based(name: str, base: str, links: tuple[str, ...], *children: str) -> Row:
    return Row(
        case=62,
        path=f"/bases/{name}",
        serves=f"links seen from {base[:50]}",
        say=page(f"/bases/{name}", links, head=base),
        title=f"/bases/{name}",
        children=children,
    )


def _refreshing(name: str, serves: str, refresh: str, *children: str, on: bool = True) -> Row:
    head = f'<meta http-equiv="refresh" content="{refresh}">'
    return Row(
        case=63,
        path=f"/refreshes/{name}",
        serves=serves,
        say=page(f"/refreshes/{name}", head=head),
        title=f"/refreshes/{name}",
        children=children,
        outcome="redirected" if on else "fetched",
        reason="refresh" if on else "ok",
    )


def _wishing(name: str, serves: str, *lines: str, head: str = "", followed: bool) -> Row:
    path = f"/wishes/beyond-{name}"
    return Row(
        case=64,
        path=f"/wishes/{name}",
        serves=serves,
        say=page(f"/wishes/{name}", [path], *lines, head=head),
        title=f"/wishes/{name}",
        reason="noindex" if "noindex" in head.lower() else "ok",
        children=(path,) if followed else (),
        ghosts=() if followed else (path,),
    )


ROWS = (
    Row(
        case=61,
        path="/many/many",
        serves="a million links",
        say=_many,
        reason="truncated",
        children=tuple(f"/many/{n}" for n in range(LINKS_TAKEN)),
        ghosts=(f"/many/{LINKS_TAKEN}",),
    ),
    _based("elsewhere", '<base href="http://elsewhere.invalid/">', ("x", "y")),
    _based(
        "javascript",
        '<base href="javascript:alert(1)">',
        ("by-javascript",),
        "/bases/by-javascript",
    ),
    _based("relative", '<base href="deeper/">', ("by-relative",), "/bases/deeper/by-relative"),
    _based(
        "repeated",
        '<base href="/bases/first/"><base href="/bases/second/">',
        ("by-first",),
        "/bases/first/by-first",
    ),
    _based("empty", "<base><base href>", ("by-none",), "/bases/by-none"),
    _refreshing("self", "a refresh of itself", "0", on=False),
    _refreshing("here", "one half of a loop of refreshes", "0; url=/refreshes/there"),
    _refreshing("there", "the other half", "0;URL='/refreshes/here'"),
    _refreshing(
        "on", "a refresh that leads on", "1; url=/refreshes/refreshed", "/refreshes/refreshed"
    ),
    _refreshing("script", "a refresh to a script", "0; url=javascript:alert(1)", on=False),
    Row(
        case=63,
        path="/refreshes/header",
        serves="a refresh by header",
        say=page("/refreshes/header", [], "Refresh: 0; url=/refreshes/by-header"),
        title="/refreshes/header",
        outcome="redirected",
        reason="refresh",
        children=("/refreshes/by-header",),
    ),
    Row(
        case=63,
        path="/refreshes/canonical",
        serves="a canonical URL elsewhere",
        say=page(
            "/refreshes/canonical",
            head='<link rel=canonical href="http://elsewhere.invalid/canonical">',
        ),
        title="/refreshes/canonical",
    ),
    Row(
        case=63,
        path="/refreshes/languages",
        serves="2,000 translations",
        say=page(
            "/refreshes/languages",
            head="".join(
                f'<link rel=alternate hreflang=x-{n} href="/refreshes/ghost-{n}">'
                for n in range(2_000)
            ),
        ),
        title="/refreshes/languages",
    ),
    _wishing(
        "meta",
        "a meta in odd case",
        head='<META NAME="RoBots" CONTENT="NoIndex,NOFOLLOW">',
        followed=False,
    ),
    _wishing("header", "a header in odd case", "x-ROBOTS-tag: NoFollow", followed=False),
    _wishing(
        "other-meta", "a wish for another agent", "X-Robots-Tag: otherbot: nofollow", followed=True
    ),
    _wishing("noindex", "noindex alone", head="<meta name=robots content=noindex>", followed=True),
    Row(
        case=64,
        path="/wishes/rel",
        serves="a link that asks not to be followed",
        say=page("/wishes/rel", head='<a rel="ugc NoFollow" href="/wishes/ghost">x</a>'),
        title="/wishes/rel",
        ghosts=("/wishes/ghost",),
    ),
)
