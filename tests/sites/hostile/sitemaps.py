"""Case 65, and a part of case 55: sitemaps, each named by the robots.txt of its own server."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from functools import cache

from tests.sites.hostile.model import Asked, Place, Row, Script, answer
from tests.sites.steps import Step

SPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"
MIB = 1024 * 1024
BOMB_MIB = 60
LAUGHS = 9
FOREIGN = (
    "http://elsewhere.invalid/listed",
    "http://0.0.0.0:{canary}/listed",
    "file:///etc/hostname",
    "/relative",
)


def _urls(*places: str, rest: str = "") -> str:
    items = "".join(f"<url><loc>{place}</loc>{rest}</url>" for place in places)
    return f'<?xml version="1.0"?><urlset xmlns="{SPACE}">{items}</urlset>'


def _index(*places: str) -> str:
    items = "".join(f"<sitemap><loc>{place}</loc></sitemap>" for place in places)
    return f'<?xml version="1.0"?><sitemapindex xmlns="{SPACE}">{items}</sitemapindex>'


def _typed(entities: str, reference: str) -> str:
    """Write a sitemap with its own document type."""
    urls = _urls("SELF/listed", f"SELF/{reference}").partition("?>")[2]
    return f'<?xml version="1.0"?><!DOCTYPE urlset [{entities}]>{urls}'


def _laughs() -> str:
    lines = ['<!ENTITY l0 "ha">']
    lines += [f'<!ENTITY l{number} "{f"&l{number - 1};" * 10}">' for number in range(1, LAUGHS + 1)]
    return _typed("".join(lines), f"&l{LAUGHS};")


def _dates() -> str:
    dates = ("tomorrow", "2026-13-45", "-1", "9999-12-31T23:59:60Z", "0" * 5_000, "1970")
    items = "".join(
        f"<url><loc>SELF/dated-{number}</loc><lastmod>{date}</lastmod></url>"
        for number, date in enumerate(dates)
    )
    return f'<urlset xmlns="{SPACE}">{items}</urlset>'


@cache
def _bomb(start: bytes) -> bytes:
    stream = zlib.compressobj(wbits=31)
    parts = [stream.compress(start.removesuffix(b"</urlset>"))]
    parts += [stream.compress(b" " * MIB) for _ in range(BOMB_MIB)]
    return b"".join(parts) + stream.flush()


def _file(name: str, text: str, *, packed: bool = False) -> Script:
    """Serve a sitemap; SELF in it stands for its own origin."""

    def say(asked: Asked) -> Iterable[Step]:
        origin = f"http://127.0.0.1:{asked.ports[f'sitemap-{name}']}"
        body = asked.fill(text.replace("SELF", origin)).encode()
        yield answer(_bomb(body) if packed else body, "Content-Type: application/xml")

    return say


EXTERNAL = (
    '<!ENTITY x SYSTEM "file:///etc/hostname"><!ENTITY y SYSTEM "http://0.0.0.0:{canary}/xxe">'
    '<!ENTITY % z SYSTEM "http://0.0.0.0:{canary}/dtd">%z;'
)
# By name: the description, the file, and the URLs found in it.
USABLE: dict[str, tuple[str, Script, tuple[str, ...]]] = {
    "good": ("as it should be", _file("good", _urls("SELF/listed")), ("/listed",)),
    "foreign": ("with URLs of others, and of none",
                _file("foreign", _urls("SELF/listed", *FOREIGN)), ("/listed",)),
    "dates": ("with dates that are none", _file("dates", _dates()),
              tuple(f"/dated-{number}" for number in range(6))),
    "cut": ("that breaks off", _file("cut", _urls("SELF/listed", "SELF/broken")[:-30]),
            ("/listed",)),
    "bomb": (f"with {BOMB_MIB} MiB of spaces, gzipped",
             _file("bomb", _urls("SELF/listed"), packed=True), ("/listed",)),
}  # fmt: skip
INVALID: dict[str, tuple[str, Script]] = {
    "external": ("with external entities", _file("external", _typed(EXTERNAL, "&x;&y;"))),
    "laughs": ("with entities that multiply", _file("laughs", _laughs())),
    "page": ("that is a page", _file("page", "<!doctype html><title>Not a sitemap</title>")),
    "nested": ("a million elements deep", _file("nested", "<urlset>" + "<url>" * 1_000_000)),
}


def _row(name: str, serves: str, say: Script, end: str = "fetched: sitemap") -> Row:
    place = f"sitemap-{name}"
    return Row(65, "/sitemap.xml", f"a sitemap {serves}", say, end, place=place, linked=False)


def _listed(name: str, path: str) -> Row:
    serves = "a page that only the sitemap names"
    return Row(65, path, serves, place=f"sitemap-{name}", linked=False)


ROWS = (
    *(_row(name, serves, say) for name, (serves, say, _) in USABLE.items()),
    *(_listed(name, path) for name, (_, _, paths) in USABLE.items() for path in paths),
    *(_row(name, *case, "failed: sitemap_invalid") for name, case in INVALID.items()),
    _row("itself", "that lists itself",
         _file("itself", _index("SELF/sitemap.xml", "SELF/part.xml", "SELF/sitemap.xml#again"))),
    Row(65, "/part.xml", "the part of an index that lists itself and this",
        _file("itself", _urls("SELF/listed")), "fetched: sitemap", place="sitemap-itself",
        linked=False),
    _listed("itself", "/listed"),
    Row(55, "http://0.0.0.0:{canary}/sitemap.xml", "a sitemap inside, named by a robots.txt", None,
        "skipped: robots_unreachable", place="sitemap-inward", linked=False),
)  # fmt: skip


def _naming(reference: str) -> Script:
    def say(asked: Asked) -> Iterable[Step]:
        lines = asked.fill(f"User-agent: *\nAllow: /\nSitemap: {reference}\n")
        yield answer(lines.encode(), "Content-Type: text/plain")

    return say


def _place(name: str) -> Place:
    port = f"{{sitemap-{name}}}"
    return Place(name=f"sitemap-{name}", robots=_naming(f"http://127.0.0.1:{port}/sitemap.xml"))


PLACES = (
    *(_place(name) for name in (*USABLE, *INVALID, "itself")),
    Place(name="sitemap-inward", robots=_naming("http://0.0.0.0:{canary}/sitemap.xml")),
)
