"""Count a crawl's late links (requested last, or never) by kind of URL.

The crawl's counter counts entries in packs of late links (frontier/late_links.py). Several entries
can have the same URL, so this module reads the packs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from orbweaver.diagnostics.refusal_report import KINDS_NAMED, Spared, SparedKind
from orbweaver.frontier.backlog import Backlog, WaitingPack
from orbweaver.frontier.claims import Claimer
from orbweaver.frontier.kind_scores import is_ordered
from orbweaver.frontier.late_links import LANE
from orbweaver.frontier.messages import Pack, decode
from orbweaver.frontier.retrying import all_of
from orbweaver.model.crawl import Counters, Crawl
from orbweaver.model.url_kind import FOLDED_SHARE, Kinds, Shape, example_of, folded, kind_text

if TYPE_CHECKING:
    from orbweaver.frontier.ports import Frontier

# Maximum number of packs to read: about 10,000 links, in 0.3 s.
PACKS_READ = 400
LOOKUPS_AT_ONCE = 16


@dataclass(slots=True)
class _Links:
    weight: int = 0
    example: str = ""

    def add(self, url: str) -> None:
        self.weight += 1
        self.example = min(filter(None, (self.example, example_of(url))))

    def merge(self, other: Self) -> None:
        self.weight += other.weight
        self.example = min(filter(None, (self.example, other.example)), default="")


async def spared_links(
    crawl: Crawl, counters: Counters, backlog: Backlog, frontier: Frontier, now_ms: int
) -> Spared:
    """Return the late links that wait at `now_ms`. Reads no pack if the counters show none."""
    if not is_ordered(crawl) or not counters.late_links:
        return Spared()
    # A URL can have several entries, because each worker remembers late links only for some
    # minutes. When the limit is reached, links are added without checking their claims (records of
    # queued URLs). So the first packs are read, which have the best links. Each URL counts once, or
    # not at all if this run or an earlier run had claimed it. The result is an upper bound if there
    # are more packs, or if claims might have been deleted.
    packs = await backlog.first_places(crawl.id, LANE, PACKS_READ)
    listed = _urls(packs)
    urls = await _unasked(crawl, tuple(dict.fromkeys(listed)), frontier)
    beyond = max(0, counters.late_links - len(listed)) if len(packs) == PACKS_READ else 0
    found, read = Kinds(_Links), len(urls)
    for url in urls:
        found.data_of(url).add(url)
    shapes = {shape: one for shape, one in found.heaviest().items() if one.weight}
    places = folded({shape: one.weight for shape, one in shapes.items()}, FOLDED_SHARE * read)
    kinds: defaultdict[Shape, _Links] = defaultdict(_Links)
    for shape, links in shapes.items():
        kinds[places[shape]].merge(links)
    named = [
        SparedKind(kind=kind_text(shape), links=links.weight, example=links.example)
        for shape, links in kinds.items()
    ]
    named.sort(key=lambda one: (-one.links, one.kind))
    kept = now_ms // 1000 < crawl.claim_expires_s(crawl.started_at_ms, 0)
    return Spared(
        links=read + beyond,
        read=read,
        exact=kept and not beyond,
        kinds=tuple(named[:KINDS_NAMED]),
    )


def _urls(packs: Sequence[WaitingPack]) -> list[str]:
    """Return the URLs of packs, one per entry. Packs of a newer version are skipped."""
    decoded = (decode(one.body) for one in packs)
    return [target.url for pack in decoded if isinstance(pack, Pack) for target in pack.targets]


async def _unasked(crawl: Crawl, urls: Sequence[str], frontier: Frontier) -> list[str]:
    """Return the URLs without a claim of this run or a claim made before this run's start."""
    began_ms = crawl.started_at_ms
    as_it_began = Claimer(
        name=crawl.name,
        crawl=crawl.id,
        pack="",
        at_ms=began_ms,
        stale_before_ms=crawl.stale_before_ms(began_ms),
        expires_s=0,
    )
    known = await frontier.known(as_it_began, urls)
    # Claims of later runs do not count.
    others = [url for url in urls if url in known.held - known.own]
    claims = await all_of((frontier.last_claim(crawl.name, url) for url in others), LOOKUPS_AT_ONCE)
    before = {
        url
        for url, claim in zip(others, claims, strict=True)
        if claim is not None and claim.at_ms < began_ms
    }
    return [url for url in urls if url not in known.own and url not in before]
