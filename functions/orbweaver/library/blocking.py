"""Run crawls from programs without an event loop: the methods of `library/client.py`.

The event loop runs in a thread, so this also works inside another loop, as in notebooks.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from orbweaver.library.client import AsyncClient, CrawlStatus
from orbweaver.library.crawl_request import spec_of
from orbweaver.library.rows import AsyncCrawlRows, Columns, CrawlRows, PageHook, Row
from orbweaver.model.errors import ControlError
from orbweaver.model.settings import STORE, workers_for
from orbweaver.model.value import value_class

T = TypeVar("T")

ROWS_AT_ONCE = 500


class Client:
    """Crawls of one store or stack: a context manager with the arguments of `AsyncClient`."""

    def __init__(self, **options: Any) -> None:
        self._client = AsyncClient(**options)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="orbweaver", daemon=True
        )
        self._thread.start()
        try:
            self._do(self._client.__aenter__())
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the client. A second call does nothing."""
        if self._loop is None or self._thread is None:
            return
        try:
            self._do(self._client.aclose())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = self._thread = None

    def start(
        self,
        seeds: str | Sequence[str] = (),
        definition: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> str:
        """Start a crawl and return its id. See `AsyncClient.start`."""
        return self._do(self._client.start(seeds, definition, **options))

    def status(self, crawl: str | None = None) -> CrawlStatus:
        """Read a crawl by id or name. None: the newest one."""
        return self._do(self._client.status(crawl))

    def wait(
        self,
        crawl: str | None = None,
        *,
        on_page: PageHook | None = None,
        progress: Callable[[CrawlStatus], object] | None = None,
    ) -> CrawlStatus:
        """Wait until a crawl has ended. Callbacks run in the client's thread."""
        return self._do(self._client.wait(crawl, on_page=on_page, progress=progress))

    def pause(self, crawl: str) -> CrawlStatus:
        return self._do(self._client.pause(crawl))

    def resume(self, crawl: str) -> CrawlStatus:
        return self._do(self._client.resume(crawl))

    def cancel(self, crawl: str) -> CrawlStatus:
        return self._do(self._client.cancel(crawl))

    def crawls(self) -> tuple[CrawlStatus, ...]:
        """List all crawls, newest first."""
        return self._do(self._client.crawls())

    def pages(self, crawl: str | None = None) -> CrawlRows:
        """Return the rows of a crawl's pages."""
        return self._rows(self._client.pages(crawl))

    def items(self, crawl: str | None = None, rule: str | None = None) -> CrawlRows:
        """Return the valid items that a crawl extracted by `rule`. None: by any rule."""
        return self._rows(self._client.items(crawl, rule))

    def texts(self, crawl: str | None = None) -> CrawlRows:
        """Return the main texts of a crawl that stores them."""
        return self._rows(self._client.texts(crawl))

    def links(self, crawl: str | None = None) -> CrawlRows:
        """Return the links of the pages of a crawl that stores them."""
        return self._rows(self._client.links(crawl))

    def explain(self, url: str, crawl: str | None = None) -> str:
        """Explain what happened to a URL and why, one line per fact."""
        return self._do(self._client.explain(url, crawl))

    def export(
        self,
        crawl: str | None = None,
        folder: str | Path = "out",
        formats: Sequence[str] = ("jsonl",),
    ) -> tuple[Path, ...]:
        """Write a crawl's tables as files below `folder`, and return the paths of the files."""
        return self._do(self._client.export(crawl, folder, formats))

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            work.close()
            raise RuntimeError("the client is not open: use it within `with`")
        task = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return task.result()
        except BaseException:
            task.cancel()  # Ctrl-C in the program's thread
            raise

    def _rows(self, rows: AsyncCrawlRows) -> CrawlRows:
        return CrawlRows(lambda: self._each(aiter(rows)), lambda: self._do(rows.columns()))

    def _each(self, rows: AsyncIterator[Row]) -> Iterator[Row]:
        async def some() -> list[Row]:
            found: list[Row] = []
            async for row in rows:
                found.append(row)
                if len(found) == ROWS_AT_ONCE:
                    break
            return found

        while found := self._do(some()):
            yield from found


@value_class
class Crawled:
    """A finished crawl in a store: status and results."""

    store: Path
    status: CrawlStatus

    @property
    def pages(self) -> CrawlRows:
        return self._rows(lambda client: client.pages(self.status.id))

    def items(self, rule: str | None = None) -> CrawlRows:
        """Return the valid items that the crawl extracted by `rule`. None: by any rule."""
        return self._rows(lambda client: client.items(self.status.id, rule))

    @property
    def texts(self) -> CrawlRows:
        """Return the main texts of the crawl's pages, if the crawl has `text=True`."""
        return self._rows(lambda client: client.texts(self.status.id))

    @property
    def links(self) -> CrawlRows:
        """Return the links of the crawl's pages, if the crawl has `links=True`."""
        return self._rows(lambda client: client.links(self.status.id))

    def _rows(self, rows: Callable[[Client], CrawlRows]) -> CrawlRows:
        def each() -> Iterator[Row]:
            with Client(store=self.store, workers=0) as client:
                yield from rows(client)

        def columns() -> Columns:
            with Client(store=self.store, workers=0) as client:
                return rows(client).columns()

        return CrawlRows(each, columns)


def crawl(
    seeds: str | Sequence[str] = (),
    definition: Mapping[str, Any] | None = None,
    *,
    store: str | Path = STORE,
    workers: int | None = None,
    on_page: PageHook | None = None,
    extractors: Mapping[str, Callable[..., Any]] | None = None,
    progress: bool | Callable[[CrawlStatus], object] = False,
    **options: Any,
) -> Crawled:
    """Run a crawl to its end in a store (a folder on this machine), and return the result.

    `workers` is the number of processes. The default is the number of cores. With `extractors`, or
    with a limit of at most 5,000 pages, the default is one process. `progress=True` updates a line
    on standard error every second. An interrupt or an exception in a callback pauses the crawl and
    is raised. The same call then continues the crawl. For other arguments see `AsyncClient.start`
    and `AsyncClient.wait`.
    """
    wanted = spec_of(seeds, definition, options)
    number = workers or (1 if extractors else workers_for(wanted.pages_max))
    show = _Line() if progress is True else progress or None
    with Client(store=store, workers=number, extractors=extractors or {}) as client:
        begun = client.start(seeds, definition, **options)
        try:
            status = client.wait(begun, on_page=on_page, progress=show)
        except BaseException:  # Ctrl-C, or an exception in a callback
            with contextlib.suppress(ControlError):  # the crawl may have ended
                client.pause(begun)
            raise
    if isinstance(show, _Line):
        show.end()
    return Crawled(store=Path(store), status=status)


class _Line:
    """A progress line that overwrites itself."""

    def __init__(self) -> None:
        self._shown_s = -1

    def __call__(self, status: CrawlStatus) -> None:
        if status.ended or int(status.elapsed_s) != self._shown_s:
            self._shown_s = int(status.elapsed_s)
            print(f"\r{status}\x1b[K", end="", file=sys.stderr, flush=True)  # noqa: T201 - asked for

    def end(self) -> None:
        print(file=sys.stderr)  # noqa: T201
