"""What kinds of URLs have brought: which of them a crawl with a page limit asks for first.

A kind is the shape of a URL (model/url_kind.py) down to the second folder, and the names of its
parameters with values that are words. Of each kind is counted how many URLs were *asked* for, and
how many of them were *fruitful*: the page was new, or was the first to name one that was
(frontier/kind_learner.py).

Where paths have parameters the first URL of a path is told from the others, which often show the
same once more: in another order, revision or colour. So is the first with what stands behind an id
in a path, and with a value of a parameter, where values vary: a file or a product may be named
there.

The score of a kind is the share of its fruitful ones, begun as if `PRIOR_WEIGHT` URLs of it had
brought what the same parameters bring in other folders and, where there are two, what else its
folders bring (without parameters: that alone); before that is known, what other parameters of the
same paths bring; or `PRIOR` where nothing is known. Of kinds that differ in namespaces, numbers and
the files they are about alone, what the others bring says more, and takes the place of that.

Counts are those of one container, which adds them to those of others now and then: under digests
of kinds, so that no part of a URL is stored with them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice, product

from orbweaver.frontier.kind_count import PRIOR, KindCount
from orbweaver.frontier.kind_shape import (
    alike,
    coarse,
    everywhere,
    kind_key,
    parts_of,
    with_again,
    within,
)
from orbweaver.frontier.met import Met, text_hash
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import ORDERED_PAGES_MAX
from orbweaver.model.url_kind import (
    AGAIN,
    ANY_QUERY,
    Kinds,
    Shape,
    varies,
)

# So many URLs of kinds that are alike tell enough of a kind that none was asked for of.
ALIKE_MIN = 3
# Where this share of the kinds were fruitful, there is nothing to be gained by waiting: kinds count
# after so many others as `PRIOR` says, or so many answers while none is known that brings little.
# It is looked at anew after so many answers.
CALM, CALM_WEIGHT, CALM_NOTED, CALM_EACH = 0.68, 6, 64, 8
# Where no more kinds are met that are not alike, there is nothing to choose from, but for more
# links at a time that are of kinds that were not tried.
FEW_KINDS, FEW_UNTRIED = 2, 300
# What all have counted has each kind, and both wider ones.
LEVELS = 3
# Where so many kinds bring little, all texts are compared.
MIXED_KINDS = 2
KINDS_MAX = 200
# What is remembered of shapes, at most: then it begins anew.
FOUND_MAX = 5_000
ASKED, FRUIT, OUT = COUNTED = ("a", "f", "o")
# Shapes under which the kind of a URL is looked for; and those of a query that others may know.
SHAPES_MAX, MARKS_MAX = 10_000, 16
# Queries that are looked for so, at most, until all have counted more.
OPEN_MAX = 500
# Counted along: URLs in dead letters, links that wait, and files with what was met.
DEAD, WAITING, FILES = "dead", "waiting", "met"


def is_ordered(crawl: Crawl) -> bool:
    """Whether a crawl asks first for what brings something new: it has a page limit of its own."""
    return crawl.shards == 1 and not crawl.continuous and crawl.pages_max <= ORDERED_PAGES_MAX


def told_of(url: str, total: Mapping[str, int]) -> tuple[int, int] | None:
    """Say how many URLs of a URL's kind were asked for, and were fruitful, as all have counted.

    Which places of its shape are left open by now is not known: the kind that most were asked of.
    """
    shape = coarse(url)
    places = [{one} for one in shape]
    for at in (1, 2):
        places[at] |= {"*"} if shape[at] else set()
    for at, one in enumerate(shape[8:], 8):
        places[at] = with_again(places[at] | ({"*"} if one else set()))
    named = set(islice(product(*map(sorted, places)), SHAPES_MAX))
    unnamed = {(*some[:7], ANY_QUERY) for some in named if some[7]}
    shapes = {(*some, *again) for some in named | unnamed for again in ((), (AGAIN,))}
    found = [
        (total.get(ASKED + key, 0), total.get(FRUIT + key, 0)) for key in map(kind_key, shapes)
    ]
    asked, fruitful = max(found)
    return (asked, min(asked, fruitful)) if asked else None


def asked_in(total: Mapping[str, int]) -> int:
    """Count the URLs that all have asked for: each is counted by its kind and both wider ones."""
    return sum(count for key, count in total.items() if key.startswith(ASKED)) // LEVELS


@dataclass(frozen=True, slots=True, kw_only=True)
class KindScore:
    """What is known of the kind of a URL: its name, its counts, and its score.

    `group` has the counts of all that are alike, itself among them, and `alike` is how many URLs
    were asked for of the others; `beside` with the same parameters in other folders, and else in
    its folders, where it has both.
    """

    shape: Shape
    count: KindCount
    group: Mapping[Shape, KindCount]
    score: float
    alike: int
    beside: int

    @property
    def group_out(self) -> int:
        """How many URLs of kinds that are alike did not wait, as it stands by now."""
        return sum(one.out for one in self.group.values())

    @property
    def group_unasked(self) -> int:
        """How many URLs of kinds that are alike ended without an answer."""
        return sum(one.unasked for one in self.group.values())

    @property
    def is_open(self) -> bool:
        """Whether nothing is known of it but what kinds bring that are not much alike."""
        return self.count.asked == 0 and self.alike < ALIKE_MIN


class KindScores:
    """What the kinds of a crawl have brought."""

    def __init__(self) -> None:
        self.met = Met()
        self._kinds = _kinds()
        # The same parameters in all folders.
        self._everywhere = _kinds()
        # All of the same folders.
        self._folders = _kinds()
        self._shared: Mapping[str, int] = {}
        # Queries that are not told apart, by what all have counted.
        self._open: set[Shape] = set()
        # Kinds by shapes, while no kinds are put together.
        self._found: dict[Shape, tuple[Shape, KindCount, KindCount, KindCount]] = {}
        self._state = (0, 0, 0)
        # What is known of kinds, while nothing is counted.
        self._scored: dict[Shape, KindScore] = {}
        # And of paths with parameters, whichever these are.
        self._parametric: dict[Shape, KindCount] = {}
        # Kinds by what they are alike in.
        self._alike: defaultdict[Shape, dict[Shape, KindCount]] = defaultdict(dict)
        # Whether nearly all kinds are fruitful, or a few are not; and when that was looked at.
        self._calm = self._serene = self._mixed = self._doubtful = False
        self._noted = self._counted = 0
        # Whether what others have learned was read.
        self._told = False
        # Of how many kinds, wider ones among them, all have asked for some; how many were fruitful.
        self._of_all = (0, 0)
        # Whether a kind is known that is worth its requests: then others wait to be tried.
        self.rich = False

    def of(self, url: str) -> KindScore:
        """Say what is known of the kind of a URL."""
        narrow = self._shape(url)
        known = self._scored.get(narrow)
        if known is None:
            known = self._scored[narrow] = self._score(narrow)
        return known

    def _score(self, narrow: Shape) -> KindScore:
        shape, count, *wider = self._counts(narrow)
        beside = KindCount()
        for wide in _telling(shape, *wider):
            beside.asked += wide.asked - count.asked
            beside.fruitful += wide.fruitful - count.fruitful
        prior = self._prior(shape, count)
        if beside.asked > 0:
            prior = beside.score(prior)
        near = KindCount()
        group = self._alike[alike(shape)]
        for one in group.values():
            if one is not count:
                near.asked += one.asked - one.others
                near.fruitful += one.credited
        if near.asked:
            prior = near.score(prior)
        return KindScore(
            shape=shape,
            count=count,
            group=group,
            score=count.score(prior),
            alike=near.asked,
            beside=beside.asked if shape[2] and shape[7] else 0,
        )

    def _prior(self, shape: Shape, count: KindCount) -> float:
        """Say what other parameters bring on the paths of a kind."""
        if not shape[7]:
            return PRIOR
        if not self._parametric:
            for one, known in self._kinds.known.items():
                if one[7]:
                    total = self._parametric.setdefault(one[:7], KindCount())
                    total.asked += known.asked
                    total.fruitful += known.credited
        others = self._parametric.get(shape[:7], KindCount())
        asked = others.asked - count.asked
        fruitful = others.fruitful - count.credited
        return KindCount(asked=asked, fruitful=fruitful).score(PRIOR)

    def _forget(self) -> None:
        """Forget what is known of kinds: something is counted, or kinds are put together."""
        self._scored.clear()
        self._parametric.clear()

    def count(self, url: str) -> KindCount:
        """Return the counts of the kind of a URL."""
        return self._counts(self._shape(url))[1]

    @property
    def calm(self) -> bool:
        """Whether nearly all kinds are fruitful: then the order gains nothing."""
        self._look()
        return self._calm

    @property
    def serene(self) -> bool:
        """Whether it is calm, and no kind is known that brings little: no order is better."""
        self._look()
        return self._serene

    def are_few(self) -> bool:
        """Whether all URLs met so far are of few kinds, all of them fruitful so far.

        So it is in the first answers alone: then what these brought says more. Where kinds were put
        together there were many; and what others have met is to be read first. Of more links than
        `FEW_UNTRIED` that are not of tried kinds most would be asked for before anything is known
        of them.
        """
        asked = [one for one in self._kinds.known.values() if one.asked]
        return self.may_be_few() and all(one.stands_so_far for one in asked)

    def may_be_few(self) -> bool:
        """Whether the kinds met so far are few, whatever they bring."""
        kinds, fruitful = self._of_all
        few = len(self._alike) <= FEW_KINDS and kinds == fruitful <= LEVELS * FEW_KINDS
        return few and self._told and self._noted < CALM_NOTED and self._changes() == (0, 0, 0)

    @property
    def mixed(self) -> bool:
        """Whether kinds are known that bring little: then it matters what each page says."""
        self._look()
        return self._mixed

    @property
    def doubtful(self) -> bool:
        """Whether a kind is known that brings little, among few others: it matters who knows."""
        self._look()
        return self._doubtful

    def _look(self) -> None:
        """Look anew, after so many answers, at how many kinds are fruitful."""
        if self._noted < self._counted + CALM_EACH:
            return
        self._counted = self._noted
        asked = [one for one in self._kinds.known.values() if one.asked]
        fruitful = sum(one.stands_so_far for one in asked)
        own = (len(asked), fruitful)
        barren, of_all = (kinds > some for kinds, some in (own, self._of_all))
        nearly_all = _nearly_all(*own) or (not barren and self._noted >= CALM_NOTED)
        some_barren = barren or of_all
        self._calm = nearly_all and (not of_all or _nearly_all(*self._of_all))
        self._serene = self._calm and not some_barren
        self._mixed = len(asked) - fruitful >= MIXED_KINDS
        self._doubtful = some_barren and not self._calm

    def note(self, url: str, *, asked: int = 1, fruitful: int = 0) -> None:
        """Count a URL that was asked for, or that one asked for before was fruitful."""
        self._forget()
        self.meet(url)
        self._noted += 1
        counts = self._counts(self._shape(url))[1:]
        for count in counts:
            count.add(asked, fruitful)
        self.rich = self.rich or counts[0].is_rich

    def _counts(self, narrow: Shape) -> tuple[Shape, KindCount, KindCount, KindCount]:
        """Find the name and count of a kind, and those of its parameters and of its folders."""
        found = self._found.get(narrow)
        if found is not None and self._state == self._changes():
            return found
        shape, count = self._kinds.named(narrow)
        self._recall(shape, count)
        named, wide = self._everywhere.named(everywhere(narrow))
        self._recall(named, wide)
        named, folder = self._folders.named(within(narrow))
        self._recall(named, folder)
        state = self._changes()
        if state != self._state or len(self._found) >= FOUND_MAX:
            self._found.clear()
            self._forget()
            if state != self._state:
                self._alike.clear()
                for one, known in self._kinds.known.items():
                    self._alike[alike(one)][one] = known
            self._state = state
        self._alike[alike(shape)][shape] = count
        self._found[narrow] = (shape, count, wide, folder)
        return shape, count, wide, folder

    def _changes(self) -> tuple[int, int, int]:
        return (self._kinds.changes, self._everywhere.changes, self._folders.changes)

    def meet(self, url: str) -> None:
        """Note that a URL is asked for: others that share a part are of another kind now."""
        own = text_hash(url)
        for _, key in parts_of(url):
            self.met.note_first(key, own)

    def _shape(self, url: str) -> Shape:
        """Return the shape of a URL, with marks where it shares a part with one asked for."""
        shape = coarse(url)
        if not self.met.shared:
            return shape if "?" not in url else self._narrowed(shape)
        own = text_hash(url)
        marked = list(self._narrowed(shape)) if "?" in url else list(shape)
        again = False
        for at, key in parts_of(url):
            if self.met.first(key, own) == own:
                continue
            if at == len(shape):
                again = True
            elif at < len(marked) and varies(marked[at]):
                marked[at] += AGAIN
        return (*marked, AGAIN) if again else tuple(marked)

    def _narrowed(self, shape: Shape) -> Shape:
        """Say under which shape one is counted, but for its marks.

        Where queries are too many to tell apart, those are told apart of which others know that
        they are fruitful: each container knows of a few when they become too many.
        """
        narrowed = self._kinds.narrowed(shape)
        if not self._shared or narrowed[7] != ANY_QUERY or len(shape) == len(narrowed):
            return narrowed
        whole = (*narrowed[:7], *shape[7:])
        if whole in self._open or len(self._open) >= OPEN_MAX:
            return narrowed
        if not _with_marks(whole, self._shared).stands:
            self._open.add(whole)
            return narrowed
        self._kinds.let_stand(whole)
        return self._kinds.narrowed(shape)

    @property
    def untold(self) -> int:
        """How many answers, and links that do not wait, others do not know of."""
        known = self._kinds.known.values()
        return sum(one.asked_unshared + abs(one.out_unshared) for one in known)

    def unshared(self) -> dict[str, int]:
        """List what others do not know of, by digests of kinds."""
        self._forget()  # kinds may be put together
        found: dict[str, int] = {}
        for kinds in (self._kinds, self._everywhere, self._folders):
            for shape, count in kinds.all().items():
                key = kind_key(shape)
                some = zip(COUNTED, count.unshared, strict=True)
                found |= {counted + key: urls for counted, urls in some if urls}
        return found

    def share(self, told: Mapping[str, int], total: Mapping[str, int]) -> None:
        """Take in what all have counted by now, `told` included."""
        self._forget()
        self._open.clear()
        self._shared, self._told = total, True
        self._of_all = _fruitful_in(total)
        # What others have learned is looked at as well.
        self._noted, self._counted = max(self._noted, asked_in(total)), -CALM_EACH
        for kinds in (self._kinds, self._everywhere, self._folders):
            for shape, count in kinds.all().items():
                key = kind_key(shape)
                count.tell(*(told.get(counted + key, 0) for counted in COUNTED))
                self._recall(shape, count)
        self.rich = self.rich or any(one.is_rich for one in self._kinds.known.values())

    def _recall(self, shape: Shape, count: KindCount) -> None:
        """Have a count be that of all, where that is more than what is known here."""
        if not self._shared:
            return
        key = kind_key(shape)
        asked = self._shared.get(ASKED + key, 0) + count.asked_unshared
        fruitful = self._shared.get(FRUIT + key, 0) + count.fruitful_unshared
        out = self._shared.get(OUT + key, 0) + count.out_unshared
        if asked >= count.asked:  # others may have credited, or taken back, what is known here
            count.asked, count.fruitful, count.out = asked, max(fruitful, count.fruitful), out
        else:
            count.out = max(count.out, out)


def _telling(shape: Shape, parameters: KindCount, folder: KindCount) -> list[KindCount]:
    """Return which wider kinds tell something of one, where it has what these have in common.

    To have no parameters is nothing in common where paths have two folders.
    """
    if not shape[2]:
        return [parameters]
    return [parameters, folder] if shape[7] else [folder]


def _nearly_all(kinds: int, fruitful: int) -> bool:
    """Whether nearly all of so many kinds are fruitful, as far as these tell."""
    return fruitful + CALM_WEIGHT / 2 >= CALM * (kinds + CALM_WEIGHT)


def _fruitful_in(total: Mapping[str, int]) -> tuple[int, int]:
    """Count the kinds that all have asked for, also those not met here yet; and the fruitful."""
    asked = {key[1:]: urls for key, urls in total.items() if key.startswith(ASKED) and urls}
    fruitful = sum(2 * total.get(FRUIT + key, 0) >= urls for key, urls in asked.items())
    return len(asked), fruitful


def _with_marks(shape: Shape, total: Mapping[str, int]) -> KindCount:
    """Add up what all have counted of a shape, whichever parts of it were met before."""
    places = (sorted(with_again({one})) for one in shape[8:])
    found = KindCount()
    for values in islice(product(*places), MARKS_MAX):
        for again in ((), (AGAIN,)):
            key = kind_key((*shape[:8], *values, *again))
            found.add(total.get(ASKED + key, 0), total.get(FRUIT + key, 0))
    return found


def _kinds() -> Kinds[KindCount]:
    return Kinds(KindCount, KINDS_MAX, lambda known: known.stands)
