"""A fault in any step of reading a page ends one URL and dead-letters no message."""

from __future__ import annotations

import importlib
import inspect
import logging
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import pytest

from orbweaver.adapters.local.reader import ReaderError
from orbweaver.frontier.messages import Pack, decode
from orbweaver.library.reading import _rules
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.errors import Transient, type_and_place
from orbweaver.model.http_exchange import Response
from tests.unit.stage import CRAWL, NOW_MS, SITE, Stage, answer, html, outcomes, pack_of

HOME, OTHER, MAP, FEED = (f"{SITE}/{path}" for path in ("", "other", "map.xml", "feed"))
RULES = [
    {
        "name": "things",
        "match": ".",
        "fields": {
            "name": {"css": "h1", "required": True},
            "price": {"jsonld": "Product:offers.price", "type": "price"},
            "seen": {"microdata": "Product:name"},
            "day": {"css": "p", "regex": "on ([0-9-]+)", "type": "date"},
        },
    }
]
ALL: Crawl = replace(
    CRAWL,
    seeds=(HOME, OTHER),
    obey_robots=True,
    sitemaps=True,
    cookies=True,
    texts=True,
    bodies=Bodies.HTML,
    redacted=("email",),
    items=_rules(RULES),
    pages_max=100,
)
BODY = b"""<html lang=en><head><title>A thing</title><meta name=description content="about it">
<meta http-equiv=refresh content="60;url=/later"><link rel=next href=/other?p=2>
<script type="application/ld+json">{"@type":"Product","offers":{"price":"1.50"}}</script></head>
<body><h1>Thing</h1><p itemscope itemtype="https://schema.org/Product">
<b itemprop=name>N</b> on 2026-01-02, mail me@example.com</p><svg><a xlink:href="/x"></a></svg>
<template shadowrootmode=open><a href="/shadow?a=%E4">s</a></template></body></html>"""
SITEMAP = b"<urlset><url><loc>%s/mapped</loc><lastmod>2026-01-01</lastmod></url></urlset>"
ATOM = b'<feed xmlns="http://www.w3.org/2005/Atom"><entry><link href="/fed"/></entry></feed>'
# Modules whose functions read pages.
READING_NAMES = (
    "parsing.charset parsing.client_rendering parsing.html_scan parsing.links parsing.main_text"
    " parsing.markup parsing.media_type parsing.page parsing.pii_redaction parsing.sitemap"
    " parsing.sitemap_xml parsing.sniffing parsing.soft_404 parsing.text_digest"
    " extraction.convert extraction.css extraction.document extraction.extract"
    " extraction.json_ld extraction.locate"
    " extraction.regex extraction.work_budget fetching.block_page fetching.cookies"
    " fetching.response_verdict frontier.admission frontier.body_file frontier.crawler_traps"
    " frontier.kind_learner frontier.kind_scores frontier.stored_content frontier.warc"
    " politeness.robots_escapes politeness.robots_rules politeness.robots_txt"
    " worker.page_outcome worker.page_reading worker.response_handling worker.sitemap_handling"
)
READING = READING_NAMES.split()


class PanicException(BaseException):
    """Exception of pyo3 for a panic in Rust, with its name and base."""


@dataclass
class Injection:
    """A function or method that raises on its first `times` calls."""

    owner: Any
    name: str
    function: Callable[..., Any]
    raises: type[BaseException] = KeyError
    times: int = 1
    calls: int = 0

    def __call__(self, *given: Any, **named: Any) -> Any:
        self.calls += 1
        if self.calls <= self.times:
            raise self.raises(self.name)
        return self.function(*given, **named)


def holders_of(function: Callable[..., Any]) -> Iterator[tuple[Any, str]]:
    for name, module in [*sys.modules.items()]:
        if name.startswith("orbweaver."):
            found = [key for key, value in vars(module).items() if value is function]
            yield from ((module, key) for key in found)


def functions_of(module: ModuleType) -> Iterator[tuple[str, Any, Callable[..., Any]]]:
    for name, value in vars(module).items():
        if inspect.isfunction(value) and value.__module__ == module.__name__:
            yield name, None, value
        if inspect.isclass(value) and value.__module__ == module.__name__:
            for key, method in vars(value).items():
                if inspect.isfunction(method) and not key.startswith("__"):
                    yield key, value, method


