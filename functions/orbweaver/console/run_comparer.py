"""Sections of a site, and comparison of two runs.

Both need all records of a run, and one API response cannot contain these. Results are cached for a
minute, because the browser requests them part by part.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from orbweaver.api.problems import Refused
from orbweaver.control.rule_trial import StoredReader
from orbweaver.diagnostics.run_comparison import (
    ComparedPage,
    PageDifference,
    SiteSections,
    compared,
    counts_of,
    state_of,
    text_diff,
)
from orbweaver.frontier.retrying import closing
from orbweaver.model.url import redacted

if TYPE_CHECKING:
    from orbweaver.app.ports import PortSet
    from orbweaver.control.crawl_control import Control
    from orbweaver.diagnostics.run_comparison import PageState
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.page_record import PageRecord

T = TypeVar("T")
# 100,000 page states take about 40 MB. Reading them costs a cent on AWS.
RECORDS_MAX = 100_000
KEPT_MAX, KEPT_MS = 4, 60_000
ELSEWHERE = "`orbweaver console --target aws` reads more"
PAGES_SHOWN = 200


@dataclass(slots=True, kw_only=True)
class RunComparer:
    """Computes sections and comparisons from all records of runs, and caches them."""

    ports: PortSet
    control: Control
    # Runs with more URLs are refused. None: no run is refused, and its first `RECORDS_MAX` records
    # are read.
    urls_max: int | None = None
    _kept: OrderedDict[tuple[str, ...], tuple[int, Any]] = field(default_factory=OrderedDict)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    # --- sections -------------------------------------------------------------------------------

    async def sections(self, crawl: str, at: str = "") -> dict[str, Any]:
        """Return the section `at` (host or path prefix) of a run's site, with its subsections."""
        owner = await self._run(crawl)
        made, read = await self._once(("sections", owner.id), lambda: self._sections(owner))
        hosts = list(made.whole.inner)
        # For a run with one host, the top level is the host's section, because users have no host
        # to choose.
        found = made.shown(at.rstrip("/") or (hosts[0] if len(hosts) == 1 else ""))
        if found is None:
            raise Refused(404, f"{owner.id} has nothing at {redacted(at)!a}")
        told = {"crawl": owner.id, "name": owner.name, "cut": read >= RECORDS_MAX}
        return {**told, "hosts": len(hosts), **found}

    async def _sections(self, crawl: Crawl) -> tuple[SiteSections, int]:
        found, read = SiteSections(), 0
        async with closing(self.control.pages(crawl, limit=RECORDS_MAX)) as records:
            async for record in records:
                found.add(record)
                read += 1
        return found, read

    # --- two runs -------------------------------------------------------------------------------

    async def changes(
        self, before: str, after: str, kind: str | None = None, text: str = ""
    ) -> dict[str, Any]:
        """Compare two runs: counts by difference, and the first pages.

        `kind` selects pages with this difference, `text` pages whose URL or title contains this
        text.
        """
        if kind is not None and kind not in set(PageDifference):
            raise Refused(400, f"{kind[:40]!a} is none of {', '.join(PageDifference)}")
        first, second = await self._run(before), await self._run(after)
        pages, cut = await self._once(
            ("changes", first.id, second.id), lambda: self._compared(first, second)
        )
        counts = counts_of(pages)
        wanted = [page for page in pages if _is_wanted(page, kind) and _has_text(page, text)]
        return {
            "before": {"id": first.id, "started_ms": first.started_at_ms},
            "after": {"id": second.id, "started_ms": second.started_at_ms},
            "counts": counts,
            "pages": [asdict(page) for page in wanted[:PAGES_SHOWN]],
            "more": max(0, len(wanted) - PAGES_SHOWN),
            "cut": cut,
        }

    async def _compared(self, before: Crawl, after: Crawl) -> tuple[list[ComparedPage], bool]:
        one, other = await self._states(before), await self._states(after)
        found = sorted(compared(one, other), key=lambda page: page.url)
        return found, RECORDS_MAX in (len(one), len(other))

    async def _states(self, crawl: Crawl) -> dict[str, PageState]:
        async with closing(self.control.pages(crawl, limit=RECORDS_MAX)) as records:
            return {record.url: state_of(record) async for record in records}

    async def text_changes(self, before: str, after: str, url: str) -> dict[str, Any]:
        texts: list[str] = []
        ports = self.ports
        reader = StoredReader(files=ports.files, reader=ports.reader, clock=ports.clock)
        for which in (before, after):
            crawl = await self.control.find(which)
            record = await self._record(crawl, url)
            found = (
                "there is no record of it" if record is None else await reader.text(crawl, record)
            )
            if isinstance(found, str):
                return {"why": f"{crawl.id}: {found}", "diff": None}
            texts.append(str(found.get("markdown") or found.get("text") or ""))
        diff = await asyncio.to_thread(text_diff, *texts)
        return {"why": None, "diff": asdict(diff)}

    async def _run(self, which: str) -> Crawl:
        """Find a run by id or name. Raises Refused if it is too large to read here."""
        status = await self.control.status(which)
        done = status.counters.done
        if self.urls_max is not None and done > self.urls_max:
            most = f"{self.urls_max:,} at most are read here"
            raise Refused(400, f"{status.crawl.id} has {done:,} URLs, and {most}: {ELSEWHERE}")
        return status.crawl

    async def _record(self, crawl: Crawl, url: str) -> PageRecord | None:
        try:
            records = await self.control.page(url, crawl)
        except ValueError as error:
            raise Refused(400, f"{redacted(url)!a} is no URL: {error}") from error
        return records[0] if records else None

    async def _once(self, key: tuple[str, ...], make: Callable[[], Awaitable[T]]) -> T:
        """Return the cached result of a key, or call `make`. Only one call runs at a time."""
        async with self._lock:
            now_ms = self.ports.clock.now_ms()
            known = self._kept.get(key)
            if known is None or now_ms - known[0] >= KEPT_MS:
                known = self._kept[key] = (now_ms, await make())
            self._kept.move_to_end(key)
            if len(self._kept) > KEPT_MAX:
                self._kept.popitem(last=False)
            found: T = known[1]
            return found


def _has_text(page: ComparedPage, text: str) -> bool:
    wanted = text.casefold()
    texts = (page.url, page.title_before or "", page.title or "")
    return any(wanted in one.casefold() for one in texts)


def _is_wanted(page: ComparedPage, kind: str | None) -> bool:
    if kind is None:
        return page.difference is not PageDifference.UNCHANGED
    return page.difference == kind
