"""Run crawls from Python programs, in a store of this machine or on a stack.

`AsyncClient` is for programs with an event loop, `Client` (library/blocking.py) for all others. A
method has the effect and the errors of the command with its name, except where its docstring
differs.

A callback gets each page of a crawl at least once. Each run with an incomplete delivery has a file
in the store. The file is deleted after the last page. If a finished run still has a file, the
delivery was interrupted. Then the next run of the same name delivers the pages of that run again.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from orbweaver.control.continuation import Start
from orbweaver.library.crawl_request import spec_of
from orbweaver.library.rows import AsyncCrawlRows, Columns, PageHook, Row
from orbweaver.model.amounts import plural
from orbweaver.model.columns import LINKS, ORIGIN, PAGES, TEXTS, Column, Table, Type
from orbweaver.model.crawl import State
from orbweaver.model.errors import Conflict
from orbweaver.model.item_rules import columns_of
from orbweaver.model.outcome import Outcome
from orbweaver.model.settings import STORE
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from orbweaver.adapters.sqlite.pages import SqlitePages
    from orbweaver.cli.session import Session
    from orbweaver.control.crawl_control import Status
    from orbweaver.extraction.extract import Extractor
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.page_record import PageRecord


FOLDER = "callbacks"


@value_class
class CrawlStatus:
    """The state and the counts of a crawl at one moment.

    `state` is running, paused, stopping or finished. `stop` is the reason why a finished crawl
    ended. `outcomes` has counts by outcome, `reasons` by outcome and reason.
    """

    id: str
    name: str
    state: str
    stop: str | None
    claimed: int
    done: int
    outcomes: Mapping[str, int]
    reasons: Mapping[str, int]
    started_at_ms: int
    finished_at_ms: int | None
    elapsed_s: float

    @property
    def ended(self) -> bool:
        return self.finished_at_ms is not None

    @property
    def pages(self) -> int:
        """Number of pages that were fetched."""
        return self.outcomes.get(Outcome.FETCHED, 0)

    def __str__(self) -> str:
        pages, claimed = plural(self.pages, "page"), plural(self.claimed, "URL")
        took = f"{self.elapsed_s:,.0f} s"
        return f"{self.id} {self.state}: {pages}, {self.done:,} of {claimed}, {took}"


class ClientClosedError(RuntimeError):
    """A method was called before the client was opened, or after it was closed."""


@dataclass(slots=True, kw_only=True)
class AsyncClient:
    """Crawls of one store or stack: an async context manager.

    - `store`: a folder, created if missing. `workers` is the number of processes, including this
      one. With 0, other processes must work on the store (`orbweaver serve`).
    - `stack`: the name of a stack on AWS, with `region` and the usual environment. `port` selects a
      stack on an emulator of this machine. A stack has its own workers.
    - `extractors`: functions by the names that `[[items]]` uses. They run in this process, without
      a worker's limits on CPU and memory for a page, and need `workers=1`.
    """

    store: str | Path | None = None
    stack: str | None = None
    region: str | None = None
    port: int | None = None
    workers: int = 1
    extractors: Mapping[str, Extractor] = field(default_factory=dict)
    _has_begun: bool = False
    _opened: AsyncExitStack | None = None
    _session: Session | None = None

    def __post_init__(self) -> None:
        names_stack = self.stack is not None or self.port is not None
        if names_stack and self.store is not None:
            raise ValueError("store names a folder, stack and port a stack: give one of them")
        if self.extractors and (names_stack or self.workers != 1):
            raise ValueError(
                "extractors are functions of this process: give them with a store and workers=1,"
                " or a module by `orbweaver crawl --extractor FILE`"
            )

    async def __aenter__(self) -> Self:
        """Open the store or stack. Raises PortError or StackUnreachable with a remedy."""
        self._opened = AsyncExitStack()
        try:
            self._session = await self._opened.enter_async_context(self._connected())
        except BaseException:
            await self.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Finish current requests, requeue URLs not yet requested, and close the client."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close the client. A second call does nothing."""
        opened, self._opened, self._session = self._opened, None, None
        if opened is not None:
            await opened.aclose()

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Session]:
        from orbweaver.cli import session

        if self.stack is None and self.port is None:
            from orbweaver.cli.store import opened_store

            folder = Path(self.store or STORE)
            opening = opened_store(
                folder, os.environ, works=self.workers, extractors=self.extractors
            )
            async with opening as ports:
                yield session.store_session(ports, works=self.workers > 0)
            return
        from orbweaver.cli.local_machine import ThisMachine, connect
        from orbweaver.cli.stack import StackPlace, environment_of, settings_of
        from orbweaver.model.settings import STACK

        machine = ThisMachine()
        try:
            target = "local" if self.port is not None else None
            environment = environment_of(target, machine, os.environ, self.region, port=self.port)
            settings = settings_of(self.stack or STACK, machine, environment)
            async with connect(settings, environment) as ports:
                place = StackPlace(machine=machine, settings=settings, environment=environment)
                yield session.stack_session(ports, place)
        finally:
            machine.close()

    @property
    def _now(self) -> Session:
        if self._session is None:
            raise ClientClosedError("the client is not open: use it within `async with`")
        return self._session

    # --- crawls -----------------------------------------------------------------------------

    async def start(
        self,
        seeds: str | Sequence[str] = (),
        definition: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> str:
        """Start a crawl, or continue the unfinished crawl with the same seeds. Return its id.

        `definition` is a decoded crawl.toml. `options` are the options of `orbweaver crawl` with
        underscores (`max_pages=300`, `delay="0s"`), and override the definition. `items` and
        `rules` are lists of tables, as in a crawl.toml. Raises ValueError with all mistakes.
        """
        spec, session = spec_of(seeds, definition, options), self._now
        control = session.control
        decision = await control.decide(
            spec, busy=lambda: self._has_begun or session.place.has_others()
        )
        try:
            begun = await control.execute(spec, decision)
        except Conflict:
            if not isinstance(decision, Start):
                raise
            # The id of a run contains its start in seconds, so the next second gives another id.
            await asyncio.sleep(1)
            begun = await control.start(spec)
        self._has_begun = True
        return begun.id

    async def status(self, crawl: str | None = None) -> CrawlStatus:
        """Read a crawl by id or name. None: the newest one. Raises UnknownCrawl."""
        return _status_of(await self._now.control.status(crawl))

    async def wait(
        self,
        crawl: str | None = None,
        *,
        on_page: PageHook | None = None,
        progress: Callable[[CrawlStatus], object] | None = None,
    ) -> CrawlStatus:
        """Wait until a crawl has ended.

        `on_page` is called for each stored page, with a row as in `pages`. It works only for a
        store, and pages come in the order in which they are stored. Each page is delivered at least
        once. After an exception, an interrupt or a crash, the next `wait` for a run of that name
        delivers the pages of the interrupted run again. `progress` is called with each new reading
        of the status. An exception in `on_page` is raised here, with the URL of the page in its
        notes.
        """
        session = self._now
        found = await session.control.find(crawl)
        feed = None if on_page is None else await PageFeed.open(session, found, on_page)
        while True:
            status = await self.status(found.id)
            if feed is not None:
                feed.deliver()
            if progress is not None:
                progress(status)
            if status.ended:
                if feed is not None:
                    feed.complete()
                return status
            await session.ports.clock.sleep(session.place.poll_s)

    async def pause(self, crawl: str) -> CrawlStatus:
        """Pause a crawl after its current requests."""
        return await self._after(self._now.control.pause(crawl))

    async def resume(self, crawl: str) -> CrawlStatus:
        return await self._after(self._now.control.resume(crawl))

    async def cancel(self, crawl: str) -> CrawlStatus:
        return await self._after(self._now.control.cancel(crawl))

    async def _after(self, change: Awaitable[Any]) -> CrawlStatus:
        return await self.status((await change).id)

    async def crawls(self) -> tuple[CrawlStatus, ...]:
        """List all crawls, newest first."""
        control = self._now.control
        found = [await control.status(crawl.id) for crawl in await control.crawls()]
        return tuple(map(_status_of, found))

    # --- results ----------------------------------------------------------------------------

    def pages(self, crawl: str | None = None) -> AsyncCrawlRows:
        """Return the rows of a crawl's pages, with the columns of exports (docs/records.md)."""
        return AsyncCrawlRows(lambda: self._pages(crawl), _fixed(PAGES))

    def items(self, crawl: str | None = None, rule: str | None = None) -> AsyncCrawlRows:
        """Return the valid items that a crawl extracted by `rule`: fields and source page.

        If `rule` is None, the items of all rules are returned.
        """

        async def columns() -> Columns:
            return _item_columns(await self._now.control.find(crawl), rule)

        return AsyncCrawlRows(lambda: self._items(crawl, rule), columns)

    def texts(self, crawl: str | None = None) -> AsyncCrawlRows:
        """Return the main texts of a crawl that stores them (`text=True`): text and Markdown."""
        return AsyncCrawlRows(lambda: self._texts(crawl), _fixed(TEXTS))

    def links(self, crawl: str | None = None) -> AsyncCrawlRows:
        """Return the links of the pages of a crawl that stores them (`links=True`)."""
        return AsyncCrawlRows(lambda: self._links(crawl), _fixed(LINKS))

    async def _pages(self, crawl: str | None) -> AsyncIterator[Row]:
        async for record in self._records(crawl):
            yield page_of(record)

    async def _items(self, crawl: str | None, rule: str | None) -> AsyncIterator[Row]:
        from orbweaver.exporting.chunk import item_row

        async for record in self._records(crawl):
            for item in record.extracted:
                if item.valid and rule in (None, item.table):
                    row = item_row(record, item)
                    yield timed(row if rule is not None else {"rule": item.table, **row})

    async def _texts(self, crawl: str | None) -> AsyncIterator[Row]:
        from orbweaver.exporting.chunk import text_row
        from orbweaver.exporting.unit_worker import text_of

        files = self._now.ports.files
        async for record in self._records(crawl):
            document = await text_of(record, files)
            if document is not None:
                yield timed(text_row(record, document))

    async def _links(self, crawl: str | None) -> AsyncIterator[Row]:
        from orbweaver.exporting.chunk import link_block, redirect_rows
        from orbweaver.exporting.unit_worker import links_of

        files = self._now.ports.files
        found = await self._now.control.find(crawl)
        async for record in self._records(found.id):
            block = link_block(record, await links_of(record, files))
            for row in redirect_rows(record, found) if block is None else block.each():
                yield timed({column.name: row.get(column.name) for column in LINKS.columns})

    async def _records(self, crawl: str | None) -> AsyncIterator[PageRecord]:
        control = self._now.control
        async for record in control.pages(await control.find(crawl)):
            yield record

    async def explain(self, url: str, crawl: str | None = None) -> str:
        """Explain what happened to a URL and why, one line per fact."""
        from orbweaver.app.wiring import explainer_of

        session = self._now
        _, told = await explainer_of(session.ports, session.control).explain(url, crawl)
        return "\n".join([told.verdict, *(f"{one.about}: {one.words}" for one in told.statements)])

    async def export(
        self,
        crawl: str | None = None,
        folder: str | Path = "out",
        formats: Sequence[str] = ("jsonl",),
    ) -> tuple[Path, ...]:
        """Write a crawl's tables as files below `folder`, and return the paths of the files."""
        from orbweaver.cli.export_files import ExportPlan, export_crawl

        found = await self._now.control.find(crawl)
        wanted = ExportPlan(folder=Path(folder), formats=tuple(formats))
        written = await export_crawl(self._now, found, wanted)
        return tuple(path for path, _, _ in written.parts)


def _fixed(table: Table) -> Callable[[], Coroutine[Any, Any, Columns]]:
    async def columns() -> Columns:
        return table.columns

    return columns


def _item_columns(crawl: Crawl, rule: str | None) -> Columns:
    """Return the columns of a rule's items. None: the columns with the same type in all rules."""
    tables = [(*columns_of(one), *ORIGIN) for one in crawl.items if rule in (None, one.name)]
    found: dict[str, Column] = {} if rule is not None else {"rule": Column(name="rule")}
    for column in (column for table in tables for column in table):
        found.setdefault(column.name, column)
    mixed = {column.name for table in tables for column in table if column != found[column.name]}
    return tuple(column for name, column in found.items() if name not in mixed)


def _status_of(status: Status) -> CrawlStatus:
    crawl, total = status.crawl, status.counters.total
    outcomes = {str(outcome): total.get(outcome, 0) for outcome in Outcome}
    reasons = {
        key: number
        for key, number in total.items()
        if "." in key and key.partition(".")[0] in outcomes
    }
    return CrawlStatus(
        id=crawl.id,
        name=crawl.name,
        state=str(crawl.state),
        stop=None if crawl.stop is None else str(crawl.stop),
        claimed=status.counters.claimed,
        done=status.counters.done,
        outcomes=outcomes,
        reasons=reasons,
        started_at_ms=crawl.started_at_ms,
        finished_at_ms=crawl.finished_at_ms,
        elapsed_s=status.elapsed_ms / 1000,
    )


@dataclass(slots=True, kw_only=True)
class PageFeed:
    """Calls a hook for each page of one or several runs, in the order in which pages are stored."""

    pages: SqlitePages
    folder: Path
    runs: Sequence[str]
    hook: PageHook
    behind: dict[str, int] = field(default_factory=dict)

    @classmethod
    async def open(cls, session: Session, crawl: Crawl, hook: PageHook) -> PageFeed:
        """Open the feed of a run, and of finished runs of its name with an incomplete delivery."""
        from orbweaver.app.store_ports import StorePorts

        if not isinstance(session.ports, StorePorts):
            raise ValueError(  # noqa: TRY004 - the value fits another place only
                "on_page is called for pages of a store: those of a stack are in `pages`"
            )
        folder = session.ports.folder / FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        interrupted = [
            run.id
            for run in reversed(await session.control.crawls())
            if run.name == crawl.name
            and run.id != crawl.id
            and run.state is State.FINISHED
            and (folder / run.id).exists()
        ]
        (folder / crawl.id).touch(mode=0o600)
        return cls(
            pages=session.ports.pages, folder=folder, runs=(*interrupted, crawl.id), hook=hook
        )

    def deliver(self) -> None:
        for run in self.runs:
            for number, record in self.pages.stored_after(self.behind.get(run, 0), run):
                try:
                    self.hook(page_of(record))
                except Exception as error:
                    error.add_note(f"on_page was called for {record.url}")
                    raise
                self.behind[run] = number

    def complete(self) -> None:
        for run in self.runs:
            (self.folder / run).unlink(missing_ok=True)


def page_of(record: PageRecord) -> Row:
    from orbweaver.exporting.chunk import page_row

    return timed(page_row(record))


def timed(row: Row) -> Row:
    for name, value in row.items():
        if name in _MOMENTS and value is not None:
            row[name] = datetime.fromtimestamp(value / 1000, UTC)
    return row


_MOMENTS = frozenset(column.name for column in PAGES.columns if column.type is Type.MOMENT)
