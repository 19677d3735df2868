"""Sites of built or installed applications (bench/framework_shops.py), with the expected results.

All use one catalogue of products, so the links and values to find are known: 60 links on a shop's
front page, and a product page's name, price and description; 60 operations of an interface
description; 60 chapters of a manual with their words.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.sites.server import AccessLog, Answer, Asked
from tests.sites.static import TYPES

PRODUCTS, PARTS, RELATED = 60, 3, 4


def product(number: int) -> dict[str, object]:
    related = [(number * step + 7) % PRODUCTS for step in range(1, RELATED + 1)]
    return {
        "id": number,
        "name": f"Product name{number}x",
        "price": f"{number + 10}.{number % 100:02} EUR",
        "description": f"What is said of it is word{number}x, and that it keeps for years.",
        "related": list(dict.fromkeys(related)),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """Links and words that a crawler must find on a page."""

    links: frozenset[str] = frozenset()
    words: tuple[str, ...] = ()


@dataclass
class AppSite:
    """Serves a folder's files and extra answers. Any other path gets `fallback` with status 200."""

    folder: Path
    truth: Mapping[str, Truth]
    extra: Mapping[str, Answer] = field(default_factory=dict)
    data: Callable[[str], object] = lambda _target: None
    fallback: Answer | None = None
    url: str = ""
    log: AccessLog = field(default_factory=AccessLog)

    def answer(self, asked: Asked) -> Answer:
        path = asked.target.partition("?")[0]
        if path in self.extra:
            return self.extra[path]
        told = self.data(asked.target)
        if told is not None:
            return _typed("application/json", json.dumps(told).encode())
        file = self.folder / path.lstrip("/")
        if file.is_file():
            kind = TYPES.guess_type(file.name)[0] or "application/octet-stream"
            return _typed(kind, file.read_bytes())
        return self.fallback or Answer(status=404)

    def reset(self) -> None:
        """Do nothing, because the site has no state."""

    def documents(self) -> Mapping[str, Callable[[], object]]:
        return {}


def _typed(kind: str, body: bytes) -> Answer:
    return Answer(headers=(("Content-Type", kind),), body=body)


def _html(text: str) -> Answer:
    return _typed("text/html; charset=utf-8", text.encode())


# --- the sites ----------------------------------------------------------------------------------


def shop(folder: Path) -> AppSite:
    """Serve a built shop. All its pages are one file."""
    truth = {"/": Truth(links=frozenset(f"/product/{one}" for one in range(PRODUCTS)))}
    for number in range(PRODUCTS):
        one = product(number)
        related = one["related"]
        assert isinstance(related, list)
        truth[f"/product/{number}"] = Truth(
            links=frozenset(f"/product/{other}" for other in related),
            words=(f"name{number}x", str(one["price"]), f"word{number}x"),
        )
    page = _typed("text/html; charset=utf-8", (folder / "dist/index.html").read_bytes())
    return AppSite(folder / "dist", truth, extra={"/": page}, data=_products, fallback=page)


def _products(target: str) -> object:
    path, _, query = target.partition("?")
    if path == "/api/products":
        part, size = int(query.rpartition("=")[2]), PRODUCTS // PARTS
        return [product(number) for number in range(part * size, (part + 1) * size)]
    if path.startswith("/api/products/"):
        return product(int(path.rpartition("/")[2]))
    return None


def _operations() -> dict[str, object]:
    paths = {
        f"/operation{number}x": {
            "get": {"summary": f"Says word{number}x", "responses": {"200": {"description": "Well"}}}
        }
        for number in range(PRODUCTS)
    }
    return {"openapi": "3.0.3", "info": {"title": "Shop", "version": "1"}, "paths": paths}


def _described(folder: Path, html: str) -> AppSite:
    words = tuple(f"word{number}x" for number in range(PRODUCTS))
    described = _typed("application/json", json.dumps(_operations()).encode())
    extra = {"/": _html(html), "/openapi.json": described}
    return AppSite(folder, {"/": Truth(words=words)}, extra=extra)


def swagger_ui(folder: Path) -> AppSite:
    return _described(
        folder / "node_modules/swagger-ui-dist",
        '<!doctype html><title>API</title><div id="swagger-ui"></div>'
        '<script src="/swagger-ui-bundle.js"></script><script>SwaggerUIBundle('
        "{url: '/openapi.json', dom_id: '#swagger-ui'})</script>",
    )


def redoc(folder: Path) -> AppSite:
    return _described(
        folder / "node_modules/redoc/bundles",
        '<!doctype html><title>API</title><redoc spec-url="/openapi.json"></redoc>'
        '<script src="/redoc.standalone.js"></script>',
    )


def docsify(folder: Path) -> AppSite:
    shell = _html(
        '<!doctype html><title>Manual</title><div id="app"></div><script>window.$docsify ='
        " {routerMode: 'history', basePath: '/', name: 'Manual'}</script>"
        '<script src="/docsify.min.js"></script>'
    )
    first = "\n".join(f"- [Chapter {one}](/chapter{one}.md)" for one in range(PRODUCTS))
    markdown = "text/markdown; charset=utf-8"
    extra = {"/": shell, "/README.md": _typed(markdown, f"# Manual\n\n{first}\n".encode())}
    truth = {"/": Truth(links=frozenset(f"/chapter{one}" for one in range(PRODUCTS)))}
    for one in range(PRODUCTS):
        text = f"# Chapter {one}\n\nIt is about **word{one}x**, at length.\n"
        extra[f"/chapter{one}.md"] = _typed(markdown, text.encode())
        truth[f"/chapter{one}"] = Truth(words=(f"word{one}x",))
    return AppSite(folder / "node_modules/docsify/dist", truth, extra=extra, fallback=shell)


APPLICATIONS: Mapping[str, Callable[[Path], AppSite]] = {
    "swagger-ui": swagger_ui,
    "redoc": redoc,
    "docsify": docsify,
}
