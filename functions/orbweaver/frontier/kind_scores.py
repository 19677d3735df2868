"""Score groups of similar URLs (kinds) by the share of their requests that brought new content.

A requested URL is *fruitful* if its page was new or was the first to link to a new page. A kind
without results is scored by related kinds. Containers add their counts to counts that all of them
share.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import islice, product

from orbweaver.frontier.kind_count import MOST, TRIED_MIN, KindCount
from orbweaver.frontier.kind_shape import (
    coarse_shape,
    generalise_folders,
    generalise_numbers,
    generalise_parts,
    kind_key,
    parts_of,
    with_repeat_marks,
)
from orbweaver.frontier.seen_content import SeenContent, text_hash
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import ORDERED_PAGES_MAX
from orbweaver.model.url_kind import (
    AGAIN,
    ANY_QUERY,
    Kinds,
    Shape,
    varies,
)
from orbweaver.model.value import value_class

# The share of fruitful kinds is smoothed by CALM_WEIGHT imaginary kinds, half of them fruitful.
CALM_WEIGHT = 6
# From this number of mostly fruitless kinds on, all texts are compared.
FEW_KINDS = 2
# Each URL is counted three times: under its kind and under two wider kinds.
LEVELS = 3
KINDS_MAX = 200
# Limit of cached shapes. A full cache is cleared.
FOUND_MAX = 5_000
ASKED, FRUIT, OUT = COUNTED = ("a", "f", "o")
# Limits of the shapes that are looked up in shared counts, for one URL and for one query.
SHAPES_MAX, MARKS_MAX = 10_000, 16
# Limit of queries that are looked up in the shared counts, until these are read again.
OPEN_MAX = 500
# Keys of other shared counts: URLs in dead letters, late links, and files of
# frontier/seen_content.py.
DEAD, WAITING, FILES = "dead", "waiting", "met"


def is_ordered(crawl: Crawl) -> bool:
    """Return True if a crawl sorts its links by the scores of their kinds.

    Such a crawl has one counter shard and a limit of at most ORDERED_PAGES_MAX pages.
    """
    return crawl.shards == 1 and not crawl.continuous and crawl.pages_max <= ORDERED_PAGES_MAX


def shared_counts_of(url: str, total: Mapping[str, int]) -> tuple[int, int] | None:
    """Return (requested, fruitful) of a URL's kind. None: no URL of it was requested.

    `total` are the counts that all workers share.
    """
    # Workers may have replaced parts of the shape by `*`, and it is unknown here which parts. So
    # all forms are looked up, and the one with the most requests is chosen.
    shape = coarse_shape(url)
    parts = [{one} for one in shape]
    for at in (1, 2):
        parts[at] |= {"*"} if shape[at] else set()
    for at, one in enumerate(shape[8:], 8):
        parts[at] = with_repeat_marks(parts[at] | ({"*"} if one else set()))
    named = set(islice(product(*map(sorted, parts)), SHAPES_MAX))
    unnamed = {(*some[:7], ANY_QUERY) for some in named if some[7]}
    shapes = {(*some, *again) for some in named | unnamed for again in ((), (AGAIN,))}
    found = [
        (total.get(ASKED + key, 0), total.get(FRUIT + key, 0)) for key in map(kind_key, shapes)
    ]
    asked, fruitful = max(found)
    # A URL may be counted as fruitful twice.
    return (asked, min(asked, fruitful)) if asked else None


def requested_in(total: Mapping[str, int]) -> int:
    return sum(count for key, count in total.items() if key.startswith(ASKED)) // LEVELS


@value_class
class KindScore:
    """The kind of a URL, with its counts and its score."""

    shape: Shape
    count: KindCount
    # Counts of all similar kinds, including this one.
    group: Mapping[Shape, KindCount]
    score: float
    # Number of requests for the other similar kinds.
    alike: int
    # Number of requests for the two wider kinds (same parameters, same folders). 0 unless this kind
    # has both parameters and two folders.
    beside: int

    @property
    def group_scheduled(self) -> int:
        return sum(one.scheduled for one in self.group.values())

    @property
    def group_not_requested(self) -> int:
        return sum(one.not_requested for one in self.group.values())

    @property
    def is_open(self) -> bool:
        """True if this kind of URLs has no results, and similar kinds have too few."""
        return self.count.requested == 0 and self.alike < TRIED_MIN


class KindScores:
    """Counts and scores of the kinds of a crawl's URLs."""

    def __init__(self) -> None:
        self.met = SeenContent()
        self._kinds = _kinds()
        # Wider kinds: the same parameters in all folders.
        self._everywhere = _kinds()
        # Wider kinds: all URLs of the same folders.
        self._folders = _kinds()
        self._shared: Mapping[str, int] = {}
        # Queries that remain merged, because shared counts show no reason to separate them.
        self._open: set[Shape] = set()
        # Kinds by shape. Valid until kinds are merged.
        self._found: dict[Shape, tuple[Shape, KindCount, KindCount, KindCount]] = {}
        self._state = (0, 0, 0)
        # Scores by shape. Valid until a URL is counted.
        self._scored: dict[Shape, KindScore] = {}
        # Counts of paths over all their parameters. Valid until a URL is counted.
        self._parametric: dict[Shape, KindCount] = {}
        # Kinds that differ only in numbers, namespaces and file types, by their common shape.
        self._alike: defaultdict[Shape, dict[Shape, KindCount]] = defaultdict(dict)
        # State of the kinds, and the number of responses when it was determined.
        self._mostly_fruitful = self._all_fruitful = self._many_barren = self._relevant_barren = (
            False
        )
        self._noted = self._counted = 0
        # Requested kinds and fruitful kinds in the shared counts, including wider kinds.
        self._of_all = (0, 0)
        # True if a kind is known to be fruitful (`is_rich`). Then kinds without results wait.
        self.rich = False

    def score_of(self, url: str) -> KindScore:
        narrow = self._shape(url)
        known = self._scored.get(narrow)
        if known is None:
            known = self._scored[narrow] = self._score(narrow)
        return known

    def _score(self, narrow: Shape) -> KindScore:
        # The prior is refined in this order, by each group that has results: MOST, other
        # parameters on the same paths, wider kinds, similar kinds.
        shape, count, *wider = self._counts(narrow)
        beside = KindCount()
        for wide in _telling(shape, *wider):
            beside.requested += wide.requested - count.requested
            beside.fruitful += wide.fruitful - count.fruitful
        prior = self._prior(shape, count)
        if beside.requested > 0:
            prior = beside.score(prior)
        near = KindCount()
        group = self._alike[generalise_numbers(shape)]
        for one in group.values():
            if one is not count:
                near.requested += one.requested - one.others
                near.fruitful += one.credited
        if near.requested:
            prior = near.score(prior)
        return KindScore(
            shape=shape,
            count=count,
            group=group,
            score=count.score(prior),
            alike=near.requested,
            beside=beside.requested if shape[2] and shape[7] else 0,
        )

    def _prior(self, shape: Shape, count: KindCount) -> float:
        if not shape[7]:
            return MOST
        if not self._parametric:
            for one, known in self._kinds.known.items():
                if one[7]:
                    total = self._parametric.setdefault(one[:7], KindCount())
                    total.requested += known.requested
                    total.fruitful += known.credited
        others = self._parametric.get(shape[:7], KindCount())
        asked = others.requested - count.requested
        fruitful = others.fruitful - count.credited
        return KindCount(requested=asked, fruitful=fruitful).score(MOST)

    def _forget(self) -> None:
        self._scored.clear()
        self._parametric.clear()

    def count(self, url: str) -> KindCount:
        return self._counts(self._shape(url))[1]

    @property
    def is_mostly_fruitful(self) -> bool:
        """True if most kinds are fruitful, so that ordering the links gains nothing."""
        self._look()
        return self._mostly_fruitful

    @property
    def is_all_fruitful(self) -> bool:
        """True if `is_mostly_fruitful` holds and no kind is mostly fruitless."""
        self._look()
        return self._all_fruitful

    @property
    def has_many_barren(self) -> bool:
        """True if several kinds are mostly fruitless, and not most kinds are fruitful.

        Then every page's text is compared.
        """
        self._look()
        return self._many_barren

    @property
    def has_relevant_barren(self) -> bool:
        """True if some kinds are mostly fruitless. Then workers must share results quickly."""
        self._look()
        return self._relevant_barren

    def _look(self) -> None:
        if self._noted == self._counted:
            return
        self._counted = self._noted
        asked = [one for one in self._kinds.known.values() if one.requested]
        fruitful = sum(one.is_fruitful_so_far for one in asked)
        own = (len(asked), fruitful)
        barren, of_all = (kinds > some for kinds, some in (own, self._of_all))
        some_barren = barren or of_all
        others_agree = not of_all or _are_most(*self._of_all)
        self._mostly_fruitful = _are_most(*own) and others_agree
        self._all_fruitful = self._mostly_fruitful and not some_barren
        mixed = len(asked) - fruitful >= FEW_KINDS
        self._many_barren = mixed and not self._mostly_fruitful
        self._relevant_barren = some_barren and not self._mostly_fruitful

    def note(self, url: str, *, asked: int = 1, fruitful: int = 0) -> None:
        """Count a requested URL. `fruitful` is 1 if its page is new or led to a new page.

        With `asked=0`, the URL was counted before, and only `fruitful` is added.
        """
        self._forget()
        self.note_sent(url)
        self._noted += 1
        counts = self._counts(self._shape(url))[1:]
        for count in counts:
            count.add(asked, fruitful)
        self.rich = self.rich or counts[0].is_rich

    def _counts(self, narrow: Shape) -> tuple[Shape, KindCount, KindCount, KindCount]:
        """Return the shape and counts of a kind, and the counts of its two wider kinds."""
        found = self._found.get(narrow)
        if found is not None and self._state == self._changes():
            return found
        shape, count = self._kinds.entry(narrow)
        self._recall(shape, count)
        named, wide = self._everywhere.entry(generalise_folders(narrow))
        self._recall(named, wide)
        named, folder = self._folders.entry(generalise_parts(narrow))
        self._recall(named, folder)
        state = self._changes()
        if state != self._state or len(self._found) >= FOUND_MAX:
            self._found.clear()
            self._forget()
            if state != self._state:
                self._alike.clear()
                for one, known in self._kinds.known.items():
                    self._alike[generalise_numbers(one)][one] = known
            self._state = state
        self._alike[generalise_numbers(shape)][shape] = count
        self._found[narrow] = (shape, count, wide, folder)
        return shape, count, wide, folder

    def _changes(self) -> tuple[int, int, int]:
        return (self._kinds.changes, self._everywhere.changes, self._folders.changes)

    def note_sent(self, url: str) -> None:
        """Record a URL to request. Later URLs that share a part with it get another kind."""
        own = text_hash(url)
        for _, key in parts_of(url):
            self.met.note_first(key, own)

    def _shape(self, url: str) -> Shape:
        """Return the shape of a URL, with a mark on each part that a URL requested before has."""
        # A URL is counted separately if it repeats a path, a part behind an id (such as a file
        # name) or a parameter value. It often shows the same content in another order, revision or
        # colour.
        shape = coarse_shape(url)
        if not self.met.shared:
            return shape if "?" not in url else self._narrowed(shape)
        own = text_hash(url)
        marked = list(self._narrowed(shape)) if "?" in url else list(shape)
        again = False
        for at, key in parts_of(url):
            if self.met.first_url(key, own) == own:
                continue
            if at == len(shape):
                again = True
            elif at < len(marked) and varies(marked[at]):
                marked[at] += AGAIN
        return (*marked, AGAIN) if again else tuple(marked)

    def _narrowed(self, shape: Shape) -> Shape:
        """Return a shape with `*` in each position for which the crawl has too many words."""
        # If there are too many queries to separate, only queries that are fruitful in the shared
        # counts are counted separately. Each container alone has results of only a few of them.
        narrowed = self._kinds.narrowed(shape)
        if not self._shared or narrowed[7] != ANY_QUERY or len(shape) == len(narrowed):
            return narrowed
        whole = (*narrowed[:7], *shape[7:])
        if whole in self._open or len(self._open) >= OPEN_MAX:
            return narrowed
        if not _with_marks(whole, self._shared).is_fruitful:
            self._open.add(whole)
            return narrowed
        self._kinds.keep_query(whole)
        return self._kinds.narrowed(shape)

    @property
    def untried_pending(self) -> int:
        """Number of kinds with few results and a pending URL, here or at other workers."""
        known = self._kinds.known.values()
        return sum(one.scheduled > one.requested and not one.has_ended_enough for one in known)

    @property
    def unshared_count(self) -> int:
        """Sum of counted requests and scheduled links that are not yet in the shared table."""
        known = self._kinds.known.values()
        return sum(one.asked_unshared + abs(one.out_unshared) for one in known)

    def unshared(self) -> dict[str, int]:
        """Return all counts that other containers cannot read yet, keyed by digests of kinds."""
        self._forget()  # `heaviest` may merge kinds
        found: dict[str, int] = {}
        for kinds in (self._kinds, self._everywhere, self._folders):
            for shape, count in kinds.heaviest().items():
                key = kind_key(shape)
                some = zip(COUNTED, count.unshared, strict=True)
                found |= {counted + key: urls for counted, urls in some if urls}
        return found

    def adopt_shared(self, told: Mapping[str, int], total: Mapping[str, int]) -> None:
        """Adopt the shared counts `total`, to which this container has just added its own."""
        self._forget()
        self._open.clear()
        self._shared = total
        self._of_all = _fruitful_in(total)
        # Update the state at the next access, including shared results.
        self._counted = -1
        for kinds in (self._kinds, self._everywhere, self._folders):
            for shape, count in kinds.heaviest().items():
                key = kind_key(shape)
                count.subtract_shared(*(told.get(counted + key, 0) for counted in COUNTED))
                self._recall(shape, count)
        self.rich = self.rich or any(one.is_rich for one in self._kinds.known.values())

    def _recall(self, shape: Shape, count: KindCount) -> None:
        """Adopt the shared counts of a kind if they include at least as many requests."""
        if not self._shared:
            return
        key = kind_key(shape)
        asked = self._shared.get(ASKED + key, 0) + count.asked_unshared
        fruitful = self._shared.get(FRUIT + key, 0) + count.fruitful_unshared
        out = self._shared.get(OUT + key, 0) + count.out_unshared
        # Other workers may have counted these URLs as fruitful or no longer scheduled.
        if asked >= count.requested:
            count.requested, count.fruitful, count.scheduled = (
                asked,
                max(fruitful, count.fruitful),
                out,
            )
        else:
            count.scheduled = max(count.scheduled, out)


