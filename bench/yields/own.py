"""Applications made here: aiohttp generates pages on request, behind Apache.

    python -m bench.yields.own shop --port 8000

A visitor without a cookie gets a session id (`sid`) in every link, as in many shops and forums. A
request without one creates a new one, so a page has many URLs.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from html import escape
from itertools import count
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from aiohttp import web

from bench.yields import web as server
from bench.yields.place import ADDRESS, PROJECT, free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bench.yields.application import Serve
    from bench.yields.place import Place

COOKIE = "sid"


class Visit:
    """A request to an application: its parameters, and links that keep its session."""

    def __init__(self, path: str, query: Mapping[str, str], sid: str) -> None:
        self.path, self._sid = path, sid
        self.query = {name: value for name, value in query.items() if name != COOKIE}

    def href(self, path: str, /, **query: object) -> str:
        """Return a page's URL. Parameters of None are omitted."""
        named = [(name, str(value)) for name, value in query.items() if value is not None]
        named += [(COOKIE, self._sid)] if self._sid else []
        return f"{path}{'?' * bool(named)}{urlencode(named)}"

    def link(self, text: str, path: str, /, **query: object) -> str:
        return f'<a href="{escape(self.href(path, **query))}">{escape(text)}</a>'

    def number(self, name: str, default: int, most: int) -> int:
        """Parse a number of the query, limited to `most`."""
        text = self.query.get(name, "")
        return min(int(text), most) if text.isdigit() and len(text) < 10 else default


class Page:
    """An application's answer. `location` makes it a redirect."""

    def __init__(
        self,
        title: str = "",
        body: str = "",
        *,
        head: str = "",
        location: str = "",
        status: int = 200,
    ) -> None:
        self.title, self.body, self.head = title, body, head
        self.location, self.status = location, 302 if location else status


def serving(name: str) -> Serve:
    def serve(place: Place, port: int) -> None:
        behind = free_port()
        caller = {"user": None, "group": None, "extra_groups": None}
        words = [sys.executable, "-m", "bench.yields.own", name, "--port", str(behind)]
        place.start(words, port=behind, environment={"PYTHONPATH": str(PROJECT)}, **caller)
        server.serve(
            place, port, f'ProxyPreserveHost On\nProxyPass "/" "http://{ADDRESS}:{behind}/"'
        )

    return serve


def application(site: Callable[[Visit], Page], robots: str, menu: Sequence[str]) -> web.Application:
    made = count()

    async def answer(request: web.Request) -> web.Response:
        if request.path == "/robots.txt":
            return web.Response(text=robots)
        sid, given = "", request.query.get(COOKIE, "")
        if COOKIE not in request.cookies:
            sid = given or hashlib.sha256(str(next(made)).encode()).hexdigest()[:16]
        visit = Visit(request.path, request.query, sid)
        page = site(visit)
        if page.location:
            return web.Response(status=page.status, headers={"Location": page.location})
        links = " | ".join(
            visit.link(path.strip("/").partition(".")[0] or "home", path) for path in menu
        )
        text = (
            f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            f"<title>{escape(page.title)}</title>{page.head}</head><body><nav>{links}</nav>\n"
            f"<h1>{escape(page.title)}</h1>\n{page.body}</body></html>\n"
        )
        response = web.Response(text=text, content_type="text/html", status=page.status)
        if sid:
            response.set_cookie(COOKIE, sid)
        return response

    application = web.Application()
    application.router.add_get("/{path:.*}", answer)
    return application


def main() -> None:
    from bench.yields import forum, shop

    sites = {"shop": (shop.page, shop.ROBOTS, shop.MENU), "forum": (forum.page, "", forum.MENU)}
    parser = argparse.ArgumentParser()
    parser.add_argument("site", choices=sites)
    parser.add_argument("--port", type=int, required=True)
    asked = parser.parse_args()
    made = application(*sites[asked.site])
    web.run_app(made, host=ADDRESS, port=asked.port, access_log=None, print=None)


if __name__ == "__main__":
    main()
