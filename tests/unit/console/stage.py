"""A console over its own store, reached over loopback."""

from __future__ import annotations

from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import ClientSession
from yarl import URL

from orbweaver.app.store_ports import StorePorts
from orbweaver.cli.audit.background import ExportedSites
from orbweaver.cli.query.confined import ExportTables
from orbweaver.cli.session import store_session
from orbweaver.console.actions import Actions
from orbweaver.console.runs import CrawlWatcher, MeteredReadings, WatchedRuns
from orbweaver.console.server import serving
from orbweaver.console.stored import Tickets
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord
from orbweaver.model.settings import Settings
from tests.memory import ManualClock
from tests.unit.stage import CRAWL, NOW_MS, SITE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiohttp import ClientResponse

TOKEN = "the-token-of-this-start"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
POLL_MS = 1_000
RUN = replace(CRAWL, seeds=(f"{SITE}/",), seeds_planned=1, started_at_ms=NOW_MS - 60_000)


@dataclass
class Stage:
    """An open store, its console and a client."""

    ports: StorePorts
    clock: ManualClock
    actions: Actions
    readings: list[str]
    client: ClientSession
    url: URL
    stored_port: int = 0

    async def ask(
        self, method: str, path: str, headers: dict[str, str] | None = None, **given: Any
    ) -> ClientResponse:
        url = URL(f"{self.url.origin()}{path}", encoded=True)
        named = BEARER if headers is None else headers
        return await self.client.request(method, url, headers=named, **given)

    async def get(self, path: str) -> Any:
        reply = await self.ask("GET", path)
        assert reply.status == 200, await reply.text()
        return await reply.json()

    async def post(self, path: str, body: Any = None) -> Any:
        reply = await self.ask("POST", path, json=body)
        assert reply.status == 200, await reply.text()
        return await reply.json()

    async def begin(self, *paths: str, **fields: Any) -> None:
        await self.ports.crawls.create(RUN)
        await self.ports.pages.store([record(path, **fields) for path in paths])


def record(path: str, **fields: Any) -> PageRecord:
    known: dict[str, Any] = {"outcome": Outcome.FETCHED, "reason": Reason.OK, "depth": 0}
    known |= {"crawl": RUN.id, "fetched_at": NOW_MS - 30_000, "content_type": "text/html"}
    return PageRecord(url=SITE + path, **{**known, **fields})


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Stage]:
    clock = ManualClock(NOW_MS)
    ports = StorePorts(Settings(), folder, clock=clock)
    session = store_session(ports)
    readings: list[str] = []
    read = MeteredReadings(session.read).read

    async def look(crawl: str) -> Any:
        readings.append(crawl)
        return await read(crawl)

    (folder / "queries").mkdir()
    tables = ExportTables(
        source=folder / "out", named=Path("out"), folder=folder / "queries", files=None
    )
    sites = ExportedSites(tables=tables)
    actions = Actions(
        ports=ports,
        control=session.control,
        runs=WatchedRuns(
            control=session.control,
            watching=CrawlWatcher(look, clock.now_ms, POLL_MS),
            where=session.place,
            clock=clock,
            newest=ports.pages.newest,
        ),
        where=session.place,
        tables=tables,
        sites=sites,
        tickets=Tickets(clock.now_ms),
    )
    try:
        async with (
            aclosing(sites),
            serving(actions, TOKEN, "127.0.0.1", 0) as url,
            ClientSession(auto_decompress=False) as client,
        ):
            stage = Stage(ports, clock, actions, readings, client, URL(url))
            stage.stored_port = (await stage.get("/console/about"))["stored_port"]
            yield stage
    finally:
        await ports.aclose()
