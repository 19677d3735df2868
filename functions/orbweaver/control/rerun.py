"""Start runs that retry failed URLs of a crawl.

A retried URL keeps its depth, so `limits.depth` still applies. URLs that were fetched after the
failure are excluded. The scope and the receivers of secret headers depend on the first run's seeds
(`anchors`).

A retry can be repeated at any time, even by two commands at once. URLs that an unfinished run
already retries are skipped. The ids of runs are numbered. If two commands use the same id, one
starts the run and the other returns it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING

from orbweaver.control.crawl_queries import CrawlQueries
from orbweaver.frontier.admission import prefixes, root_of
from orbweaver.frontier.envelope import CRAWL_ID_CHARS_MAX
from orbweaver.frontier.messages import SEEDS_REFERENCES_MAX
from orbweaver.frontier.refetch import (
    MissingContent,
    differing_settings,
    refetch_crawl,
    without_links,
)
from orbweaver.frontier.retrying import closing
from orbweaver.model.crawl import Crawl, State, first_hosts
from orbweaver.model.crawl_codec import digest_of
from orbweaver.model.crawl_settings import Scope
from orbweaver.model.errors import ControlError
from orbweaver.model.outcome import FAILURES, Outcome, Reason
from orbweaver.model.page_record import PageRecord
from orbweaver.model.target import Target
from orbweaver.model.url import host_of, hostname_of
from orbweaver.model.user_agent import OPEN_HEADERS
from orbweaver.model.value import value_class
from orbweaver.worker.pack_context import ERROR_CHARS_MAX

if TYPE_CHECKING:
    from orbweaver.frontier.ports import Crawls
    from orbweaver.model.ports import Clock


# Maximum number of failures to retry. With more, users must start a new crawl or select some.
FAILURES_MAX = 200_000
# Minimum bytes for seeds, even if the anchors take most of the bytes of the item.
ROOM_BYTES_MIN = 32 * 1024
# Maximum number and bytes of seeds of one retry run. The run is one DynamoDB item of at most 400
# KB.
SEEDS_MAX, SEEDS_BYTES_MAX = 10_000, 256 * 1024
# Reasons that count as a failure only if a user names them.
NAMED = (Reason.ROBOTS_UNREACHABLE,)
RETRIED = (*FAILURES, *NAMED)
_NUMBER = re.compile(r"-retry([0-9]+)$")


class RerunError(ValueError):
    """The URLs cannot be retried. The message contains the reason and an alternative."""


@value_class
class RetrySelection:
    """Selects failures by reasons and by host. The default selects all failures."""

    reasons: frozenset[Reason] = frozenset()
    host: str | None = None

    @classmethod
    def parse(cls, reasons: Iterable[str] = (), host: str | None = None) -> RetrySelection:
        """Parse reasons and a host as typed. Raises RerunError for an unknown reason."""
        for word in reasons:
            if word not in RETRIED:
                near = difflib.get_close_matches(word.lower(), RETRIED, n=1)
                hint = f"did you mean {near[0]}? They are " if near else "they are "
                raise RerunError(f"nothing fails for {word[:60]!r}: {hint}{', '.join(RETRIED)}")
        return cls(
            reasons=frozenset(map(Reason, reasons)),
            host=None if host is None else host.lower().rstrip("/"),
        )

    def matches(self, record: PageRecord) -> bool:
        if record.outcome is not Outcome.FAILED and record.reason not in self.reasons & {*NAMED}:
            return False
        if self.reasons and record.reason not in self.reasons:
            return False
        return self.host is None or self.host in _spellings(record.url)


def _spellings(url: str) -> tuple[str, str, str]:
    origin = host_of(url)
    return hostname_of(url), origin.partition("://")[2], origin


@dataclass(slots=True, kw_only=True)
class Failures:
    """Collects the failed URLs of a run, and their depths, from its records.

    Records must be added in order of days, so that a URL fetched on a later day is removed.
    """

    crawl: Crawl
    selection: RetrySelection | MissingContent
    depths: dict[str, int] = field(default_factory=dict)
    # Records of depth 0 by URL: they can be sitemaps, redirects of sitemaps, or redirects of seeds
    # out of scope.
    _begun: dict[str, PageRecord] = field(default_factory=dict)
    _roots: dict[str, None] = field(default_factory=dict)

    def add(self, record: PageRecord) -> None:
        """Add a record. Raises RerunError if there are too many failures."""
        if record.depth == 0:
            self._begun[record.url] = record
        if record.reason is Reason.WIDENED:
            self._note_root(record)
        if not self.selection.matches(record):
            self.depths.pop(record.url, None)
            return
        self.depths[record.url] = record.depth
        if len(self.depths) > FAILURES_MAX:
            raise RerunError(
                f"more than {FAILURES_MAX:,} URLs failed: choose some by --reason or --host, or"
                " start the crawl again"
            )

    def keep(self, number: int) -> None:
        """Keep only the first `number` URLs."""
        self.depths = dict(islice(self.depths.items(), number))

    def _note_root(self, record: PageRecord) -> None:
        url = record.error
        if self.crawl.scope is Scope.PREFIX and url and len(url) < ERROR_CHARS_MAX:
            self._roots[root_of(url, Target(url=record.url, depth=0))] = None

    @property
    def roots(self) -> tuple[str, ...]:
        """Folders outside the seeds' own folders, to which seeds redirected (scope `prefix`)."""
        return tuple(dict.fromkeys((*self.crawl.roots, *self._roots)))

    def is_sitemap(self, url: str) -> bool:
        """Whether a failed URL was requested as a sitemap, so that its retry is a sitemap, too."""
        for _ in range(len(self._begun)):
            record = self._begun.get(url)
            if url in self.crawl.sitemap_urls:
                return True
            if record is None:
                return False
            if record.reason in (Reason.SITEMAP, Reason.SITEMAP_INVALID):
                return True
            if record.referrer is None:
                return False
            if record.referrer.endswith("/robots.txt"):
                return True
            url = record.referrer
        return False