def _telling(shape: Shape, parameters: KindCount, folder: KindCount) -> list[KindCount]:
    """Return which counts of wider kinds (`parameters`, `folder`) predict a kind's results."""
    # A kind with two folders and no parameters has no parameters in common with other kinds.
    if not shape[2]:
        return [parameters]
    return [parameters, folder] if shape[7] else [folder]


def _are_most(kinds: int, fruitful: int) -> bool:
    return fruitful + CALM_WEIGHT / 2 >= MOST * (kinds + CALM_WEIGHT)


def _fruitful_in(total: Mapping[str, int]) -> tuple[int, int]:
    asked = {key[1:]: urls for key, urls in total.items() if key.startswith(ASKED) and urls}
    fruitful = sum(2 * total.get(FRUIT + key, 0) >= urls for key, urls in asked.items())
    return len(asked), fruitful


def _with_marks(shape: Shape, total: Mapping[str, int]) -> KindCount:
    """Add up the shared counts `total` of a shape, with and without marks of repeated values."""
    parts = (sorted(with_repeat_marks({one})) for one in shape[8:])
    found = KindCount()
    for values in islice(product(*parts), MARKS_MAX):
        for again in ((), (AGAIN,)):
            key = kind_key((*shape[:8], *values, *again))
            found.add(total.get(ASKED + key, 0), total.get(FRUIT + key, 0))
    return found


def _kinds() -> Kinds[KindCount]:
    return Kinds(KindCount, KINDS_MAX, lambda known: known.is_fruitful)
