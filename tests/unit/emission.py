"""Output of the functions: containers over a world in memory, and their log lines.

A container is wired as on AWS, but with the ports of the memory adapters and a small web. On AWS,
CloudWatch reads the metrics from these lines.
"""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from orbweaver.app import container as app_container
from orbweaver.app import wiring
from orbweaver.extraction.extract import Field, ItemRule, ValueKind
from orbweaver.frontier.messages import encode, seeds_of
from orbweaver.model.auth import Login, OriginAuth, PageCheck
from orbweaver.model.crawl_settings import RenderMode
from orbweaver.politeness.host_schedule import Host
from orbweaver.rendering.task import NotRendered, RenderFailure
from orbweaver.worker.pack import Delivery
from tests.memory import ManualClock, World
from tests.memory.world import open_gate
from tests.unit.containers import FakeMessages, close, ports_over
from tests.unit.stage import CRAWL, NOW_MS, SITE, SmallWeb, answer, fail_on, html, pack_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    import pytest

    from orbweaver.adapters.aws.usage_meter import UsageMeter
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.http_exchange import Request
    from orbweaver.model.ports import Fetcher
    from orbweaver.model.settings import Settings
    from orbweaver.rendering.task import RenderResult, RenderTask, ResourceLoader
    from tests.memory.world import Gate

HOME = f"{SITE}/"
PRICE = Field(name="price", where=".price", type=ValueKind.PRICE, required=True)
BOOKS = ItemRule(name="books", match="/book", fields=(PRICE,))
BLOCKED = "https://blocked.example"
MEMBERS, CLOSED = "https://members.example", "https://closed.example"
ROBOTS = b"User-agent: *\nDisallow: /private"
LINKS = ("/book1", "/book2", "/gone", "/private", "/moved", "/flaky", "/app")


class NoBrowser:
    """A browser that does not start."""

    async def render(self, _task: RenderTask, _loader: ResourceLoader) -> RenderResult:
        return NotRendered(reason=RenderFailure.START, detail="it does not start")


@dataclass
class Function:
    """A container, its memory adapters, and its output lines."""

    world: World = field(default_factory=World)
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOW_MS))
    orders: FakeMessages = field(default_factory=FakeMessages)
    lines: list[dict[str, Any]] = field(default_factory=list)
    gate: Gate = open_gate

    def __post_init__(self) -> None:
        self.web = SmallWeb(self.clock)

    @contextlib.asynccontextmanager
    async def connect(self, settings: Settings, meter: UsageMeter) -> AsyncIterator[Any]:
        async def gate(effect: str, moment: Any) -> None:
            await self.gate(effect, moment)

        ports = ports_over(
            self.world,
            settings=settings,
            meter=meter,
            clock=self.clock,
            messages=self.orders,
            gate=gate,
        )
        vars(ports).update(renderer=NoBrowser())
        yield ports

    def invoke(self, run: Any) -> None:
        """Invoke the container once and record the line that it writes, if any."""
        with contextlib.redirect_stdout(io.StringIO()) as out:
            run()
        lines = [json.loads(line) for line in out.getvalue().splitlines()]
        assert len(lines) <= 1
        self.lines += lines

    @property
    def metrics(self) -> dict[str, set[str]]:
        """Return the names of written metrics by service; all belong to one stack."""
        found: dict[str, set[str]] = {}
        for line in self.lines:
            for directive in line["_aws"]["CloudWatchMetrics"]:
                assert directive["Namespace"] == "Orbweaver"
                assert directive["Dimensions"] == [["stack", "service"]]
                assert line["stack"] == "Orbweaver"
                names = {metric["Name"] for metric in directive["Metrics"]}
                assert all(isinstance(line[name], list) for name in names)
                found.setdefault(line["service"], set()).update(names)
        return found


