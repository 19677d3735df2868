"""Pages of a site for tests of kind learning (which groups of similar URLs bring new pages)."""

from __future__ import annotations

from dataclasses import replace

from orbweaver.frontier.kind_learner import KindLearner
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord

HOST = "https://wiki.example"


def page(path: str, title: str | None = None, **more: object) -> PageRecord:
    record = PageRecord(
        crawl="c-1",
        url=HOST + path,
        outcome=Outcome.FETCHED,
        reason=Reason.OK,
        fetched_at=0,
        depth=1,
        status=200,
        title=title,
        sha256="00",
    )
    return replace(record, **more)  # type: ignore[arg-type]


def learned(*records: PageRecord) -> KindLearner:
    """Return a learner that has read these pages, which have no text digests."""
    learner = KindLearner()
    for record in records:
        learner.learn(record)
    return learner
