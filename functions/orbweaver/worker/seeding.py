"""Turn references from the seed queue into seeds, and seeds into links to claim.

References (loose messages) are URLs that people and programs send. A loose message claims no URL,
because its id changes when it is moved back from the dead-letter queue.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from orbweaver.frontier.admission import admit_again, admit_seed, admit_sitemap, admit_target
from orbweaver.frontier.crawl_scope import admit_dropped
from orbweaver.frontier.late_links import NOTHING_NEW, band_at
from orbweaver.frontier.messages import Loose, Pack, SeedsMessage, seeds_of
from orbweaver.frontier.pack_result import FoundLinks, PackResult, result_for
from orbweaver.model.crawl import DEFAULT_CRAWL, Crawl, default_crawl
from orbweaver.model.outcome import Refusal
from orbweaver.model.ports import Clock
from orbweaver.model.request_url import canonical_seed
from orbweaver.model.url import redacted

if TYPE_CHECKING:
    from orbweaver.frontier.ports import Crawls
    from orbweaver.frontier.queues import Queue

_log = logging.getLogger(__name__)


class Seeder:
    """Turns references from the seed queue into seeds of their crawl."""

    def __init__(self, *, queue: Queue, crawls: Crawls, clock: Clock) -> None:
        self._queue = queue
        self._crawls = crawls
        self._clock = clock

    async def send_seeds(self, origin: str, loose: Loose) -> str | None:
        """Send references again as messages of seeds, with ids that are derived from `origin`.

        Returns the reason if the references can never be crawled, else None.
        """
        usable = [reference for reference in loose.references if problem_of(reference) is None]
        if not usable:
            return f"no usable URL: {problem_of(loose.references[0])}"
        crawl = await crawl_for(self._crawls, loose.crawl, self._clock.now_ms())
        if crawl is None:
            return f"unknown crawl {loose.crawl[:60]!r}"
        at_ms, references = self._clock.now_ms(), loose.references
        # `origin` is the stable message id that SQS assigns, so a sender cannot choose the ids of
        # seeds.
        seeds = seeds_of(origin, crawl.id, references, at_ms=at_ms, planned=False, dropped=True)
        await self._queue.send_seeds(seeds, express=crawl.express)
        return None


def result_of(seeds: SeedsMessage, crawl: Crawl) -> PackResult:
    """Turn seeds and listed sitemaps into links to claim. Seeds of a retry keep their depths."""
    result = result_for(crawl)
    if seeds.planned:
        result.add_links(FoundLinks(counts={"seeds": 1}))
    if not crawl.live:
        result.add_links(_refused(Refusal.CLOSED, *seeds.references))
        return result
    depths = dict(zip(crawl.seeds, crawl.seed_depths, strict=False))
    for reference in seeds.references:
        try:
            url = canonical_seed(reference, tracking=crawl.removed_parameters)
        except ValueError as error:
            told = {"reference": redacted(reference), "error": str(error)}
            _log.info("seed.refused", extra=told)
            result.add_links(_refused(Refusal.INVALID, reference))
        else:
            result.add_links(_begin(seeds, crawl, url, depths.get(url)))
    return result


def late_result(pack: Pack, crawl: Crawl, now_ms: int) -> PackResult:
    """Turn a pack of deferred links into links to claim, unless the crawl has stopped."""
    result = result_for(crawl)
    found = FoundLinks(admitted=pack.targets)
    if admit_target(crawl, now_ms) is not None:
        closed = _refused(Refusal.CLOSED, *(target.url for target in pack.targets))
        found = replace(closed, left=pack.targets)
    result.add_links(replace(found, counts=_taken_counts(pack)))
    return result


def _taken_counts(pack: Pack) -> dict[str, int]:
    """Count a late pack and its links as taken from the backlog."""
    counts = {"late_packs_taken": 1, "late_links_taken": len(pack.targets)}
    if band_at(pack.place) >= NOTHING_NEW:
        counts["late_barren_taken"] = 1
    return counts


def _begin(seeds: SeedsMessage, crawl: Crawl, url: str, depth: int | None) -> FoundLinks:
    if url in crawl.sitemap_urls:
        admitted = admit_sitemap(crawl, url)
    elif depth is not None:
        admitted = admit_again(crawl, url, depth)
    else:
        admitted = (
            admit_dropped(crawl, url)
            if seeds.dropped
            else admit_seed(crawl, url, planned=seeds.planned)
        )
    if isinstance(admitted, Refusal):
        return _refused(admitted, url)
    return FoundLinks(admitted=(admitted,))


def _refused(refusal: Refusal, *urls: str) -> FoundLinks:
    return FoundLinks(refused=((refusal, len(urls), urls),))


async def crawl_for(crawls: Crawls, crawl_id: str, at_ms: int) -> Crawl | None:
    """Return the crawl with this id. Create the default crawl if it does not exist."""
    crawl = await crawls.get(crawl_id)
    if crawl is None and crawl_id == DEFAULT_CRAWL:
        crawl = default_crawl(at_ms)
        await crawls.create(crawl)
    return crawl


def problem_of(reference: str) -> str | None:
    try:
        canonical_seed(reference)
    except ValueError as error:
        return str(error)
    return None