@contextlib.contextmanager
def functions(
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[tuple[Function, app_container.Container]]:
    function = Function()

    def web(_ports: Any) -> Fetcher:
        return function.web

    monkeypatch.setattr(app_container, "connect", function.connect)
    monkeypatch.setattr(wiring, "fetcher_of", web)
    monkeypatch.setenv("ORBWEAVER_RECEIVE_MAX", "5")
    container = app_container.Container()
    try:
        yield function, container
    finally:
        close(container)


def crawl_everything(function: Function, container: app_container.Container) -> None:
    """Crawl until every counted event has occurred: all outcomes, retries, slots, items, faults."""
    web = function.web
    web.put(f"{SITE}/robots.txt", answer(200, ROBOTS, content_type="text/plain"))
    web.put(HOME, html(*LINKS))
    priced = b"<h1>x</h1><b class=price>%b</b>"
    for path, price in (("/book1", b"$1"), ("/book2", b"call us")):
        web.put(SITE + path, answer(200, priced % price, content_type="text/html", etag=path))
    web.put(f"{SITE}/moved", answer(301, location="/book1"))
    web.put(f"{SITE}/flaky", answer(500), html())
    empty = b"<div id=app></div><script src=app.js></script>"
    web.put(f"{SITE}/app", answer(200, empty, content_type="text/html"))
    crawl = replace(
        CRAWL,
        seeds=(HOME,),
        seeds_planned=1,
        obey_robots=True,
        items=(BOOKS,),
        pages_before=100,
        render=RenderMode.AUTO,
    )
    _crawl(function, container, crawl)
    # Crawl again: most pages are unchanged.
    for path in ("/book1", "/book2"):
        web.put(SITE + path, answer(304, None))
    again = replace(crawl, id="site-2", started_at_ms=function.clock.at_ms + 1, window_s=0)
    _crawl(function, container, again)
    _crawl_behind_logins(function, container)
    # A host with Retry-After: a deferred pack, and a deferred URL.
    blocked = Host(name=BLOCKED, blocked_until_ms=function.clock.at_ms + 600_000)
    function.world.hosts[BLOCKED] = blocked
    third = replace(crawl, id="site-3")
    function.world.crawls[third.id] = third
    _work(function, container, encode(pack_of(f"{BLOCKED}/", crawl=third.id)))
    mixed = pack_of(f"{BLOCKED}/", f"{SITE}/more", crawl=third.id, pack="1" * 32)
    _work(function, container, encode(mixed))
    web.before = _raise
    _work(function, container, encode(pack_of(f"{SITE}/fault", crawl=third.id, pack="2" * 32)))
    web.before = lambda _request: None
    # An invalid message, one of a newer version, and a failing table.
    _work(function, container, "{")
    _work(function, container, '{"v":2}')
    function.gate = fail_on("packs.journal")
    _work(function, container, encode(pack_of(f"{SITE}/other", crawl=third.id, pack="0" * 32)))
    function.gate = open_gate


def _crawl_behind_logins(function: Function, container: app_container.Container) -> None:
    """Log in, lose the session once, and fail to read the secret of another site."""
    form = b"<form method=post action=/sent><input type=password name=word></form>"
    function.web.put(f"{MEMBERS}/login", answer(200, form, content_type="text/html"))
    function.web.put(f"{MEMBERS}/sent", answer(302, location="/home"))
    function.web.put(f"{MEMBERS}/home", answer(200, b"<p>Welcome", content_type="text/html"))
    function.web.put(f"{MEMBERS}/page", answer(302, location="/login"), html())
    function.world.secrets["secret:word"] = "word"
    login = Login(
        url=f"{MEMBERS}/login",
        inputs=(("word", "secret:word"),),
        check=PageCheck(text="Welcome"),
    )
    auth = (
        OriginAuth(origin=MEMBERS, login=login),
        OriginAuth(origin=CLOSED, bearer="secret:none"),
    )
    seeds = (f"{MEMBERS}/page", f"{CLOSED}/")
    crawl = replace(CRAWL, auth=auth, cookies=True, seeds=seeds, seeds_planned=1)
    _crawl(function, container, replace(crawl, id="members"))


def _raise(_request: Request) -> None:
    raise KeyError("a fault while a page is read")


def export_a_day(function: Function, container: app_container.Container) -> None:
    event = {"day": "2026-11-21"}
    function.invoke(lambda: container.export(event, "request", 300_000))
    while function.orders.sent:
        order = {"Records": [{"body": function.orders.sent.pop(0)}]}
        function.invoke(lambda order=order: container.export(order, "another", 300_000))


def _crawl(function: Function, container: app_container.Container, crawl: Crawl) -> None:
    world = function.world
    world.crawls[crawl.id] = crawl
    for seeds in seeds_of(
        crawl.id, crawl.id, crawl.references, at_ms=crawl.started_at_ms, planned=True
    ):
        _work(function, container, encode(seeds))
    while world.sent:
        mail = min(world.sent, key=lambda mail: mail.delay_s)
        world.sent.remove(mail)
        function.clock.at_ms += mail.delay_s * 1000
        _work(function, container, mail.body)
    assert world.crawls[crawl.id].finished_at_ms is not None


def _work(function: Function, container: app_container.Container, body: str) -> None:
    delivery = Delivery(id="m", body=body, receives=1)
    function.invoke(lambda: container.process_batch([delivery], 60_000))
