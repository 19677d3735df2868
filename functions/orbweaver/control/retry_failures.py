"""Start runs that retry failed URLs of a crawl.

A retry can be repeated at any time, even by two commands at once. URLs that an unfinished run
already retries are skipped. The ids of runs are numbered. If two commands use the same id, one
starts the run and the other returns it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orbweaver.control.crawl_queries import CrawlQueries
from orbweaver.control.rerun import (
    Failures,
    RerunError,
    RetrySelection,
    base_of,
    id_of,
    next_number,
    rerun_of,
)
from orbweaver.frontier.refetch import MissingContent, refetch_crawl, stores_more, without_links
from orbweaver.frontier.retrying import closing
from orbweaver.model.crawl import Crawl
from orbweaver.model.errors import ControlError

if TYPE_CHECKING:
    from orbweaver.frontier.ports import Crawls
    from orbweaver.model.ports import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrier:
    """Starts runs that retry failed URLs or fetch pages with missing content again."""

    lookout: CrawlQueries
    crawls: Crawls
    clock: Clock
    send: Callable[[Crawl], Awaitable[None]]

    async def retry(
        self, crawl: Crawl, reasons: Sequence[str], host: str | None
    ) -> tuple[Crawl, ...]:
        """Start runs that retry a crawl's failures, selected by reasons and host.

        Returns () if no such URL failed.
        """
        try:
            failures = Failures(crawl=crawl, selection=RetrySelection.parse(reasons, host))
            async with closing(self.lookout.pages(crawl)) as records:
                async for record in records:
                    failures.add(record)
        except RerunError as error:
            raise ControlError(str(error)) from error
        return await self._begin(crawl, failures, lambda run: run)

    async def refetch(self, crawl: Crawl, runs: Sequence[Crawl]) -> tuple[Crawl, ...]:
        """Start runs for pages of `runs` (oldest first) without a text or body that `crawl` stores.

        They request at most as many pages as the page limit of `crawl` allows.
        """
        if not any(stores_more(crawl, run) for run in runs):
            return ()
        first = next(run for run in runs if run.retry_of is None)
        failures = Failures(crawl=first, selection=MissingContent(crawl=crawl, run=first))
        try:
            for run in runs:
                failures.selection = MissingContent(crawl=crawl, run=run)
                async for record in self.lookout.pages(run):
                    failures.add(record)
        except RerunError as error:
            raise ControlError(str(error)) from error
        failures.keep(crawl.pages_max)
        return await self._begin(refetch_crawl(crawl, first), failures, without_links)

    async def _begin(
        self, crawl: Crawl, failures: Failures, finish: Callable[[Crawl], Crawl]
    ) -> tuple[Crawl, ...]:
        """Start runs for the collected URLs.

        The result includes unfinished runs that already retry some of these URLs. `finish` changes
        a new run before it is stored.
        """
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
                # Another command created the run first, or the list of crawls was not up to date.
                standing = await self.crawls.get(run.id)
                if standing is None or standing.retry_of != crawl.id or not standing.live:
                    continue
                run = standing
            if _takes_on(run, failures):
                await self.send(run)
                runs.append(run)
        return tuple(runs)


def _takes_on(run: Crawl, failures: Failures) -> bool:
    taken = [url for url in run.references if failures.depths.pop(url, None) is not None]
    return bool(taken)
