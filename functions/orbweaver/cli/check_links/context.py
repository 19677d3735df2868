"""Options of a check, and what its parts share: the store, and the status of URLs."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from orbweaver.cli.check_links import statuses
from orbweaver.cli.check_links.verdict import Verdict, judge, last_url, unverified
from orbweaver.cli.commands.crawl import checked
from orbweaver.cli.context import CliContext
from orbweaver.cli.crawl_options import given
from orbweaver.cli.exit_codes import UsageError
from orbweaver.cli.live.display import Lines
from orbweaver.cli.session import Session, store_session
from orbweaver.cli.store import opened_store
from orbweaver.model.outcome import Reason
from orbweaver.model.settings import STORE
from orbweaver.model.url_patterns import matches, problems_of

if TYPE_CHECKING:
    from orbweaver.model.page_record import PageRecord

DURATION_S = 600
# Stands for the URLs of a check whose options are checked before the URLs are known.
_EXAMPLE = "https://example.org/"


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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
        checked(replace(statuses.plan_of(self._limited), seeds=(_EXAMPLE,)), self.around)

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
        check = statuses.StatusCheck(
            session=session,
            plan=statuses.plan_of(self._limited),
            display=self.display(),
            cache_s=statuses.DAY_S if self.arguments.cache is None else self.arguments.cache,
            is_local=is_local,
        )
        wanted = dict.fromkeys(urls)
        refused = frozenset(check.refused(wanted))
        allowed = [url for url in wanted if url not in refused]
        known = await check.earlier()
        left = [url for url in allowed if url not in known]
        records = known | await check.request(left)
        return StatusResults(records, refused, earlier=len(allowed) - len(left))
