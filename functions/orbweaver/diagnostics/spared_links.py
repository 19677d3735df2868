"""Links of a crawl that wait to be asked for late, or were spared, by kind of URL.

How many there are is what the crawl has counted. Of which kinds they are is read from the late
packs that wait (frontier/late.py), the best first, up to `PACKS_READ`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Self

from orbweaver.diagnostics.refusal_report import KINDS_NAMED, Spared, SparedKind
from orbweaver.frontier.backlog import Backlog
from orbweaver.frontier.kind_scores import is_ordered
from orbweaver.frontier.late import LANE
from orbweaver.frontier.messages import Pack, decode
from orbweaver.model.crawl import Counters, Crawl
from orbweaver.model.url_kind import FOLDED_SHARE, Kinds, Shape, example_of, folded, kind_text

# Some 10,000 links, and 0.3 s to read.
PACKS_READ = 400


@dataclass(slots=True)
class _Links:
    weight: int = 0
    example: str = ""

    def see(self, url: str) -> None:
        self.weight += 1
        self.example = min(filter(None, (self.example, example_of(url))))

    def merge(self, other: Self) -> None:
        """Take in the links of another kind."""
        self.weight += other.weight
        self.example = min(filter(None, (self.example, other.example)), default="")


async def spared_links(crawl: Crawl, counters: Counters, backlog: Backlog) -> Spared:
    """Read which links of a crawl wait."""
    if not is_ordered(crawl) or not counters.late_links:
        return Spared()
    found, read = Kinds(_Links), 0
    for one in await backlog.standing(crawl.id, LANE, PACKS_READ):
        pack = decode(one.body)
        if not isinstance(pack, Pack):
            continue  # of a newer version
        for target in pack.targets:
            read += 1
            found.of(target.url).see(target.url)
    shapes = {shape: one for shape, one in found.all().items() if one.weight}
    places = folded({shape: one.weight for shape, one in shapes.items()}, FOLDED_SHARE * read)
    kinds: defaultdict[Shape, _Links] = defaultdict(_Links)
    for shape, links in shapes.items():
        kinds[places[shape]].merge(links)
    named = [
        SparedKind(kind=kind_text(shape), links=links.weight, example=links.example)
        for shape, links in kinds.items()
    ]
    named.sort(key=lambda one: (-one.links, one.kind))
    return Spared(links=counters.late_links, read=read, kinds=tuple(named[:KINDS_NAMED]))
