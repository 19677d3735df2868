"""What kinds of URLs have brought: which of them a crawl with a page limit asks for first.

A kind is the shape of a URL (model/url_kind.py) down to the second folder, and the names of its
parameters with values that are words. Of each kind is counted how many URLs were *asked* for, and
how many of them were *fruitful*: the page was new, or was the first to name one that was.

Where paths have parameters the first URL of a path is told from the others, which often show the
same once more: in another order, revision or colour. So is the first with a value of a parameter,
where the values vary: a file or a product may be named there.

A page is new if it does not ask to be left out of indexes, if no page of its canonical address was
met before, and if its title and its text are new:

- Digits count for nothing in titles. Of a title that has words that the URL does not have, these
  decide: the history of a file is named after the file, and is like the histories of others.
- Else the text decides: a fifth of what it says must not have been met on the host. The history
  of a file is like no other text, but each of its lines stands in the log, too. What nearly all
  pages say counts for nothing. To find a text costs as much as the rest of a page does, so the
  first pages of a kind are compared, and then one in `SAMPLED_EACH`. Of the others, the share of
  these that were new says it.

The score of a kind is the share of its fruitful ones, begun as if `PRIOR_WEIGHT` URLs of it had
brought what the same parameters bring in other folders and, where there are two, what else its
folders bring; or `PRIOR` where nothing is known. Of kinds that differ in namespaces, numbers
and the files they are about alone, what the others bring says more, and takes the place of that.

Of a kind of which little is known two URLs are out at a time, as each answer says more than those
before. One whose relatives are barren is tried so, too, but late: it may be another thing. Where
nearly all kinds are fruitful the order gains nothing: then nothing of this is waited for.

Counts are those of one container, which adds them to those of others now and then: under digests
of kinds, so that no part of a URL is stored with them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import islice, product
from operator import itemgetter
from typing import Self

from orbweaver.frontier.late import NOTHING_NEW, UNKNOWN, UNKNOWN_STILL, Banded, band_of
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import ORDERED_PAGES_MAX
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord
from orbweaver.model.target import Target, TargetKind
from orbweaver.model.url import host_of
from orbweaver.model.url_kind import (
    AGAIN,
    ANY,
    DEEPER,
    Kinds,
    Shape,
    in_two_folders,
    shape_of,
    values_of,
    varies,
)
from orbweaver.parsing.text_digest import RUNS_EACH

PRIOR, PRIOR_WEIGHT = 2 / 3, 1.5
# A kind of at least this score is asked for at once.
FRUITFUL = 0.5
# Of so many URLs at least it must be known what they brought.
TRIED_MIN = 3
# Of a kind of which less is known, so many are out at a time.
UNTRIED_OUT = 2
# A kind of at least this score is asked for in any number, once it was tried; of others as many are
# out at a time as are known.
SURE = 0.75
# So many URLs of kinds that are alike tell enough of a kind that none was asked for of.
ALIKE_MIN = 3
# Where this share of the kinds were fruitful, there is nothing to be gained by waiting: kinds count
# after so many others as `PRIOR` says. It is looked at anew after so many answers.
CALM, CALM_WEIGHT, CALM_EACH = 0.68, 6, 8
KINDS_MAX = 200
# Pages of a kind of which each has its text compared, then one in so many, by its URL; where nearly
# all kinds are fruitful, few and then none.
SAMPLED_FIRST, SAMPLED_FEW, SAMPLED_EACH = 6, 2, 64
# A text is new if that share of its runs of words was not met before, and so many; runs that that
# many texts have do not count. Measured: docs/yield.md.
NEW_SHARE, NEW_MIN, COMMON = 0.2, 2, 20
# One byte each, for about a sixth as many runs.
RUN_SLOTS, SLOTS_FILLED = 1 << 20, 6
# What is remembered of pages, at most: then it begins anew.
MET_MAX, FOUND_MAX = 50_000, 5_000
# A kind with so many URLs, of which that share was fruitful, is known to be worth its requests.
RICH_ASKED, RICH_SCORE = 8, 0.7
# Of redirects that lead to a new page one in so many counts: the page was asked for itself.
REDIRECTS_EACH = 3
ASKED, FRUIT = "a", "f"
# Shapes under which the kind of a URL is looked for.
SHAPES_MAX = 10_000
# Counted along: URLs in dead letters, and links that wait.
DEAD, WAITING = "dead", "waiting"
_WORD = re.compile(r"[^\W\d_]+")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
_FAULT, _TOO_MANY = 500, 429


def is_ordered(crawl: Crawl) -> bool:
    """Whether a crawl asks first for what brings something new: it has a page limit of its own."""
    return crawl.shards == 1 and not crawl.continuous and crawl.pages_max <= ORDERED_PAGES_MAX


@dataclass(slots=True)
class KindCount:
    """How many URLs of a kind were asked for and were fruitful; what of it others do not know.

    `texts` counts the pages whose text was compared, and `texts_new` those whose text was new;
    `others` what was asked for and was no page, but a picture.
    """

    asked: int = 0
    fruitful: int = 0
    asked_unshared: int = 0
    fruitful_unshared: int = 0
    texts: int = 0
    texts_new: int = 0
    others: int = 0

    def merge(self, other: Self) -> None:
        """Take in what is known of another kind, which this one takes the place of."""
        self.add(other.asked, other.fruitful)
        self.texts += other.texts
        self.texts_new += other.texts_new
        self.others += other.others

    @property
    def weight(self) -> int:
        """How much the kind matters."""
        return self.asked

    @property
    def tried(self) -> bool:
        """Whether enough of it was asked for to judge it."""
        return self.asked >= TRIED_MIN

    @property
    def texts_vary(self) -> bool:
        """Whether its texts were new as a rule, as far as they were compared."""
        return 2 * self.texts_new >= self.texts

    def add(self, asked: int, fruitful: int) -> None:
        """Count URLs, which others are to know of."""
        self.asked += asked
        self.fruitful += fruitful
        self.asked_unshared += asked
        self.fruitful_unshared += fruitful

    def score(self, prior: float) -> float:
        """Estimate the share of its URLs that are fruitful."""
        fruitful = min(self.fruitful, self.asked)
        return (fruitful + PRIOR_WEIGHT * prior) / (self.asked + PRIOR_WEIGHT)


def told_of(url: str, total: Mapping[str, int]) -> tuple[int, int] | None:
    """Say how many URLs of a URL's kind were asked for, and were fruitful, as all have counted.

    Which places of its shape are left open by now is not known: the kind that most were asked of.
    """
    shape = in_two_folders(shape_of(url))
    places = [{one} for one in shape]
    for at in (1, 2):
        places[at] |= {"*"} if shape[at] else set()
    for at, one in enumerate(shape[8:], 8):
        places[at] |= {"*"} if one else set()
        places[at] |= {token + AGAIN for token in places[at] if varies(token)}
    shapes = {
        (*some, *again)
        for some in islice(product(*map(sorted, places)), SHAPES_MAX)
        for again in ((), (AGAIN,))
    }
    found = [
        (total.get(ASKED + key, 0), total.get(FRUIT + key, 0)) for key in map(kind_key, shapes)
    ]
    asked, fruitful = max(found)
    return (asked, min(asked, fruitful)) if asked else None


def asked_in(total: Mapping[str, int]) -> int:
    """Count the URLs that all have asked for: each is counted by its kind and both wider ones."""
    return sum(count for key, count in total.items() if key.startswith(ASKED)) // 3


@dataclass(frozen=True, slots=True, kw_only=True)
class KindScore:
    """What is known of the kind of a URL: its name, its counts, and its score.

    `alike` is how many URLs were asked for of other kinds that are alike.
    """

    shape: Shape
    count: KindCount
    score: float
    alike: int

    @property
    def is_open(self) -> bool:
        """Whether nothing is known of it but what kinds bring that are not much alike."""
        return self.count.asked == 0 and self.alike < ALIKE_MIN


class KindScores:
    """What the kinds of a crawl have brought."""

    def __init__(self) -> None:
        self._kinds: Kinds[KindCount] = Kinds(KindCount, KINDS_MAX)
        # The same parameters in all folders.
        self._everywhere: Kinds[KindCount] = Kinds(KindCount, KINDS_MAX)
        # All of the same folders.
        self._folders: Kinds[KindCount] = Kinds(KindCount, KINDS_MAX)
        self._shared: Mapping[str, int] = {}
        # Kinds by shapes, while no kinds are put together.
        self._found: dict[Shape, tuple[Shape, KindCount, KindCount, KindCount]] = {}
        self._state = (0, 0, 0)
        # Kinds by what they are alike in.
        self._alike: defaultdict[Shape, dict[Shape, KindCount]] = defaultdict(dict)
        # Whether nearly all kinds are fruitful, and after how many answers that was looked at.
        self._calm = False
        self._noted = self._counted = 0
        # Of each path and value of a parameter, the first URL with it that was asked for.
        self._first: dict[int, int] = {}
        # Whether any had parameters: else no two have the same path.
        self._queried = False

    def of(self, url: str) -> KindScore:
        """Say what is known of the kind of a URL."""
        shape, count, *wider = self._counts(self._shape(url))
        beside = KindCount()
        for wide in wider if shape[2] else wider[:1]:
            beside.asked += wide.asked - count.asked
            beside.fruitful += wide.fruitful - count.fruitful
        prior = beside.score(PRIOR) if beside.asked > 0 else PRIOR
        near = KindCount()
        for one in self._alike[alike(shape)].values():
            if one is not count:
                near.asked += one.asked - one.others
                near.fruitful += min(one.asked, one.fruitful)
        if near.asked:
            prior = near.score(prior)
        score = count.score(prior)
        return KindScore(shape=shape, count=count, score=score, alike=near.asked)

    @property
    def calm(self) -> bool:
        """Whether nearly all kinds are fruitful: then the order gains nothing."""
        if self._noted >= self._counted + CALM_EACH:
            self._counted = self._noted
            asked = [one for one in self._kinds.known.values() if one.asked]
            fruitful = sum(2 * one.fruitful >= one.asked for one in asked)
            weight = len(asked) + CALM_WEIGHT
            self._calm = fruitful + CALM_WEIGHT / 2 >= CALM * weight
        return self._calm

    def note(self, url: str, *, asked: int = 1, fruitful: int = 0) -> None:
        """Count a URL that was asked for, or that one asked for before was fruitful."""
        self.meet(url)
        self._noted += 1
        for count in self._counts(self._shape(url))[1:]:
            count.add(asked, fruitful)

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
        """Note that a URL is asked for: others with its path are of another kind from now on."""
        if len(self._first) >= MET_MAX:
            self._first.clear()
        own = _hash(url)
        if "?" not in url:
            self._first.setdefault(own, own)
            return
        self._queried = True
        for _, key in _parts(url):
            self._first.setdefault(key, own)

    def _shape(self, url: str) -> Shape:
        """Return the shape of a URL, with marks where it shares a part with one asked for."""
        shape = _coarse(url)
        if "?" not in url:
            again = self._queried and self._first.get(own := _hash(url), own) != own
            return (*shape, AGAIN) if again else shape
        own = _hash(url)
        marked = list(self._kinds.narrowed(shape))
        for at, key in _parts(url):
            if self._first.get(key, own) == own:
                continue
            if at == len(shape):
                marked.append(AGAIN)
            elif at < len(marked) and varies(marked[at]):
                marked[at] += AGAIN
        return tuple(marked)

    def unshared(self) -> dict[str, int]:
        """List what others do not know of, by digests of kinds."""
        found: dict[str, int] = {}
        for kinds in (self._kinds, self._everywhere, self._folders):
            for shape, count in kinds.all().items():
                key = kind_key(shape)
                found |= {ASKED + key: count.asked_unshared} if count.asked_unshared else {}
                found |= {FRUIT + key: count.fruitful_unshared} if count.fruitful_unshared else {}
        return found

    def share(self, told: Mapping[str, int], total: Mapping[str, int]) -> None:
        """Take in what all have counted by now, `told` included."""
        self._shared = total
        for kinds in (self._kinds, self._everywhere, self._folders):
            for shape, count in kinds.all().items():
                key = kind_key(shape)
                count.asked_unshared -= told.get(ASKED + key, 0)
                count.fruitful_unshared -= told.get(FRUIT + key, 0)
                self._recall(shape, count)

    def _recall(self, shape: Shape, count: KindCount) -> None:
        """Have a count be that of all, where that is more than what is known here."""
        if not self._shared:
            return
        key = kind_key(shape)
        asked = self._shared.get(ASKED + key, 0) + count.asked_unshared
        if asked > count.asked:
            count.asked = asked
            count.fruitful = self._shared.get(FRUIT + key, 0) + count.fruitful_unshared


@lru_cache(maxsize=1_024)
def _coarse(url: str) -> Shape:
    """Return the shape of a URL down to its second folder; most are looked at a few times."""
    return in_two_folders(shape_of(url))


@lru_cache(maxsize=1_024)
def _parts(url: str) -> list[tuple[int, int]]:
    """List what a URL with parameters may share with another: a digest of each, by place."""
    shape = _coarse(url)
    parts = [
        (at, _hash("\0".join((*shape[:at], value, *shape[at + 1 :]))))
        for at, value in values_of(url, shape)
        if value
    ]
    return [*parts, (len(shape), _hash(url.partition("?")[0]))]


def everywhere(shape: Shape) -> Shape:
    """Leave the folders of a kind open, and whether its paths were asked for before."""
    values = shape[8:-1] if shape[-1] == AGAIN else shape[8:]
    plain = (one.removesuffix(AGAIN) for one in values)
    return (shape[0], DEEPER, "", "", "", "", *shape[6:8], *plain)


def alike(shape: Shape) -> Shape:
    """Leave numbers and namespaces of a kind open, and what files it is about.

    What a program does to one of them is like what it does to others. Files of a site's first
    folder alone, without parameters, are told apart.
    """
    of_files = () if shape[2] or shape[7] else shape[4:6]
    return (*shape[:3], *of_files, _opened(shape[6]), shape[7], *map(_opened, shape[8:]))


def _opened(token: str) -> str:
    bare = token.removesuffix(AGAIN)
    return ANY + token[len(bare) :] if bare != ANY and varies(bare) else token


def within(shape: Shape) -> Shape:
    """Leave all open but the folders of a kind."""
    return (*shape[:3], DEEPER, "", "", "", "")


def kind_key(shape: Shape) -> str:
    """Name a kind by a digest, which tells nothing of its URLs."""
    text = "\0".join(shape).encode("utf-8", "surrogatepass")
    return blake2b(text, digest_size=6).hexdigest()


class RunsMet:
    """Remembers in how many texts runs of words were met, about, up to `COMMON`."""

    def __init__(self) -> None:
        self._met = bytearray()
        self._filled = 0

    def take(self, runs: Sequence[int], host: str) -> bool:
        """Note the runs of a text; whether enough of them were not met before on its host.

        What nearly all pages have, like a menu, makes a text neither new nor old.
        """
        if not self._met or self._filled * SLOTS_FILLED > RUN_SLOTS:
            self._met, self._filled = bytearray(RUN_SLOTS), 0
        met, salt = self._met, _hash(host)
        new = own = 0
        for run in runs:
            at = (run ^ salt) // RUNS_EACH % RUN_SLOTS
            times = met[at]
            new += not times
            if times < COMMON:
                own += 1
                met[at] = times + 1
        self._filled += new
        return new >= NEW_MIN and new >= NEW_SHARE * own


class KindLearner:
    """Learns from the pages of a crawl, in the order in which they are read."""

    def __init__(self) -> None:
        self.scores = KindScores()
        self.asked = 0
        # How many URLs were asked for of kinds that are not sure, to know them.
        self._tries: dict[Shape, int] = {}
        self._met: set[int] = set()
        self._runs = RunsMet()
        # Pages that were fruitful; it counts once.
        self._credited: set[int] = set()
        self._redirects: set[int] = set()
        # Whether a kind is known that is worth its requests: then others wait to be tried.
        self._rich = False

    def wants_digest(self, url: str) -> bool:
        """Whether the text of a page is to be compared with others."""
        if self.scores.calm:
            return self.scores.of(url).count.texts < SAMPLED_FEW
        if self.scores.of(url).count.texts < SAMPLED_FIRST:
            return True
        return _hash(url) % SAMPLED_EACH == 0

    def sorted_out(
        self, links: Sequence[Target], taken: int | None = None
    ) -> tuple[list[Target], list[Banded]]:
        """Sort out which links are asked for at once, the best first, and which are late.

        `taken` is the band of the late pack that they come from. Links with priority and sitemaps
        are never late.
        """
        prompt: list[tuple[float, Target]] = []
        waiting: list[tuple[float, Banded]] = []
        doubtful: Counter[Shape] = Counter()
        for link in links:
            if link.express or link.kind is TargetKind.SITEMAP:
                prompt.append((-1.0, link))
                continue
            known = self.scores.of(link.url)
            band = self._band(known) if taken is None else self._later(known, taken, doubtful)
            if band is None:
                self.scores.meet(link.url)
                prompt.append((-known.score, link))
            else:
                waiting.append((-known.score, (band, link)))
        prompt.sort(key=itemgetter(0))
        waiting.sort(key=itemgetter(0))
        return [link for _, link in prompt], [one for _, one in waiting]

    def _band(self, known: KindScore) -> int | None:
        """Say in which band a new link waits; None for one that is asked for at once."""
        if known.score < FRUITFUL:
            return UNKNOWN_STILL if known.is_open else band_of(known.score)
        if self.scores.calm:
            return None
        # Where a kind is worth its requests, others wait to be tried first.
        patient = self._rich and known.count.asked == 0
        return None if not patient and self._tries_one(known) else UNKNOWN

    def _later(self, known: KindScore, taken: int, doubtful: Counter[Shape]) -> int | None:
        """Say in which band a link of a late pack goes on waiting; each once at most."""
        if known.score < FRUITFUL:
            if known.is_open and taken <= UNKNOWN_STILL and self._tries_one(known):
                return None
            band = band_of(known.score)
            if band > taken:
                return band
        elif taken <= UNKNOWN:
            calm = self.scores.calm
            return None if calm or self._tries_one(known) else UNKNOWN_STILL
        elif known.count.tried:
            return None
        # As many of a kind as are known of it; then the others are looked at once more.
        doubtful[known.shape] += 1
        many = doubtful[known.shape] > max(TRIED_MIN, known.count.asked)
        return taken + 1 if many and taken + 1 < NOTHING_NEW else None

    def _tries_one(self, known: KindScore) -> bool:
        """Whether one more of a kind may be out: two until it was tried, then as many as are known.

        Each answer says more of a kind than its score did before.
        """
        asked = known.count.asked
        if known.count.tried and known.score >= SURE:
            return True
        tries = self._tries.get(known.shape, 0)
        if tries - asked >= (asked if known.count.tried else UNTRIED_OUT):
            return False
        if len(self._tries) >= MET_MAX:
            self._tries.clear()
        self._tries[known.shape] = tries + 1
        return True

    def learn(self, record: PageRecord, digest: Sequence[int] | None = None) -> None:
        """Count a URL that was answered, and credit what it was found on."""
        status = record.status
        if status is None or status >= _FAULT or status == _TOO_MANY:
            return
        self.asked += 1
        if record.outcome is Outcome.REDIRECTED:
            self._add(self._redirects, record.url)
        fruitful = record.title is not None or record.sha256 is not None
        fruitful = fruitful and record.reason is Reason.OK and self._is_new(record, digest)
        self.scores.note(record.url, fruitful=int(fruitful))
        if record.reason is Reason.CONTENT_TYPE:
            self.scores.of(record.url).count.others += 1
        if fruitful and not self._rich and self.asked >= RICH_ASKED:
            known = self.scores.of(record.url)
            self._rich = known.count.asked >= RICH_ASKED and known.score >= RICH_SCORE
        if fruitful:
            self._credited.add(_hash(record.url))
            self._credit(record.referrer)

    def _credit(self, referrer: str | None) -> None:
        """Count a page as fruitful that was the first to name a new one."""
        if referrer is None or not self._add(self._credited, referrer):
            return
        key = _hash(referrer)
        if key not in self._redirects or key % REDIRECTS_EACH == 0:
            self.scores.note(referrer, asked=0, fruitful=1)

    def _is_new(self, record: PageRecord, digest: Sequence[int] | None) -> bool:
        host = host_of(record.url)
        address = record.canonical or record.url
        if host_of(address) != host:
            address = record.url  # another host's may stand on all pages of this one
        first = self._meet(f"url {address}")
        title, own = _title_words(record)
        titled = self._meet(f"title {host} {title}" if title else f"body {record.sha256}")
        telling = bool(own) and self._meet(f"own {host} {own}")
        varied = self._text_is_new(record.url, host, digest)
        if not first or not titled:
            return False
        if varied is None:
            return telling or self.scores.of(record.url).count.texts_vary
        return varied

    def _text_is_new(self, url: str, host: str, digest: Sequence[int] | None) -> bool | None:
        if digest is None:
            return None
        new = self._runs.take(digest, host)
        count = self.scores.of(url).count
        count.texts += 1
        count.texts_new += new
        return new

    def _meet(self, what: str) -> bool:
        """Note something of a page; whether it is met for the first time."""
        return self._add(self._met, what)

    def _add(self, known: set[int], what: str) -> bool:
        key = _hash(what)
        if key in known:
            return False
        if len(known) >= MET_MAX:
            known.clear()
        known.add(key)
        return True


def _hash(text: str) -> int:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def _title_words(record: PageRecord) -> tuple[str, str]:
    """Return the words of a title without numbers; and of these, those that its URL has not."""
    words = _WORD.findall((record.title or "").lower())
    there = frozenset(_WORD.findall(echo_of(record.url).lower()))
    return " ".join(words), " ".join(word for word in words if word not in there)


def echo_of(url: str) -> str:
    """Return a URL as its words are written on the page."""
    plain = _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), url.encode())
    return plain.decode("utf-8", "replace")
