"""`metrics`: serve metrics of running crawls to Prometheus until interrupted.

- The counters of a crawl are read at most every `READ_MS`, however many scrapers ask. The list of
  crawls is read at most every `LIST_MS`, because reading it scans a table.
- An ended crawl is shown for `SHOWN_MS`, so that its last numbers are scraped.
- If the stack does not answer, the scrape fails. Otherwise old numbers would look new.
"""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from orbweaver.cli.command import command, option, stack_options
from orbweaver.cli.context import CliContext
from orbweaver.cli.exit_codes import UsageError
from orbweaver.cli.session import Session, chosen
from orbweaver.control.crawl_control import Status, UnknownCrawl
from orbweaver.frontier.retrying import all_of
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.errors import PortError

if TYPE_CHECKING:
    from aiohttp import web
    from prometheus_client.core import Metric

LISTEN = "127.0.0.1:9464"
READ_MS, LIST_MS, SHOWN_MS = 5_000, 60_000, 600_000
READ_AT_ONCE = 8


async def metrics(arguments: Namespace, around: CliContext) -> int:
    from aiohttp import web

    host, port = address(arguments.listen)
    async with chosen(arguments, around) as session:
        crawl = await session.control.find(arguments.crawl) if arguments.crawl else None
        board = Board(session=session, one=None if crawl is None else crawl.id)
        app = web.Application()
        app.router.add_get("/metrics", scraping(board))
        async with listening(app, host, port) as urls:
            around.note(*(f"listening on {url}/metrics" for url in urls))
            await asyncio.Event().wait()
    return 0


def address(text: str) -> tuple[str, int]:
    """Parse a typed address to host and port: `127.0.0.1:9464`, `[::1]:9464`, `:9464`."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65_535:  # noqa: PLR2004 - the highest port
        raise UsageError(f"--listen: {text[:60]!r} is no address: give HOST:PORT, like {LISTEN}")
    return host.removeprefix("[").removesuffix("]") or LISTEN.partition(":")[0], int(port)


@dataclass(slots=True, kw_only=True)
class Board:
    """Metrics of crawls, read on demand. Implements a collector of Prometheus's client library."""

    session: Session
    one: str | None = None
    _families: tuple[Metric, ...] = ()
    _read_at_ms: int | None = None
    _known: tuple[Crawl, ...] = ()
    _listed_at_ms: int | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def collect(self) -> Iterable[Metric]:
        return self._families

    async def read(self) -> None:
        """Read the metrics again if they are too old. Raises PortError."""
        async with self._lock:
            now_ms = self.session.ports.clock.now_ms()
            if self._read_at_ms is None or now_ms - self._read_at_ms >= READ_MS:
                self._families = await self._look(now_ms)
                self._read_at_ms = now_ms

    async def _look(self, now_ms: int) -> tuple[Metric, ...]:
        from orbweaver.cli.gauges import families

        session = self.session

        async def status(crawl_id: str) -> Status | None:
            try:
                return await session.control.status(crawl_id)
            except UnknownCrawl:  # deleted after its retention
                return None

        read = await all_of(map(status, await self._shown(now_ms)), READ_AT_ONCE)
        statuses = [one for one in read if one is not None]
        return tuple(families(statuses, await session.place.depths()))

    async def _shown(self, now_ms: int) -> list[str]:
        """Return the ids of the crawls to show, newest first."""
        from orbweaver.cli.gauges import CRAWLS_MAX

        if self.one is not None:
            return [self.one]
        if self._listed_at_ms is None or now_ms - self._listed_at_ms >= LIST_MS:
            crawls = await self.session.control.crawls()
            self._known = tuple(crawl for crawl in crawls if _current(crawl, now_ms))
            self._listed_at_ms = now_ms
        return [crawl.id for crawl in self._known[:CRAWLS_MAX]]


def _current(crawl: Crawl, now_ms: int) -> bool:
    if crawl.state is not State.FINISHED or crawl.finished_at_ms is None:
        return True
    return now_ms - crawl.finished_at_ms < SHOWN_MS


def scraping(board: Board) -> Callable[[web.Request], Awaitable[web.Response]]:
    from aiohttp import web

    async def scrape(request: web.Request) -> web.Response:
        from prometheus_client.exposition import choose_encoder

        try:
            await board.read()
        except PortError as error:
            return web.Response(status=503, text=f"cannot reach the stack: {error}\n")
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return web.Response(body=encode(board), headers={"content-type": content_type})

    return scrape


@asynccontextmanager
async def listening(app: web.Application, host: str, port: int) -> AsyncIterator[list[str]]:
    """Serve an application in an `async with` block. Yields its URLs without a trailing slash."""
    from aiohttp import web

    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            said = f"--listen: cannot listen on {host}:{port}: {error.strerror}"
            raise UsageError(said) from error
        yield [
            f"http://{f'[{name}]' if ':' in name else name}:{bound}"
            for name, bound, *_ in runner.addresses
        ]
    finally:
        await runner.cleanup()


_LISTEN = f"address of the metrics ({LISTEN}); port 0 selects a free one"
COMMANDS = (
    command(
        "metrics",
        metrics,
        option("--listen HOST:PORT", _LISTEN, default=LISTEN),
        option("--crawl ID", "only this crawl, by id or name (default: all running crawls)"),
        parents=(stack_options,),
    ),
)
