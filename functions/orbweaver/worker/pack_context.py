"""The context of a pack at work: its crawl, what it has come to, and when asking must be over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from orbweaver.model.crawl_rules import said_of_target
from orbweaver.model.redacted_names import NO_ORIGINS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from orbweaver.budget.reservation import Purses
    from orbweaver.frontier.body_file import Kept
    from orbweaver.frontier.pack_result import Draft
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.page_record import PageRecord
    from orbweaver.model.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One pack's stay: its crawl, what it has come to, and when asking must be over.

    `before` holds the records of earlier runs, by URL; `seen` says which URLs the crawl is known
    to have claimed.
    """

    crawl: Crawl
    draft: Draft
    until_ms: int
    purses: Purses
    before: Mapping[str, PageRecord] = field(default_factory=dict)
    seen: Callable[[Iterable[str]], AbstractSet[str]] = frozenset().intersection
    # The origins that a person named, where a stack dials what is not public.
    named: frozenset[str] = NO_ORIGINS

    def end(self, target: Target, record: PageRecord, kept: Kept | None = None) -> None:
        """Note how a target ended; a rule may say that no record of it is kept."""
        recorded = said_of_target(self.crawl, target).record is not False
        self.draft.end(record, recorded=recorded)
        if kept is not None:
            self.draft.keep(kept)
