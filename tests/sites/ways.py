"""A site with 60 links, redirects and the like to a server that no seed names: the canary.

The canary counts connections: on another port of the same addresses, and on the site's port at the
machine's other addresses. Each way (such a link) has its own path there, so that a crawl without
limits shows the ways that work.
"""

from __future__ import annotations

import asyncio
import contextlib
import html
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

HANDSHAKE = b"\x16"  # Start of a TLS handshake; the server does not use TLS.
HERE, BESIDE, SIX = "127.0.0.1", "127.0.0.2", "::1"
# DNS names and their addresses.
BOOK = {
    "inner.test": [HERE],
    "six.test": [SIX],
    "mixed.test": [SIX, HERE],
    "beside.test": [BESIDE],
    "localhost": [SIX, HERE],
    "localhost.": [HERE],
    "a.localhost": [HERE],
}
# Link spelling by name: {p} is the canary's port, {s} the site's, {n} the way's path.
LINKS = {
    "absolute": "http://127.0.0.1:{p}/{n}",
    "scheme-relative": "//127.0.0.1:{p}/{n}",
    "localhost": "http://localhost:{p}/{n}",
    "localhost-upper": "HTTP://LOCALHOST:{p}/{n}",
    "localhost-dot": "http://localhost.:{p}/{n}",
    "below-localhost": "http://a.localhost:{p}/{n}",
    "two-parts": "http://127.1:{p}/{n}",
    "three-parts": "http://127.0.1:{p}/{n}",
    "decimal": "http://2130706433:{p}/{n}",
    "hexadecimal": "http://0x7f000001:{p}/{n}",
    "hexadecimal-part": "http://0x7f.1:{p}/{n}",
    "octal": "http://0177.0.0.01:{p}/{n}",
    "full-width": "http://１２７.０.０.１:{p}/{n}",  # noqa: RUF001 - digits of another kind
    "ideographic-dot": "http://127。0。0。1:{p}/{n}",
    "escaped": "http://%31%32%37.0.0.1:{p}/{n}",
    "user": "http://127.0.0.1@127.0.0.1:{p}/{n}",
    "user-with-port": "http://127.0.0.1:{s}@127.0.0.1:{p}/{n}",
    "backslashes": "http:\\\\127.0.0.1:{p}\\{n}",
    "line-end": "http://127.0.\n0.1:{p}/{n}",
    "tab": "ht\ttp://127.0.0.1:{p}/{n}",
    "port-with-zeros": "http://127.0.0.1:0{p}/{n}",
    "six": "http://[::1]:{p}/{n}",
    "six-in-full": "http://[0:0:0:0:0:0:0:1]:{p}/{n}",
    "mapped": "http://[::ffff:127.0.0.1]:{p}/{n}",
    "mapped-hexadecimal": "http://[::ffff:7f00:1]:{p}/{n}",
    "unspecified": "http://0.0.0.0:{p}/{n}",
    "zero": "http://0:{p}/{n}",
    "unspecified-six": "http://[::]:{p}/{n}",
    "beside": "http://127.0.0.2:{p}/{n}",
    "beside-on-our-port": "http://127.0.0.2:{s}/{n}",
    "six-on-our-port": "http://[::1]:{s}/{n}",
    "name": "http://inner.test:{p}/{n}",
    "name-of-six": "http://six.test:{p}/{n}",
    "name-of-both": "http://mixed.test:{p}/{n}",
    "name-beside-on-our-port": "http://beside.test:{s}/{n}",
    "tls": "https://127.0.0.1:{p}/{n}",
    "tls-by-name": "https://localhost:{p}/{n}",
}
GOAL = "http://127.0.0.1:{p}/{n}"
STATUSES = (301, 302, 303, 307, 308)
# Elements of a page's head.
MARKUP = {
    "meta-refresh": '<meta http-equiv="refresh" content="0; url={goal}">',
    "canonical": '<link rel="canonical" href="{goal}">',
    "next": '<link rel="next" href="{goal}"><a rel="next" href="{goal}">next</a>',
    "base": '<base href="http://127.0.0.1:{p}/"><a href="{n}">relative</a>',
    "base-by-name": '<base href="http://localhost:{p}/"><a href="{n}">relative</a>',
    "area": '<map><area href="{goal}"></map>',
    "frame": '<iframe src="{goal}"></iframe><a href="{goal}">framed</a>',
}
# Elements of a page's body.
HEADERS = {
    "refresh-header": ("Refresh", "0; url={goal}"),
    "canonical-header": ("Link", '<{goal}>; rel="canonical"'),
    "alternative-service": ("Alt-Svc", 'h2="127.0.0.1:{p}"; ma=3600'),
    "content-location": ("Content-Location", "{goal}"),
    "location-of-a-page": ("Location", "{goal}"),
}
# Ways by robots.txt and sitemaps. They belong to the second site: one robots.txt has one value.
LISTS = ("robots-sitemap", "sitemap-entry", "sitemap-index", "sitemap-moved", "robots-moved")
# Controls: these lead to no server.
NOWHERE = {
    "alternative-service",
    "content-location",
    "location-of-a-page",
    "use-proxy",
    # A sitemap can list pages of its own hosts.
    "sitemap-entry",
    "sitemap-index",
}
MOVED = {f"status-{status}": status for status in STATUSES}
HOPS = ("moved-by-name", "moved-twice", "moved-to-a-relative-scheme", "use-proxy")
WAYS = (*LINKS, *MARKUP, *HEADERS, *MOVED, *HOPS, *LISTS)


