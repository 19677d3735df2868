"""Cases 61 to 64: endless links, false bases, refreshes, and nofollow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tests.sites.hostile.model import Asked, Row, head, page
from tests.sites.steps import Act, Step

if TYPE_CHECKING:
    Links = tuple[str, ...]

LINKS = 1_000_000
AT_ONCE = 10_000
# Links accepted from one page, at this setting.
LINKS_TAKEN = 100


def _many(asked: Asked) -> Iterable[Step]:
    yield head("Content-Type: text/html")
    for start in range(0, LINKS, AT_ONCE):
        yield "".join(f"<a href=/many/{n}>" for n in range(start, start + AT_ONCE)).encode()
    yield Act.CLOSE


def _page(
    case: int, path: str, serves: str, *lines: str, links: Links = (), head: str = "", **due: Any
) -> Row:
    """Build a page whose title is its path."""
    say = page(path, links, *lines, head=head)
    return Row(case, path, serves, say, due.pop("end", "fetched: ok"), title=path, **due)


def _based(name: str, base: str, links: tuple[str, ...], *children: str) -> Row:
    serves = f"links seen from {base[:50]}"
    return _page(62, f"/bases/{name}", serves, links=links, head=base, children=children)


def _refreshing(name: str, serves: str, refresh: str, *children: str, on: bool = True) -> Row:
    head = f'<meta http-equiv="refresh" content="{refresh}">'
    end = "redirected: refresh" if on else "fetched: ok"
    return _page(63, f"/refreshes/{name}", serves, head=head, children=children, end=end)


def _wishing(name: str, serves: str, *lines: str, head: str = "", followed: bool) -> Row:
    beyond = (f"/wishes/beyond-{name}",)
    due = {"children": beyond} if followed else {"ghosts": beyond}
    end = "fetched: noindex" if "noindex" in head.lower() else "fetched: ok"
    return _page(64, f"/wishes/{name}", serves, *lines, links=beyond, head=head, end=end, **due)


ROWS = (
    Row(61, "/many/many", "a million links", _many, "fetched: truncated",
        children=tuple(f"/many/{n}" for n in range(LINKS_TAKEN)),
        ghosts=(f"/many/{LINKS_TAKEN}",)),
    _based("elsewhere", '<base href="http://elsewhere.invalid/">', ("x", "y")),
    _based("javascript", '<base href="javascript:alert(1)">', ("by-javascript",),
           "/bases/by-javascript"),
    _based("relative", '<base href="deeper/">', ("by-relative",), "/bases/deeper/by-relative"),
    _based("repeated", '<base href="/bases/first/"><base href="/bases/second/">', ("by-first",),
           "/bases/first/by-first"),
    _based("empty", "<base><base href>", ("by-none",), "/bases/by-none"),
    _refreshing("self", "a refresh of itself", "0", on=False),
    _refreshing("here", "one half of a loop of refreshes", "0; url=/refreshes/there"),
    _refreshing("there", "the other half", "0;URL='/refreshes/here'"),
    _refreshing("on", "a refresh that leads on", "1; url=/refreshes/refreshed",
                "/refreshes/refreshed"),
    _refreshing("script", "a refresh to a script", "0; url=javascript:alert(1)", on=False),
    _page(63, "/refreshes/header", "a refresh by header", "Refresh: 0; url=/refreshes/by-header",
          end="redirected: refresh", children=("/refreshes/by-header",)),
    _page(63, "/refreshes/canonical", "a canonical URL elsewhere",
          head='<link rel=canonical href="http://elsewhere.invalid/canonical">'),
    _page(63, "/refreshes/languages", "2,000 translations", head="".join(
        f'<link rel=alternate hreflang=x-{n} href="/refreshes/ghost-{n}">' for n in range(2_000))),
    _wishing("meta", "a meta in odd case", head='<META NAME="RoBots" CONTENT="NoIndex,NOFOLLOW">',
             followed=False),
    _wishing("header", "a header in odd case", "x-ROBOTS-tag: NoFollow", followed=False),
    _wishing("other-meta", "a wish for another agent", "X-Robots-Tag: otherbot: nofollow",
             followed=True),
    _wishing("noindex", "noindex alone", head="<meta name=robots content=noindex>", followed=True),
    _page(64, "/wishes/rel", "a link that asks not to be followed",
          head='<a rel="ugc NoFollow" href="/wishes/ghost">x</a>', ghosts=("/wishes/ghost",)),
)  # fmt: skip