def base_of(crawl: Crawl) -> str:
    base = _NUMBER.sub("", crawl.id) if crawl.retry_of is not None else crawl.id
    return base[: CRAWL_ID_CHARS_MAX - 16]


def id_of(base: str, number: int) -> str:
    return f"{base}-retry{number}"


def next_number(base: str, ids: Iterable[str]) -> int:
    numbers = [
        int(found[1])
        for name in ids
        if (found := _NUMBER.search(name)) and name[: found.start()] == base
    ]
    return max(numbers, default=0) + 1


def rerun_of(crawl: Crawl, failures: Failures, run_id: str, now_ms: int) -> Crawl:
    """Make a run that retries as many of a crawl's failures as fit into one database item."""
    anchors = _anchors(crawl)
    taken = tuple(_some(failures.depths, anchors))
    sitemaps = tuple(url for url in taken if failures.is_sitemap(url))
    listed = frozenset(sitemaps)
    seeds = tuple(url for url in taken if url not in listed)
    headers = crawl.headers
    if not (crawl.anchors or crawl.seeds):  # Without seeds no host has got a secret.
        headers = tuple(pair for pair in headers if pair[0].lower() in OPEN_HEADERS)
    run = replace(
        crawl,
        id=run_id,
        # The run starts after all claims of the first run, even if this clock is slightly slow.
        started_at_ms=max(now_ms, (crawl.finished_at_ms or 0) + 1),
        seeds=seeds,
        seed_depths=tuple(failures.depths[url] for url in seeds),
        sitemap_urls=sitemaps,
        seeds_planned=-(-len(taken) // SEEDS_REFERENCES_MAX),
        retry_of=crawl.id,
        resumes=(),
        pages_carried=0,
        anchors=anchors,
        roots=failures.roots,
        headers=headers,
        hosts_counted=first_hosts(taken),
        quotas=(),
        edits=0,
        erased=(),
        continuous=False,
        state=State.RUNNING,
        stop=None,
        finished_at_ms=None,
        paused_at_ms=None,
        paused_ms=0,
        pages_before=None,
        announced=False,
    )
    return replace(run, work=digest_of(run))


def _anchors(crawl: Crawl) -> tuple[str, ...]:
    if crawl.anchors:
        return crawl.anchors
    if crawl.scope is Scope.PREFIX:
        return prefixes(crawl.scope_urls)
    return tuple(dict.fromkeys(f"{host_of(url)}/" for url in crawl.scope_urls))


def _some(depths: Mapping[str, int], anchors: Iterable[str]) -> Iterator[str]:
    """Yield the first URLs of `depths` that fit into a database item with the anchors."""
    taken = sum(len(anchor.encode()) for anchor in anchors)
    room = max(ROOM_BYTES_MIN, SEEDS_BYTES_MAX - taken)
    for place, url in enumerate(depths):
        room -= len(url.encode())
        if place == SEEDS_MAX or room < 0:
            return
        yield url


@value_class
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
        """Start runs for pages of `runs` (oldest first) of which `crawl` stores other content.

        They request at most as many pages as the page limit of `crawl` allows.
        """
        failures, _ = await self.outdated(crawl, runs)
        if failures is None:
            return ()
        failures.keep(crawl.pages_max)
        return await self._begin(refetch_crawl(crawl, failures.crawl), failures, without_links)

    async def outdated(
        self, crawl: Crawl, runs: Sequence[Crawl]
    ) -> tuple[Failures | None, frozenset[str]]:
        """Find pages of `runs` (oldest first) of which `crawl` stores other content.

        Returns them with the names of the settings that differ. Reads all records of the runs,
        unless all runs stored the same content as `crawl`. Then the result is None.
        """
        if not any(differing_settings(crawl, run) for run in runs):
            return None, frozenset()
        first = next(run for run in runs if run.retry_of is None)
        failures = Failures(crawl=first, selection=MissingContent(crawl=crawl, run=first))
        named: dict[str, tuple[str, ...]] = {}
        try:
            for run in runs:
                failures.selection = content = MissingContent(crawl=crawl, run=run)
                async for record in self.lookout.pages(run):
                    failures.add(record)
                    named[record.url] = content.settings(record)
        except RerunError as error:
            fix = "--window 0s requests all pages of the crawl again"
            raise ControlError(f"more than {FAILURES_MAX:,} pages: {fix}") from error
        return failures, frozenset(name for url in failures.depths for name in named[url])

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