@dataclass(slots=True)
class Listener:
    """A server on some addresses that answers and counts every request."""

    port: int = 0
    connections: int = 0
    paths: list[str] = field(default_factory=list)

    def answer(self, path: str) -> bytes:
        return said("200 OK", f"<title>{path}</title>")

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        ended = (OSError, asyncio.IncompleteReadError, asyncio.CancelledError)
        with contextlib.suppress(*ended, asyncio.LimitOverrunError):
            while (first := await reader.readexactly(1)) != HANDSHAKE:
                head = first + await reader.readuntil(b"\r\n\r\n")
                path = head.split(b" ", 2)[1].decode("latin-1")
                self.paths.append(path)
                writer.write(self.answer(path))
                await writer.drain()
        writer.close()


@dataclass(slots=True)
class Site(Listener):
    """The site; `robots` and its pages' links follow from both ports."""

    canary: int = 0
    robots_moved: bool = False

    def answer(self, path: str) -> bytes:
        name = path.strip("/")
        if path == "/robots.txt" and self.robots_moved:
            return _moved(302, self._goal("robots-moved"))
        if path == "/robots.txt":
            maps = (self._goal("robots-sitemap"), *map(self._own, LISTS[1:4]))
            return said("200 OK", "\n".join(f"Sitemap: {url}" for url in maps), "text/plain")
        if path == "/":
            ways = (f'<a href="/{way}">{way}</a>' for way in WAYS if way not in LISTS)
            return said("200 OK", "".join(ways))
        return self._way(name)

    def _way(self, name: str) -> bytes:
        goal = self._goal(name)
        if name in LINKS:
            return said("200 OK", f'<a href="{html.escape(self._fill(LINKS[name], name))}">x</a>')
        if name in MARKUP:
            return said("200 OK", f"<head>{self._fill(MARKUP[name], name)}</head><p>{name}")
        if name in HEADERS:
            key, value = HEADERS[name]
            return said("200 OK", f"<p>{name}", lines=(f"{key}: {self._fill(value, name)}",))
        if name in MOVED:
            return _moved(MOVED[name], goal)
        return {
            "moved-by-name": _moved(302, goal.replace(HERE, "inner.test")),
            "moved-twice": _moved(302, self._own("moved-again")),
            "moved-again": _moved(302, self._goal("moved-twice")),
            "moved-to-a-relative-scheme": _moved(302, goal.removeprefix("http:")),
            "use-proxy": _moved(305, goal),
            "sitemap-entry": said("200 OK", _listed("urlset", "url", goal), "text/xml"),
            "sitemap-index": said("200 OK", _listed("sitemapindex", "sitemap", goal), "text/xml"),
            "sitemap-moved": _moved(302, goal),
        }.get(name, said("404 Not Found", "none"))

    def _own(self, name: str) -> str:
        return f"http://{HERE}:{self.port}/{name}"

    def _goal(self, name: str) -> str:
        return self._fill(GOAL, name)

    def _fill(self, text: str, name: str) -> str:
        if "{goal}" in text:
            text = text.replace("{goal}", GOAL)
        return (
            text.replace("{p}", str(self.canary))
            .replace("{s}", str(self.port))
            .replace("{n}", name)
        )


@dataclass(frozen=True, slots=True)
class Ways:
    """Two sites, and the canary."""

    site: Site
    second: Site
    canary: Listener

    @property
    def seeds(self) -> tuple[str, str]:
        return f"http://{HERE}:{self.site.port}/", f"http://{HERE}:{self.second.port}/"


@contextlib.asynccontextmanager
async def listening() -> AsyncIterator[Ways]:
    ways = Ways(Site(), Site(robots_moved=True), Listener())
    async with contextlib.AsyncExitStack() as stack:
        for one in (ways.site, ways.second, ways.canary):
            one.port = await _serve(stack, one, HERE, 0)
        for address in (SIX, BESIDE):
            await _serve(stack, ways.canary, address, ways.canary.port)
            await _serve(stack, ways.canary, address, ways.site.port)
        for site in (ways.site, ways.second):
            site.canary = ways.canary.port
        yield ways


async def _serve(stack: contextlib.AsyncExitStack, one: Listener, address: str, port: int) -> int:
    server = await asyncio.start_server(one.meet, address, port)
    stack.callback(server.close)
    return int(server.sockets[0].getsockname()[1])


def said(status: str, body: str, kind: str = "text/html", lines: tuple[str, ...] = ()) -> bytes:
    raw = body.encode()
    head = (f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(raw)}", *lines)
    return "\r\n".join((*head, "", "")).encode("latin-1") + raw


def _moved(status: int, location: str) -> bytes:
    return said(f"{status} Moved", "", lines=(f"Location: {location}",))


def _listed(root: str, each: str, url: str) -> str:
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return f'<{root} xmlns="{space}"><{each}><loc>{url}</loc></{each}></{root}>'