def staged() -> Stage:
    stage = Stage()
    robots = f"User-agent: *\nDisallow: /no\nSitemap: {MAP}\nSitemap: {FEED}\n"
    stage.web.put(f"{SITE}/robots.txt", answer(200, robots.encode()))
    kind = {"content-type": "text/html", "x-robots-tag": "max-snippet: 5"}
    page = Response(status=200, headers=kind, body=BODY, cookies=(b"a=1; Path=/",))
    stage.web.put(HOME, page)
    stage.web.put(OTHER, html("/no/a", "/two"))
    stage.web.put(MAP, answer(200, SITEMAP % SITE.encode(), content_type="text/xml"))
    stage.web.put(FEED, answer(200, ATOM, content_type="application/atom+xml"))
    return stage


async def crawled(stage: Stage) -> None:
    """Deliver all messages; failed ones return until they are dead-lettered."""
    bodies: list[tuple[Pack | str, int]] = [(stage.begin(ALL, HOME, OTHER), 1)]
    for _ in range(200):
        if not bodies:
            if not stage.world.sent:
                return
            mail = stage.world.sent.pop(0)
            stage.clock.at_ms += mail.delay_s * 1000
            bodies.append((mail.body, 1))
        body, receives = bodies.pop(0)
        if await stage.deliver(body, receives=receives):
            bodies.append((body, receives + 1))
    raise AssertionError("the crawl does not end")


async def check(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, raises: type[BaseException], times: int
) -> list[str]:
    """Crawl once for each function of a module with a fault; return the harmful ones."""
    harmful = []
    for name, owner, function in functions_of(module):
        if inspect.isgeneratorfunction(function) and owner is None and name == "stages":
            continue  # a generator that the others fill
        injection = Injection(owner, name, function, raises, times)

        def injected(*given: Any, _injection: Injection = injection, **named: Any) -> Any:
            return _injection(*given, **named)

        with monkeypatch.context() as patches:
            places = [(owner, name)] if owner is not None else holders_of(function)
            for holder, key in [*places]:
                patches.setattr(holder, key, injected)
            stage = staged()
            await crawled(stage)
        ended = outcomes(stage.world)
        lost = {HOME, OTHER} - ended.keys()
        counts = stage.counts(ALL)
        sums = sum(counts.get(key, 0) for key in ("fetched", "failed", "skipped", "redirected"))
        if stage.world.buried or lost or sums != counts["claimed"]:
            harmful.append(f"{module.__name__}.{name}: {ended} {counts}")
    return harmful


@pytest.mark.parametrize("name", READING)
async def test_function_of_reading_path_raises_once_and_crawl_ends(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module(f"orbweaver.{name}")
    assert await check(monkeypatch, module, KeyError, 1) == []


@pytest.mark.parametrize(
    "name", [name for name in READING if name.startswith(("parsing", "extraction"))]
)
async def test_function_of_parser_raises_always_and_crawl_ends(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = importlib.import_module(f"orbweaver.{name}")
    assert await check(monkeypatch, module, PanicException, 10_000) == []


async def test_page_raises_ends_as_unreadable_beside_others(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    read = "orbweaver.adapters.local.reader.read"
    real = importlib.import_module("orbweaver.worker.page_reading").read

    def raising(job: Any, *more: Any) -> Any:
        if job.url == HOME:
            raise KeyError("href")
        return real(job, *more)

    monkeypatch.setattr(read, raising)
    stage = Stage().serve({HOME: html(), OTHER: html("/two")})
    with caplog.at_level(logging.ERROR):
        assert await stage.deliver(stage.begin(CRAWL, HOME, OTHER)) == []
    assert outcomes(stage.world) == {HOME: "failed.unreadable", OTHER: "fetched.ok"}
    records = {record.url: record for record in stage.world.pages.values()}
    assert (records[HOME].status, records[HOME].title) == (200, None)
    assert (records[HOME].error or "").startswith("KeyError in adapters/local/reader.py, line ")
    assert stage.metrics.totals["PagesUnreadable"] == 1
    (logged,) = [one for one in caplog.records if one.message == "page.unreadable"]
    assert logged.exc_info is not None
    assert [one.url for pack in stage.sent() for one in getattr(pack, "targets", ())] == [
        f"{SITE}/two"
    ]


async def test_port_error_of_page_returns_pack() -> None:
    stage = Stage()

    async def busy(*_given: Any) -> Any:
        raise Transient("busy")

    stage.pack_fetcher._handler.handle = busy  # type: ignore[method-assign, assignment]
    assert await stage.deliver(stage.begin(CRAWL, HOME)) == []
    assert outcomes(stage.world) == {}
    assert [decode(mail.body) for mail in stage.world.sent] == [replace(pack_of(HOME), requeues=1)]
    assert stage.clock.now_ms() == NOW_MS


def test_exception_of_child_keeps_type_and_place() -> None:
    error = ReaderError("Traceback ...", "KeyError in parsing/page.py, line 1")
    assert type_and_place(error) == "KeyError in parsing/page.py, line 1"
