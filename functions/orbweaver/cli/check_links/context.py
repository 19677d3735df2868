"""Options of a check, its store, and the status of URLs.

The status comes from earlier checks in the store, or from a crawl with --status-only.
"""

from __future__ import annotations

import asyncio
import contextlib
from argparse import Namespace
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from orbweaver.cli import text
from orbweaver.cli.check_links.verdict import Verdict, judge, last_url, settled, unverified
from orbweaver.cli.commands.crawl import checked
from orbweaver.cli.context import CliContext
from orbweaver.cli.crawl_options import given
from orbweaver.cli.exit_codes import UsageError
from orbweaver.cli.live.display import Display, Lines
from orbweaver.cli.session import Session, Stalled, store_session
from orbweaver.cli.store import opened_store
from orbweaver.control.crawl_control import CLOSE_AT_ONCE_S
from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.control.spec_checks import SEEDS_MAX
from orbweaver.frontier.retrying import closing
from orbweaver.model.address_policy import verdict
from orbweaver.model.crawl import LINK_CHECK
from orbweaver.model.crawl_settings import Bodies, Scope
from orbweaver.model.errors import PortError
from orbweaver.model.named_origins import LOCALHOST, non_public_origin_of, port_of
from orbweaver.model.outcome import Reason
from orbweaver.model.settings import STORE
from orbweaver.model.url import hostname_of
from orbweaver.model.url_patterns import matches, problems_of
from orbweaver.model.value import positional_value_class, value_class

if TYPE_CHECKING:
    from orbweaver.control.progress.status import View
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.page_record import PageRecord

# All checks of a store share the results of this crawl.
NAME = LINK_CHECK
DAY_S = 86_400
# Time for requests that began before the end of a crawl.
GRACE_S = 5
DURATION_S = 600
# Stands for the URLs of a check whose options are checked before the URLs are known.
_EXAMPLE = "https://example.org/"


@positional_value_class
class StatusResults:
    """Records of requested URLs, and the URLs that a check must not request.

    `earlier` is the number of URLs with a result of an earlier check.
    """

    records: Mapping[str, PageRecord]
    refused: frozenset[str] = frozenset()
    earlier: int = 0

    def verdict(self, url: str) -> Verdict:
        if last_url(url, self.records) in self.refused:
            return unverified(url, Reason.ADDRESS)
        return judge(url, self.records)


@positional_value_class
class CheckContext:
    """A check with the options of its command."""

    arguments: Namespace
    around: CliContext

    @property
    def options(self) -> dict[str, Any]:
        return given(self.arguments)

    @property
    def external(self) -> bool:
        return not self.arguments.no_external

    def excludes(self, url: str) -> bool:
        patterns = tuple(self.arguments.exclude)
        return bool(patterns) and matches(patterns, url)

    def check_options(self) -> None:
        """Check the options before the first request. Raises UsageError."""
        for problem in problems_of(tuple(self.arguments.exclude)):
            raise UsageError(f"--exclude: {problem}")
        checked(replace(plan_of(self._limited), seeds=(_EXAMPLE,)), self.around)

    @property
    def _limited(self) -> dict[str, Any]:
        return {"duration_max_s": DURATION_S, **self.options}

    def display(self) -> Lines:
        """Show progress on the standard error, because the report goes to the standard output."""
        return Lines(self.around.err)

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        folder = self.around.folder / (self.arguments.store or STORE)
        async with opened_store(folder, self.around.environment, works=1) as ports:
            yield store_session(ports, works=True)

    async def statuses(
        self, session: Session, urls: Iterable[str], *, is_local: bool
    ) -> StatusResults:
        """Get the status of URLs. `is_local`: the user named a server of this machine."""
        check = StatusCheck(
            session=session,
            plan=plan_of(self._limited),
            display=self.display(),
            cache_s=DAY_S if self.arguments.cache is None else self.arguments.cache,
            is_local=is_local,
        )
        wanted = dict.fromkeys(urls)
        refused = frozenset(check.refused(wanted))
        allowed = [url for url in wanted if url not in refused]
        known = await check.earlier()
        left = [url for url in allowed if url not in known]
        records = known | await check.request(left)
        return StatusResults(records, refused, earlier=len(allowed) - len(left))


