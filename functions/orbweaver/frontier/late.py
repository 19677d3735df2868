"""Links that are asked for late: they wait, unclaimed, until nothing better is left.

Of a crawl that is ordered (frontier/kind_scores.py) these are the links of kinds that brought
little, of kinds of which nothing is known yet, and those beyond the page limit. They lie in *late
packs*, in one backlog for all hosts (frontier/backlog.py), in the order of their bands, then by
depth, then by age. Nothing was claimed or paid for them, so the limit is not touched.

    0      of kinds that are asked for at once: beyond the limit, or many for what is known of them
    1      of kinds of which too little is known: a few were tried, or are to be
    3, 4   of kinds of which nothing is known but that their relatives brought little
    3 - 6  of kinds that brought little; the higher, the less

Band 2 is no more: packs that were put there before are taken in their turn.

A late pack is *due* when the crawl has little else out (`few_out`). Then it is sent as any message.
In the first answers of a crawl on which several work, one of the first two bands is so while more
is out (`few_so_far`): more is known of its kinds by then than of those that pages go on naming. Its
links are judged anew, by what is known now. Those of kinds that are known to be fruitful go first;
else those of its own band, or a better one, are claimed as any link, but no more of a kind than may
be out. The others wait once more, in their band or a higher one. Each time at least one link of the
pack is claimed, or all go to a higher band, so no link waits for ever.

Of these, a crawl that is to stop when nothing new comes asks for none of the bands from
`NOTHING_NEW` on: it ends when only such packs are left.

A pack that puts late packs counts them in its commit, and a late pack that it is taken: the crawl
does not end while there are any, unless its limit is reached. What waits then is *spared*.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import ceil
from typing import TypeAlias

from orbweaver.model.crawl import Counters, Crawl
from orbweaver.model.target import PACK_TARGETS_MAX, Target

# What stands for a host in the key of the backlog; no origin looks like this.
LANE = "late"
SURPLUS, UNKNOWN, DOUBTFUL, UNLIKELY, BANDS_MAX = 0, 1, 3, 4, 6
# Scores from which on a kind belongs to a band.
BARREN = ((DOUBTFUL, 0.3), (UNLIKELY, 0.15), (5, 0.05))
# Of kinds in this band and those behind it, fewer than 15 in a hundred were fruitful.
NOTHING_NEW = 5
# Of a hundred URLs that are done, so many may be out when late packs are sent; and so many more are
# sent then, or of kinds that are not known, of which a few are tried. A small crawl waits until
# nothing is out.
OUT_PERCENT, SENT_PERCENT, UNKNOWN_PERCENT = 1, 5, 20
# Where several work on a crawl, something always is out. There the first late pack is sent, if it
# is of a kind not known to bring little, as soon as no more are out than this, or than this part of
# what is done. After so many answers as much is out when all are sent.
SOON_OUT, SOON_PART = 16, 4
SOON_DONE = 100 * SOON_OUT // OUT_PERCENT
# The time from one late pack of a host to the next one, at most: a commit and two messages.
TAKEN_WITHIN_MS = 2_500
# How many links wait at most, as a multiple of the limit, and at least.
WAITING_TIMES, WAITING_MIN = 10, 10_000

Banded: TypeAlias = tuple[int, Target]


def band_of(score: float) -> int:
    """Say in which band links of a kind wait that is known to bring little."""
    return next((band for band, least in BARREN if score >= least), BANDS_MAX)


def waiting_max(crawl: Crawl) -> int:
    """How many links of a crawl may wait."""
    return max(WAITING_MIN, WAITING_TIMES * crawl.pages_max)


def band_at(place: str) -> int:
    """Read the band of a late pack from its place."""
    band = place.partition(".")[0]
    return min(int(band), BANDS_MAX) if band.isdecimal() else BANDS_MAX


def place_at(band: int, targets: Sequence[Target], at_ms: int, pack_id: str) -> str:
    """Name the place of a late pack."""
    depth = min(target.depth for target in targets)
    return f"{band}.{depth:06}.{at_ms:014}.{pack_id}"


def grouped(late: Sequence[Banded]) -> list[tuple[int, list[Target]]]:
    """Cut links into packs of one band each; in the same way every time.

    URLs with priority, which the limit did not admit, travel apart from others.
    """
    bands: defaultdict[tuple[int, bool], list[Target]] = defaultdict(list)
    for band, target in late:
        bands[band, not target.express].append(target)
    return [
        (key[0], bands[key][start : start + PACK_TARGETS_MAX])
        for key in sorted(bands)
        for start in range(0, len(bands[key]), PACK_TARGETS_MAX)
    ]


def few_out(counters: Counters, dead: int = 0) -> bool:
    """Whether little is out, beside what lies in dead letters."""
    most = counters.done * OUT_PERCENT // 100
    return _out(counters) <= most + dead


def _out(counters: Counters) -> int:
    """Count the claimed URLs without an outcome, without retries unless most URLs fail."""
    out = counters.claimed - counters.done
    return out - counters.retrying if counters.retrying <= counters.done else out


def few_so_far(counters: Counters) -> bool:
    """Whether so little is out that a late pack of a kind that may be fruitful is looked at."""
    return _out(counters) <= min(SOON_OUT, counters.done // SOON_PART)


def late_least(crawl: Crawl) -> int:
    """How many links of a late pack are requested at least: a host is busy until the next comes."""
    return min(PACK_TARGETS_MAX, max(1, TAKEN_WITHIN_MS // crawl.delay_ms)) if crawl.delay_ms else 1


def due(crawl: Crawl, counters: Counters) -> tuple[int, int]:
    """How many late packs are to be sent now, beside what was asked for.

    Few, but more while they are of kinds that brought no little yet.
    """
    packs = counters.done / 100 / PACK_TARGETS_MAX
    left = ceil(counters.left(crawl) / PACK_TARGETS_MAX)
    few = max(1, min(ceil(packs * SENT_PERCENT), left))
    return few, max(few, min(int(packs * UNKNOWN_PERCENT), left))
