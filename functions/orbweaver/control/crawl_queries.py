"""Query crawls: lists, states, records, reports. This module only reads and sends no request."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from orbweaver.frontier.resumption import same_crawl
from orbweaver.frontier.retrying import all_of, closing
from orbweaver.model.crawl import Counters, Counts, Crawl, State, default_crawl
from orbweaver.model.errors import ControlError, StoredNewer, UnknownCrawl
from orbweaver.model.outcome import SUCCESSES, Outcome
from orbweaver.model.page_record import PageRecord, shard_of
from orbweaver.model.request_url import canonical_seed, resolved_seed
from orbweaver.model.settings import Settings
from orbweaver.model.url import redacted, url_hash
from orbweaver.model.user_agent import identity_of
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from orbweaver.diagnostics.host_status import HostView
    from orbweaver.diagnostics.refusal_report import Report
    from orbweaver.frontier.backlog import Backlog
    from orbweaver.frontier.ports import Crawls, Frontier, Packs, Pages
    from orbweaver.frontier.queues import Queue
    from orbweaver.model.ports import Clock, Files
    from orbweaver.politeness.host_schedule import Host
    from orbweaver.politeness.ports import Hosts
    from orbweaver.politeness.robots_txt import RobotsVerdict

LOOKUPS_AT_ONCE = 16
CRAWLS_OF_HOST_MAX = 20
# Maximum number of runs of a name to search for a run that requested URLs.
RUNS_LOOKED_AT = 20


@value_class
class Status:
    """A crawl and its counters at one moment."""

    crawl: Crawl
    counters: Counters
    at_ms: int

    @property
    def elapsed_ms(self) -> int:
        return self.crawl.ran_ms(self.at_ms)

    @property
    def pages_per_s(self) -> float:
        fetched = self.counters.total.get(Outcome.FETCHED, 0)
        return fetched * 1000 / self.elapsed_ms if self.elapsed_ms else 0.0


@value_class
class HostReport:
    """State of a host, its robots.txt decision on a URL, and the newest crawls with seeds there.

    `decided` is None without a URL or a stored robots.txt. `more` is the number of older crawls.
    """

    host: Host
    decided: RobotsVerdict | None
    crawls: tuple[tuple[Crawl, HostView], ...]
    more: int


@value_class
class ControlPorts:
    """Queue, tables, clock and settings of the operations on crawls.

    `refuse_without_proxies` returns why the workers must not request a crawl, or "".
    """

    queue: Queue
    crawls: Crawls
    packs: Packs
    pages: Pages
    hosts: Hosts
    clock: Clock
    settings: Settings
    refuse_without_proxies: Callable[[Crawl], Awaitable[str]] | None = None


class CrawlQueries:
    """Finds and describes crawls.

    `underway` returns a crawl's counts that this process has not committed yet.
    """

    def __init__(
        self, ports: ControlPorts, *, underway: Callable[[str], Counts] | None = None
    ) -> None:
        self._crawls = ports.crawls
        self._pages = ports.pages
        self._hosts = ports.hosts
        self._clock = ports.clock
        self._settings = ports.settings
        self._underway = underway

    async def find(self, which: str | None = None) -> Crawl:
        """Find a crawl by id, or else the newest run with fetched pages (`newest_fetching`)."""
        return (await self.newest_fetching(which))[0]

    async def _newest(self, which: str | None) -> Crawl:
        """Find a crawl by id, or the newest run of a name. None: the newest of all crawls."""
        if which is not None and (crawl := await self._crawls.get(which)) is not None:
            return crawl
        crawls = await self._crawls.list()
        found = next((crawl for crawl in crawls if which in (None, crawl.name)), None)
        for other in await self._crawls.newer():
            newest = found is None or other.started_at_ms >= found.started_at_ms
            if newest and which in (None, other.name):
                raise StoredNewer(other.said)
        if found is not None:
            return found
        if which is None:
            raise UnknownCrawl("there is no crawl yet")
        known = [word for crawl in crawls for word in (crawl.id, crawl.name)]
        near = difflib.get_close_matches(which, known, n=1)
        hint = f": did you mean {near[0]}?" if near else ""
        raise UnknownCrawl(f"no crawl has the id or name {redacted(which)!r}{hint}")

    async def runs(self, which: str | None = None) -> tuple[Crawl, ...]:
        """List the runs that `which` names, newest first: one for an id, all runs for a name."""
        newest = await self._newest(which)
        return (newest,) if which == newest.id else await self.with_older(newest)

    async def with_older(self, crawl: Crawl) -> tuple[Crawl, ...]:
        older = [
            run
            for run in await self._crawls.list()
            if run.name == crawl.name and run.started_at_ms < crawl.started_at_ms
        ]
        return (crawl, *older)

    async def with_same_crawl(self, crawl: Crawl) -> tuple[Crawl, ...]:
        """List a run and the ended runs of its crawl within its dedup window, newest first.

        A retry belongs to the crawl whose pages it requests again.
        """
        others = await self._crawls.list()
        known, first = {run.id: run for run in others}, crawl
        while first.retry_of in known:
            first = known[first.retry_of]
        anchor = replace(first, id=crawl.id, started_at_ms=crawl.started_at_ms)
        runs = (crawl, *same_crawl(anchor, others))
        return tuple(sorted(runs, key=lambda run: run.started_at_ms, reverse=True))

    async def newest_fetching(self, which: str | None = None) -> tuple[Crawl, Crawl]:
        """Find two runs: the newest that fetched pages or is live, and the newest of all.

        `which` is a name, or an id, for which only that run is considered. None: the name of the
        newest crawl. If no run fetched pages, the first result is the newest run that claimed URLs.
        """
        runs = await self.runs(which)
        found = await self._first(runs, SUCCESSES) or await self._first(runs, ("claimed",))
        return found or runs[0], runs[0]

    async def newest_requesting(self, which: str | None = None) -> Crawl:
        """Find the newest run of a name that claimed URLs or is live, else the newest run."""
        runs = await self.runs(which)
        return await self._first(runs, ("claimed",)) or runs[0]

    async def _first(self, runs: Sequence[Crawl], counted: Sequence[str]) -> Crawl | None:
        """Return the first run that is live or has one of the counters `counted`.

        A single run is returned in any case. None: no run qualifies.
        """
        if len(runs) == 1:
            return runs[0]
        for run in runs[:RUNS_LOOKED_AT]:
            if run.live:
                return run
            total = (await self._crawls.counters(run)).total
            if any(total.get(key) for key in counted):
                return run
        return None

    async def crawls(self) -> tuple[Crawl, ...]:
        return await self._crawls.list()

    async def unreadable(self) -> int:
        """Count the crawls that are not listed because a newer Orbweaver version stored them."""
        return len(await self._crawls.newer())

    async def status(self, which: str | None = None) -> Status:
        """Read a crawl (see `find`) and its counters.

        Until the crawl ends, uncommitted counts of this process are included.
        """
        crawl = await self.find(which)
        counters = await self._crawls.counters(crawl)
        if self._underway is not None and crawl.state is not State.FINISHED:
            counters = counters.with_uncommitted(self._underway(crawl.id))
        return Status(crawl=crawl, counters=counters, at_ms=self._clock.now_ms())

    async def hosts(
        self, which: str | None = None, others: Sequence[str] = ()
    ) -> tuple[HostView, ...]:
        """Describe a crawl's counted hosts, and the hosts `others`.

        Raises ControlError for an invalid host name.
        """
        from orbweaver.diagnostics.host_status import host_view, hosts_of, named

        status = await self.status(which)
        crawl = status.crawl
        try:
            named_too = [named(other) for other in others]
        except ValueError as error:
            raise ControlError(str(error)) from error
        names = dict.fromkeys((*hosts_of(crawl), *named_too))
        found = await asyncio.gather(*(self._hosts.read_host(name) for name in names))
        agent = self._settings.fetching.user_agent
        total = status.counters.total
        return tuple(host_view(crawl, total, host, status.at_ms, agent) for host in found)

    async def host(self, name: str, url: str | None = None) -> HostReport:
        """Describe a host, and whether its robots.txt allows `url`. Raises ControlError."""
        from orbweaver.diagnostics.host_status import host_view, hosts_of, named
        from orbweaver.politeness.robots_txt import parse

        try:
            known, wanted = named(name), None if url is None else canonical_seed(url)
        except ValueError as error:
            raise ControlError(str(error)) from error
        host, crawls = await asyncio.gather(self._hosts.read_host(known), self._crawls.list())
        begun = [crawl for crawl in crawls if known in hosts_of(crawl)]
        shown = begun[:CRAWLS_OF_HOST_MAX]
        counters = await all_of(map(self._crawls.counters, shown), LOOKUPS_AT_ONCE)
        now_ms, agent = self._clock.now_ms(), self._settings.fetching.user_agent
        decided = None
        if wanted is not None and host.robots is not None and host.robots.body is not None:
            crawl = shown[0] if shown else default_crawl(now_ms)
            token = identity_of(crawl, known, agent).token
            decided = parse(host.robots.body).decide(token, wanted)
        return HostReport(
            host=host,
            decided=decided,
            crawls=tuple(
                (crawl, host_view(crawl, read.total, host, now_ms, agent))
                for crawl, read in zip(shown, counters, strict=True)
            ),
            more=len(begun) - len(shown),
        )

    async def report(
        self,
        which: str | None = None,
        *,
        files: Files,
        backlog: Backlog,
        frontier: Frontier,
        records_max: int | None = None,
    ) -> Report:
        """Report the URLs that a crawl left out, by reason, and how its requests ended."""
        # Imported on use, because it is rarely needed at a cold start.
        from orbweaver.diagnostics.refusal_report import Examples, report_of
        from orbweaver.diagnostics.request_counts import RequestCounts, digests_of
        from orbweaver.diagnostics.spared_links import spared_links

        status = await self.status(which)
        total = status.counters.total
        refused = await self._crawls.samples(status.crawl.id)
        examples, counts, unread = Examples.for_crawl(total), RequestCounts(), False
        async with closing(self.pages(status.crawl)) as records:
            async for record in records:
                unread = counts.records == records_max
                if unread:
                    break
                counts.add(record)
                if not examples.is_complete:
                    examples.add(record)
        digests = await digests_of(counts.samples(), files)
        seeds = status.crawl.seeds
        requests = counts.requests(total, digests, seeds=seeds, unread=unread)
        known = dict.fromkeys(url for urls in refused.values() for url in urls)
        ended = await all_of((self._has_ended(url, status.crawl) for url in known), LOOKUPS_AT_ONCE)
        taken = {url for url, has in zip(known, ended, strict=True) if has}
        spared = await spared_links(status.crawl, status.counters, backlog, frontier, status.at_ms)
        return report_of(status.crawl, total, examples, refused, taken, requests, spared)

    async def _has_ended(self, url: str, crawl: Crawl) -> bool:
        try:
            return bool(await self.page(url, crawl))
        except ValueError:
            return False

    async def pages(
        self, crawl: Crawl, *, outcome: Outcome | None = None, limit: int | None = None
    ) -> AsyncIterator[PageRecord]:
        """Yield a crawl's page records, oldest day first, in no order within a day."""
        left = limit
        for day in self.days(crawl):
            for shard in range(self._pages.shards):
                async with closing(self._pages.read_shard(day, shard, crawl=crawl.id)) as rows:
                    async for _, record in rows:
                        if left is not None and left <= 0:
                            return
                        if outcome in (None, record.outcome):
                            left = None if left is None else left - 1
                            yield record

    async def page(self, url: str, crawl: Crawl | None = None) -> tuple[PageRecord, ...]:
        """Return a URL's records of the newest day that has any, newest first.

        If `crawl` is None, all crawls are searched. Raises ValueError for an invalid URL.
        """
        canonical_seed(url)  # raises ValueError
        crawls = (crawl,) if crawl is not None else await self._crawls.list()
        owners: dict[str, list[Crawl]] = {}
        for owner in crawls:
            for day in self.days(owner):
                owners.setdefault(day, []).append(owner)
        for day in sorted(owners, reverse=True):
            found = await self._look_up(url, day, owners[day])
            if found:
                return tuple(sorted(found, key=lambda record: -record.fetched_at))
        return ()

    async def _look_up(self, url: str, day: str, crawls: Sequence[Crawl]) -> list[PageRecord]:
        async def one(crawl: Crawl) -> PageRecord | None:
            wanted = resolved_seed(url, tracking=crawl.removed_parameters)
            if wanted is None:  # too long with all its parameters
                return None
            digest = url_hash(wanted)
            shard = shard_of(digest, self._pages.shards)
            # Reading starts after a key that sorts directly before the wanted key.
            before = f"{crawl.id}#{digest[:-1]}"
            rows = self._pages.read_shard(day, shard, after=before, crawl=crawl.id)
            async with closing(rows):
                async for key, record in rows:
                    if key >= f"{crawl.id}#{digest}":
                        return record if record.url == wanted else None
            return None

        found = await all_of(map(one, crawls), LOOKUPS_AT_ONCE)
        return [record for record in found if record is not None]

    def days(self, crawl: Crawl) -> tuple[str, ...]:
        """List the days for which a crawl can have records that have not expired."""
        now_ms = self._clock.now_ms()
        oldest_ms = now_ms - self._settings.retention.page_retention_s * 1000
        from orbweaver.exporting.manifest import days_between

        return days_between(max(crawl.started_at_ms, oldest_ms), crawl.ended_ms(now_ms))
