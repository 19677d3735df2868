"""Pages that earlier runs have without what is to be stored now: texts or bodies.

- A page lacks its text where its run kept no texts, and its body where that run kept none of its
  kind. `bodies = "all"` also lacks what was left out for its content type.
- The newest run that has a page decides, and runs that asked for such pages again are among them.
- They are asked for by a run of its own, which begins at them as a retry does at failures: as deep
  as each lay, by the options of today, and no URL beside them that an earlier run has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from orbweaver.frontier.resumption import within
from orbweaver.model.crawl import Counts, Crawl
from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord

MISSING = "missing"
_SITEMAPS = (Reason.SITEMAP, Reason.SITEMAP_INVALID)


def runs_of(crawl: Crawl, others: Iterable[Crawl], journals_s: int) -> tuple[Crawl, ...]:
    """List the runs whose pages a run may ask for again, oldest first."""
    return tuple(reversed(within(crawl, others, journals_s)))


def wants_more(crawl: Crawl, run: Crawl) -> bool:
    """Whether a crawl stores something of pages that a run did not."""
    return _of_pages(crawl, run) or _of_others(crawl, run)


def _of_pages(crawl: Crawl, run: Crawl) -> bool:
    bodies = crawl.bodies is not Bodies.OFF and run.bodies is Bodies.OFF
    return bodies or (crawl.texts and not run.texts)


def _of_others(crawl: Crawl, run: Crawl) -> bool:
    """Whether what a run left out for its content type is wanted now."""
    return crawl.bodies is Bodies.ALL and run.bodies is not Bodies.ALL


def count_of(crawl: Crawl, runs: Iterable[Crawl], totals: Mapping[str, Counts]) -> int:
    """Count, about, the pages that lack something, from the counters of runs, oldest first."""
    number = 0
    for run in runs:
        total = totals[run.id]
        pages = total.get(Outcome.FETCHED, 0) + total.get(Outcome.UNCHANGED, 0)
        if _of_pages(crawl, run):
            number += pages
        elif run.retry_of is not None:
            number -= pages
        if _of_others(crawl, run):
            number += total.get(f"{Outcome.SKIPPED}.{Reason.CONTENT_TYPE}", 0)
    return max(0, number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """Which records of a run are of pages that lack something; as a selection of failures."""

    crawl: Crawl
    run: Crawl

    def takes(self, record: PageRecord) -> bool:
        """Whether a page is to be asked for again."""
        if record.reason in _SITEMAPS:
            return False
        if record.outcome in (Outcome.FETCHED, Outcome.UNCHANGED):
            return _of_pages(self.crawl, self.run)
        return record.reason is Reason.CONTENT_TYPE and _of_others(self.crawl, self.run)


def like(crawl: Crawl, run: Crawl) -> Crawl:
    """Make the crawl whose retry asks for these pages: of today's options, where the run began."""
    return replace(
        crawl,
        id=run.id,
        finished_at_ms=run.finished_at_ms,
        anchors=run.anchors,
        roots=run.roots,
    )


def alone(run: Crawl) -> Crawl:
    """Have a run ask for what it begins at, and for no link of that."""
    return replace(run, pages_max=len(run.references), shards=1)
