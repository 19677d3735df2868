"""Late links: links that wait, unclaimed, until few URLs of the crawl are in flight.

They wait in packs (messages with up to 25 URLs), in one backlog for all hosts. The order is by band
(how little new content they promise), depth and age. They do not count towards the page limit.
docs/protocol.md describes when they are sent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import ceil
from typing import TypeAlias

from orbweaver.model.crawl import Counters, Crawl
from orbweaver.model.target import PACK_TARGETS_MAX, Target

# Used instead of a host in the backlog's key. No origin has this form.
LANE = "late"
# Bands, in the order of sending. SURPLUS: links of kinds that are claimed at once, if they are
# beyond the page limit or too many for the known results. UNKNOWN: kinds with too few results.
# DOUBTFUL, UNLIKELY: kinds without results whose related kinds brought little. DOUBTFUL to
# BANDS_MAX: kinds that brought little, and less in each higher band. Band 2 is no longer used.
# Stored packs of it are sent in this order too.
SURPLUS, UNKNOWN, DOUBTFUL, UNLIKELY, BANDS_MAX = 0, 1, 3, 4, 6
# Pairs of a band and the lowest score of its links. Lower scores are in BANDS_MAX.
BARREN = ((DOUBTFUL, 0.3), (UNLIKELY, 0.15), (5, 0.05))
# The lowest band whose scores are below 0.15. A crawl with `stop_when_nothing_new` sends no packs
# of this and higher bands, and ends when only such packs are left.
NOTHING_NEW = 5
# Late packs are sent while the URLs in flight are at most OUT_PERCENT of the done URLs. A small
# crawl waits until none is in flight. The number of links sent is SENT_PERCENT of the done URLs.
OUT_PERCENT, SENT_PERCENT = 1, 10
# At most FEW_OUT kinds with few results have pending URLs (frontier/kind_learner.py). If several
# workers process a crawl, some URLs are always in flight. Then a late pack of the first two bands
# is sent while at most FEW_OUT URLs are in flight. After SOON_DONE responses, the usual rule allows
# as many in flight.
FEW_OUT = 16
SOON_DONE = 100 * FEW_OUT // OUT_PERCENT
# Longest time until a host gets its next late pack: a commit and two messages.
TAKEN_WITHIN_MS = 2_500
# Limit of waiting links, a multiple of the page limit, but at least WAITING_MIN.
WAITING_TIMES, WAITING_MIN = 10, 10_000

Banded: TypeAlias = tuple[int, Target]


def band_of(score: float) -> int:
    """Return the band for links of a kind that brought little, by the kind's score."""
    return next((band for band, least in BARREN if score >= least), BANDS_MAX)


def late_links_max(crawl: Crawl) -> int:
    return max(WAITING_MIN, WAITING_TIMES * crawl.pages_max)


def band_at(place: str) -> int:
    """Return the band of a late pack, from its place in the backlog."""
    band = place.partition(".")[0]
    return min(int(band), BANDS_MAX) if band.isdecimal() else BANDS_MAX


def place_at(band: int, targets: Sequence[Target], at_ms: int, pack_id: str) -> str:
    depth = min(target.depth for target in targets)
    return f"{band}.{depth:06}.{at_ms:014}.{pack_id}"


def group_by_band(late: Sequence[Banded]) -> list[tuple[int, list[Target]]]:
    """Split links into packs of one band each. The same links result in the same packs."""
    # URLs with priority (beyond the limit) are in separate packs.
    bands: defaultdict[tuple[int, bool], list[Target]] = defaultdict(list)
    for band, target in late:
        bands[band, not target.express].append(target)
    return [
        (key[0], bands[key][start : start + PACK_TARGETS_MAX])
        for key in sorted(bands)
        for start in range(0, len(bands[key]), PACK_TARGETS_MAX)
    ]


def has_few_in_flight(counters: Counters, dead: int = 0) -> bool:
    """Return True if few URLs are in flight, apart from `dead` URLs in dead letters."""
    most = counters.done * OUT_PERCENT // 100
    return _in_flight(counters) <= most + dead


def _in_flight(counters: Counters) -> int:
    """Count claimed URLs without an outcome. Retries count only if they exceed the done URLs."""
    out = counters.claimed - counters.done
    return out - counters.retrying if counters.retrying <= counters.done else out


def has_few_for_promising(counters: Counters) -> bool:
    """Return True if few enough URLs are in flight to send a promising late pack early."""
    return _in_flight(counters) <= FEW_OUT


def late_links_min(crawl: Crawl) -> int:
    """Return how many links of a late pack to claim at least, so that its host is never idle."""
    return min(PACK_TARGETS_MAX, max(1, TAKEN_WITHIN_MS // crawl.delay_ms)) if crawl.delay_ms else 1


def late_packs_due(crawl: Crawl, counters: Counters) -> int:
    """Return how many late packs to send now."""
    packs = ceil(counters.done * SENT_PERCENT / 100 / PACK_TARGETS_MAX)
    left = ceil(counters.urls_left(crawl) / PACK_TARGETS_MAX)
    return max(1, min(packs, left))
