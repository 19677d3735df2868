"""Select pages of earlier runs to request again, because these runs stored no texts or bodies.

A separate run requests these pages as seeds, at their depths and with today's options.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from orbweaver.frontier.resumption import runs_to_continue
from orbweaver.model.crawl import Counts, Crawl
from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord
from orbweaver.model.value import value_class

MISSING = "missing"
_SITEMAPS = (Reason.SITEMAP, Reason.SITEMAP_INVALID)


def runs_of(crawl: Crawl, others: Iterable[Crawl], journals_s: int) -> tuple[Crawl, ...]:
    """List the earlier runs whose pages `crawl` can request again, oldest first.

    `journals_s` is how long journals are kept.
    """
    return tuple(reversed(runs_to_continue(crawl, others, journals_s)))


def stores_more(crawl: Crawl, run: Crawl) -> bool:
    """Return True if `crawl` stores content of pages that the earlier run `run` did not store."""
    return _of_pages(crawl, run) or _of_others(crawl, run)


def _of_pages(crawl: Crawl, run: Crawl) -> bool:
    bodies = crawl.bodies is not Bodies.OFF and run.bodies is Bodies.OFF
    return bodies or (crawl.texts and not run.texts) or (crawl.links and not run.links)


def _of_others(crawl: Crawl, run: Crawl) -> bool:
    """Return True if `crawl` wants files that `run` refused because of their content type."""
    return crawl.bodies is Bodies.ALL and run.bodies is not Bodies.ALL


def count_of(crawl: Crawl, runs: Iterable[Crawl], totals: Mapping[str, Counts]) -> int:
    """Estimate how many pages of `runs` (oldest first) have no stored content.

    `totals` are the counters of the runs, by id.
    """
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


@value_class
class MissingContent:
    """Selects records of `run` whose pages have content that only `crawl` stores."""

    crawl: Crawl
    run: Crawl

    def matches(self, record: PageRecord) -> bool:
        if record.reason in _SITEMAPS:
            return False
        if record.outcome in (Outcome.FETCHED, Outcome.UNCHANGED):
            return _of_pages(self.crawl, self.run)
        return record.reason is Reason.CONTENT_TYPE and _of_others(self.crawl, self.run)


def refetch_crawl(crawl: Crawl, run: Crawl) -> Crawl:
    """Return the crawl that requests the pages: options of `crawl`, scope of `run`."""
    return replace(
        crawl,
        id=run.id,
        finished_at_ms=run.finished_at_ms,
        anchors=run.anchors,
        roots=run.roots,
    )


def has_only_seeds(run: Crawl) -> bool:
    """Return True if a run requests only its seeds, as a run for missing content does.

    Other runs can have this form by chance.
    """
    return run.retry_of is not None and run.pages_max == len(run.references)


def without_links(run: Crawl) -> Crawl:
    """Return the run with a page limit that its seeds use up, so that it follows no links."""
    return replace(run, pages_max=len(run.references), shards=1)