# --- status of URLs -------------------------------------------------------------------------------


async def run_crawl(session: Session, plan: CrawlSpec, display: Display) -> View:
    """Run a crawl to its end. If the command is interrupted, the crawl is cancelled.

    The crawl is also cancelled at the end of its time, because its URLs can wait for longer.
    """
    begun = await session.control.start(plan, goes_on=False)
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(plan.duration_max_s + GRACE_S):
                return await session.watch(begun.id, display)
        await session.control.cancel(begun.id, close_s=CLOSE_AT_ONCE_S)
        return await session.watch(begun.id, display)
    except Stalled as stalled:
        # URLs without an outcome are reported as not verified.
        return stalled.view
    except asyncio.CancelledError:
        with contextlib.suppress(PortError):
            await session.control.cancel(begun.id)
        raise


@value_class
class StatusCheck:
    """Requests the status of URLs. `plan` has the options of the user.

    Results of earlier checks count for `cache_s`. `is_local`: the user named a server of this
    machine, so links to its other servers may be requested.
    """

    session: Session
    plan: CrawlSpec
    display: Display
    cache_s: int
    is_local: bool

    async def request(self, left: Sequence[str]) -> dict[str, PageRecord]:
        """Return the records of the URLs, and of the URLs to which they redirect."""
        known: dict[str, PageRecord] = {}
        if left:
            self.display.say(f"checking {text.plural(len(left), 'other URL')}")
        for start in range(0, len(left), SEEDS_MAX):
            plan = replace(self.plan, seeds=tuple(left[start : start + SEEDS_MAX]))
            view = await run_crawl(self.session, plan, self.display)
            known |= await self._records(view.crawl)
        return known

    def refused(self, urls: Iterable[str]) -> Iterator[str]:
        """Yield the URLs with an address that only a user may name."""
        allowed = self.session.settings.fetching.allowed
        for url in urls:
            if self.is_local or non_public_origin_of(url) is None:
                continue
            name = hostname_of(url).strip("[]")
            address = "127.0.0.1" if name.rstrip(".").endswith(LOCALHOST) else name
            if verdict(address, port_of(url), allowed, frozenset()) is not None:
                yield url

    async def earlier(self) -> dict[str, PageRecord]:
        """Return the records of earlier checks that are fine or broken."""
        since_ms = self.session.ports.clock.now_ms() - self.cache_s * 1000
        known: dict[str, PageRecord] = {}
        # Oldest first, so that newer results replace them. A check that still runs counts, too.
        for run in reversed(await self.session.control.crawls()):
            if run.name == NAME and run.ended_ms(since_ms) >= since_ms:
                found = await self._records(run)
                known |= {url: one for url, one in found.items() if one.fetched_at >= since_ms}
        return settled(known)

    async def _records(self, run: Crawl) -> Mapping[str, PageRecord]:
        records = self.session.control.pages(run)
        async with closing(records):
            return {record.url: record async for record in records}


def plan_of(given: Mapping[str, object]) -> CrawlSpec:
    """Return the plan of a status check, without seeds. `given` are the options of the user."""
    # Headers can be secret, and each URL here is a seed, so that its host would get them.
    kept = {name: value for name, value in given.items() if name in _OPTIONS}
    fixed = CrawlSpec(
        name=NAME,
        scope=Scope.ANY,
        depth_max=0,
        window_s=0,
        sitemaps=False,
        status_only=True,
        bodies=Bodies.OFF,
    )
    return replace(fixed, **kept)  # type: ignore[arg-type] # options have the types of the fields


_OPTIONS = ("delay_ms", "concurrency", "obey_robots", "user_agents", "duration_max_s")
