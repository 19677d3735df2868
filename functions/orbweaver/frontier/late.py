"""Late links: links that wait, unclaimed, until few URLs are in flight.

In an ordered crawl (frontier/kind_scores.py), these are links of kinds that brought little, of
unknown kinds, and links beyond the page limit. They are stored in *late packs*, in one backlog for
all hosts (frontier/backlog.py), ordered by band, then depth, then age. They are not claimed and
cost nothing, so they do not use the page limit.

    0      kinds that are claimed at once: beyond the limit, or too many for a kind's known results
    1      kinds with too few results: a few URLs were tried, or will be
    3, 4   unknown kinds whose relatives brought little
    3 - 6  kinds that brought little: the higher the band, the less

Band 2 is no longer used; packs stored in it earlier are sent in its place in the order.

A late pack is *due* when the crawl has few other URLs in flight (`few_out`). Then it is sent like
any message. If several workers process a crawl, packs of the first two bands are due earlier during
its first responses (`few_so_far`). By then, more is known about their kinds than about the kinds of
new links.

The links of a due pack are scored again. If some are of kinds that are now known to be fruitful,
these are claimed. Otherwise links of its own band or a better one are claimed, but no more of a
kind than may be in flight. The others wait again, in the same band or a higher one. Each time, at
least one link is claimed, or all move to a higher band, so no link waits forever.

A crawl with `stop_when_nothing_new` sends no packs of the bands from `NOTHING_NEW` on. It ends when
only such packs are left.

The commit that adds late packs counts them, and the commit of a late pack counts it as taken. The
crawl does not end while late packs wait, unless its limit is reached. Links that wait then are
*spared*.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import ceil
from typing import TypeAlias

from orbweaver.model.crawl import Counters, Crawl
from orbweaver.model.target import PACK_TARGETS_MAX, Target

# Replaces the host in the backlog's key; no origin has this form.
LANE = "late"
SURPLUS, UNKNOWN, DOUBTFUL, UNLIKELY, BANDS_MAX = 0, 1, 3, 4, 6
# Lowest scores of the bands.
BARREN = ((DOUBTFUL, 0.3), (UNLIKELY, 0.15), (5, 0.05))
# Fewer than 15 in a hundred URLs of kinds in this band and higher ones were fruitful.
NOTHING_NEW = 5
# In percent of done URLs: URLs in flight at which late packs are sent, URLs that are sent then, and
# URLs of unknown kinds that are sent instead. A small crawl waits until none is in flight.
OUT_PERCENT, SENT_PERCENT, UNKNOWN_PERCENT = 1, 5, 20
# If several workers process a crawl, some URLs are always in flight. Then a late pack of a kind not
# known to bring little is sent while at most SOON_OUT are in flight, and at most done / SOON_PART.
# After SOON_DONE responses, the usual rule allows as many in flight.
SOON_OUT, SOON_PART = 16, 4
SOON_DONE = 100 * SOON_OUT // OUT_PERCENT
# Longest time between two late packs of a host: a commit and two messages.
TAKEN_WITHIN_MS = 2_500
# Limit of waiting links, a multiple of the page limit, but at least WAITING_MIN.
WAITING_TIMES, WAITING_MIN = 10, 10_000

Banded: TypeAlias = tuple[int, Target]


def band_of(score: float) -> int:
    """Return the band for links of a kind that is known to bring little."""
    return next((band for band, least in BARREN if score >= least), BANDS_MAX)


def waiting_max(crawl: Crawl) -> int:
    """Return the number of links of a crawl that may wait."""
    return max(WAITING_MIN, WAITING_TIMES * crawl.pages_max)


def band_at(place: str) -> int:
    """Return the band of a late pack, from its place."""
    band = place.partition(".")[0]
    return min(int(band), BANDS_MAX) if band.isdecimal() else BANDS_MAX


def place_at(band: int, targets: Sequence[Target], at_ms: int, pack_id: str) -> str:
    """Return the place of a late pack."""
    depth = min(target.depth for target in targets)
    return f"{band}.{depth:06}.{at_ms:014}.{pack_id}"


def grouped(late: Sequence[Banded]) -> list[tuple[int, list[Target]]]:
    """Split links into packs of one band each, the same way every time.

    URLs with priority, which exceeded the limit, are in separate packs.
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
    """Return True if few URLs are in flight, not counting dead letters."""
    most = counters.done * OUT_PERCENT // 100
    return _out(counters) <= most + dead


def _out(counters: Counters) -> int:
    """Count the claimed URLs without an outcome, without retries unless most URLs fail."""
    out = counters.claimed - counters.done
    return out - counters.retrying if counters.retrying <= counters.done else out


def few_so_far(counters: Counters) -> bool:
    """Return True if few enough URLs are in flight to send a promising late pack early."""
    return _out(counters) <= min(SOON_OUT, counters.done // SOON_PART)


def late_least(crawl: Crawl) -> int:
    """Return the least number of links to request from a late pack.

    They keep its host busy until the next late pack arrives.
    """
    return min(PACK_TARGETS_MAX, max(1, TAKEN_WITHIN_MS // crawl.delay_ms)) if crawl.delay_ms else 1


def due(crawl: Crawl, counters: Counters) -> tuple[int, int]:
    """Return the number of late packs to send now, and the larger number for promising bands."""
    packs = counters.done / 100 / PACK_TARGETS_MAX
    left = ceil(counters.left(crawl) / PACK_TARGETS_MAX)
    few = max(1, min(ceil(packs * SENT_PERCENT), left))
    return few, max(few, min(int(packs * UNKNOWN_PERCENT), left))
