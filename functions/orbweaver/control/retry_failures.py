"""Asking again for what failed: new runs of a crawl's name that begin at its failures.

A retry may be repeated, at any time and at once. What another run asks for again, and has not
ended, is not asked for twice. Ids are numbered: of two retries that make the same one, one begins,
and the other takes it over.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orbweaver.control.crawl_queries import Lookout
from orbweaver.control.rerun import (
    Failures,
    RerunError,
    RetrySelection,
    base_of,
    id_of,
    next_number,
    rerun_of,
)
from orbweaver.frontier.refetch import Lacking, alone, like, wants_more
from orbweaver.frontier.retrying import closing
from orbweaver.model.crawl import Crawl
from orbweaver.model.errors import ControlError

if TYPE_CHECKING:
    from orbweaver.frontier.ports import Crawls
    from orbweaver.model.ports import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrier:
    """Begins runs for what failed."""

    lookout: Lookout
    crawls: Crawls
    clock: Clock
    send: Callable[[Crawl], Awaitable[None]]

    async def retry(
        self, crawl: Crawl, reasons: Sequence[str], host: str | None
    ) -> tuple[Crawl, ...]:
        """Have failures asked for again; the runs that do so, none where nothing failed."""
        try:
            failures = Failures(crawl=crawl, selection=RetrySelection.of(reasons, host))
            async with closing(self.lookout.pages(crawl)) as records:
                async for record in records:
                    failures.see(record)
        except RerunError as error:
            raise ControlError(str(error)) from error
        return await self._begin(crawl, failures, lambda run: run)

    async def refetch(self, crawl: Crawl, runs: Sequence[Crawl]) -> tuple[Crawl, ...]:
        """Have pages asked for again of which earlier runs, oldest first, lack something."""
        if not any(wants_more(crawl, run) for run in runs):
            return ()
        first = next(run for run in runs if run.retry_of is None)
        failures = Failures(crawl=first, selection=Lacking(crawl=crawl, run=first))
        try:
            for run in runs:
                failures.selection = Lacking(crawl=crawl, run=run)
                async for record in self.lookout.pages(run):
                    failures.see(record)
        except RerunError as error:
            raise ControlError(str(error)) from error
        return await self._begin(like(crawl, first), failures, alone)

    async def _begin(
        self, crawl: Crawl, failures: Failures, finish: Callable[[Crawl], Crawl]
    ) -> tuple[Crawl, ...]:
        """Begin runs for what was collected, beside those that do so already."""
        runs: list[Crawl] = []
        crawls = await self.crawls.list() if failures.depths else ()
        for run in crawls:
            if run.retry_of == crawl.id and run.live and _takes_on(run, failures):
                await self.send(run)
                runs.append(run)
        base = base_of(crawl)
        number = next_number(base, (run.id for run in crawls))
        while failures.depths:
            run = finish(rerun_of(crawl, failures, id_of(base, number), self.clock.now_ms()))
            number += 1
            if not await self.crawls.create(run):
                # Another retry was faster, or the list did not show it yet.
                standing = await self.crawls.get(run.id)
                if standing is None or standing.retry_of != crawl.id or not standing.live:
                    continue
                run = standing
            if _takes_on(run, failures):
                await self.send(run)
                runs.append(run)
        return tuple(runs)


def _takes_on(run: Crawl, failures: Failures) -> bool:
    """Take off what a run asks for; whether that was anything."""
    taken = [url for url in run.references if failures.depths.pop(url, None) is not None]
    return bool(taken)
