"""Learns from pages which kinds of URLs bring new ones, and sorts out which links go first.

A page is new if it does not ask to be left out of indexes, if no page of its canonical address was
met before, and if its title and its text are new:

- Digits count for nothing in titles, nor do hashes. Of a title that has words that the URL does not
  have, these decide: the history of a file is named after the file, and is like those of others.
- Else the text decides: a fifth of what it says must not have been met on the host. The history
  of a file is like no other text, but each of its lines stands in the log, too. What nearly all
  pages say counts for nothing. Of a path that was met below other folders it must be twice as
  much: who wrote which line is nothing new. To compare a text costs as much as the rest of a page,
  so that where few kinds bring little only the first pages of a kind are compared, and then one in
  `SAMPLED_EACH`. Of the others, the share of these that were new says it.

Of a kind of which little is known one URL is out at a time, as each answer says more than those
before, and so of kinds that are alike; of one that was tried, some times as many as are known, or a
part where it brings little. One whose relatives are barren is tried so, too, but late: it may be
another thing. Where nearly all kinds are fruitful, or only few were met, the order gains nothing:
then nothing of this is waited for.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Sequence
from operator import itemgetter

from orbweaver.frontier.kind_count import TRIED_MIN, KindCount
from orbweaver.frontier.kind_scores import FEW_UNTRIED, KindScore, KindScores
from orbweaver.frontier.late import DOUBTFUL, SURPLUS, UNKNOWN, UNLIKELY, Banded, band_of
from orbweaver.frontier.met import FRUIT, PAGE, text_hash
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord
from orbweaver.model.slices import sliced, unpaused
from orbweaver.model.target import Target, TargetKind
from orbweaver.model.url import host_of

# A kind of at least this score is asked for at once.
FRUITFUL = 0.5
# Of a kind of which less is known so many are out at a time, and so many of all such kinds. One
# that has no answer when so many others have theirs is not waited for.
UNTRIED_OUT, ALL_UNTRIED_OUT, ANSWERED_WITHIN = 1, 16, 40
# Of one that was tried, so many times as are known: it may bring less from some moment on. Of one
# of at least this score more; of a doubtful one a part, and one at least.
OUT_TIMES, SURE, SURE_TIMES, DOUBTFUL_SHARE = 2, 0.75, 6, 1 / 8
# Pages of a kind of which each has its text compared, then one in so many, by its URL; where nearly
# all kinds are fruitful, few and then none.
SAMPLED_FIRST, SAMPLED_FEW, SAMPLED_EACH = 6, 2, 128
# Of redirects that lead to a new page one in so many counts: the page was asked for itself.
REDIRECTS_EACH = 3
# Links of one slice of work: a link with 15 parameters takes 0.4 ms.
SORTED_AT_ONCE = 50
_WORD = re.compile(r"[^\W\d_]+")
# What names a revision: hexadecimal digits with a number among them.
_HASH = re.compile(r"\b(?=[a-f]*[0-9])[0-9a-f]{7,}\b")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
_FAULT, _TOO_MANY = 500, 429


class KindLearner:
    """Learns from the pages of a crawl, in the order in which they are read."""

    def __init__(self) -> None:
        self.scores = KindScores()
        self.asked = 0
        # What is out of kinds of which little is known: how many will have ended then, and how many
        # answers there were when it was let out.
        self._untried: list[tuple[KindCount, int, int]] = []
        self._met = self.scores.met

    def wants_digest(self, url: str) -> bool:
        """Whether the text of a page is to be compared with others."""
        compared = self.scores.count(url).texts
        if self.scores.calm:
            return compared < SAMPLED_FEW
        if compared < SAMPLED_FIRST or self.scores.mixed:
            return True
        return text_hash(url) % SAMPLED_EACH == 0

    def sorting_out(
        self, links: Sequence[Target], taken: int | None = None, least: int = 1
    ) -> Generator[None, None, tuple[list[Target], list[Banded]]]:
        """Sort out which links are asked for at once, the best first, and which are late.

        `taken` is the band of the late pack that they come from: at least `least` of these links
        are asked for. Links with priority and sitemaps are never late. The work pauses after each
        slice of links.
        """
        first = [link for link in links if _is_never_late(link)]
        usual = [link for link in links if not _is_never_late(link)]
        scores = self.scores
        if scores.serene or (taken is None and (yield from self._are_few(usual))):
            if not scores.calm:
                for place, link in enumerate(usual, 1):
                    scores.count(link.url).let_out()
                    scores.meet(link.url)
                    if place % SORTED_AT_ONCE == 0:
                        yield
            return [*first, *usual], []
        prompt = [(-1.0, link) for link in first]
        waiting: list[tuple[float, Banded]] = []
        alone = False
        if taken is not None:
            usual.sort(key=lambda link: -self.scores.of(link.url).score)
            alone = any(self._is_fruitful(link) for link in usual)
        for place, link in enumerate(usual, 1):
            known = self.scores.of(link.url)
            band = self._band(known) if taken is None else self._later(known, taken, alone=alone)
            if band is None:
                self._let_out(known, link)
                prompt.append((-known.score, link))
            else:
                waiting.append((-known.score, (band, link)))
            if place % SORTED_AT_ONCE == 0:
                yield
        waiting.sort(key=itemgetter(0))
        if taken is not None and len(prompt) < least:
            self._go_on(prompt, waiting, taken, least)
        prompt.sort(key=itemgetter(0))
        return [link for _, link in prompt], [one for _, one in waiting]

    sorted_out = unpaused(sorting_out)

    def _are_few(self, usual: Sequence[Target]) -> Generator[None, None, bool]:
        """Whether links are of few kinds, all of them fruitful so far (`KindScores.are_few`)."""
        untried = 0
        for part in sliced(usual, SORTED_AT_ONCE):
            if not self.scores.may_be_few():
                return False
            untried += sum(not self.scores.of(link.url).count.tried for link in part)
            if untried > FEW_UNTRIED:
                return False
            if len(part) == SORTED_AT_ONCE:
                yield
        return self.scores.are_few()

    def _is_fruitful(self, link: Target) -> bool:
        """Whether a link is of a kind that was tried, and most of it were fruitful."""
        known = self.scores.of(link.url)
        return known.score >= FRUITFUL and known.count.tried

    def _go_on(
        self,
        prompt: list[tuple[float, Target]],
        waiting: list[tuple[float, Banded]],
        taken: int,
        least: int,
    ) -> None:
        """Request the best links of a late pack that would wait in the same band again."""
        again = [one for one in waiting if one[1][0] <= taken][: least - len(prompt)]
        for one in again:
            score, (_, link) = one
            waiting.remove(one)
            self._let_out(self.scores.of(link.url), link)
            prompt.append((score, link))

    def _band(self, known: KindScore) -> int | None:
        """Say in which band a new link waits; None for one that is asked for at once."""
        if known.score < FRUITFUL:
            return _doubtful(known)
        if self.scores.calm:
            return None
        # Where a kind is worth its requests, others wait to be tried first.
        patient = self.scores.rich and known.count.asked == 0
        if not patient and self._may_be_out(known):
            return None
        return SURPLUS if known.count.tried else UNKNOWN

    def _later(self, known: KindScore, taken: int, *, alone: bool) -> int | None:
        """Say in which band a link of a late pack goes on waiting: its own, or a higher one.

        `alone`: some of the pack are of kinds that are known to be fruitful by now. These go first.
        """
        if known.score >= FRUITFUL:
            return None if self.scores.calm or self._may_be_out(known) else taken
        band = max(taken, _doubtful(known))
        if alone:
            return band
        soon = band == taken or (known.is_open and band <= DOUBTFUL)
        return None if soon and self._may_be_out(known) else band

    def too_many_out(self, links: Iterable[Target]) -> bool:
        """Whether too many are out of the kind of a link that was let out: others let out some."""
        return not self.scores.calm and any(
            out > most
            for link in links
            if not link.express
            for out, most in _outs(self.scores.of(link.url))
        )

    def _may_be_out(self, known: KindScore) -> bool:
        """Whether one more of a kind may be out, as far as this container knows.

        Each answer says more of a kind, and of those that are alike, than its score did before.
        """
        room = all(out < most for out, most in _outs(known))
        return room and (known.count.ended_enough or self._untried_out() < ALL_UNTRIED_OUT)

    def _untried_out(self) -> int:
        """Count what is out of kinds of which little is known."""
        self._untried = [
            (count, ended, at)
            for count, ended, at in self._untried
            if count.ended < ended and self.asked < at + ANSWERED_WITHIN
        ]
        return len(self._untried)

    def _let_out(self, known: KindScore, link: Target) -> None:
        """Note that a link does not wait: its kind is tried, and others share a part with it."""
        if not self.scores.calm:
            known.count.let_out()
            if not known.count.ended_enough:
                self._untried_out()  # so that what is not out any more is not kept
                self._untried.append((known.count, known.count.ended + 1, self.asked))
        self.scores.meet(link.url)

    def take_back(self, urls: Iterable[str]) -> None:
        """Note that links are not out: others have claimed them, or the limit is reached."""
        for url in urls:
            count = self.scores.count(url)
            if count.out > count.asked:
                count.let_out(-1)

    def learn(
        self,
        record: PageRecord,
        digest: Sequence[int] | None = None,
        *,
        redirected: bool = False,
    ) -> None:
        """Count a URL that has ended, and credit what it was found on.

        A host in trouble says nothing of a kind, nor does what robots.txt forbids.
        """
        status = record.status
        if record.outcome is Outcome.SKIPPED and status is None:
            self.leave(record.url)
            return
        if status is None or status >= _FAULT or status == _TOO_MANY:
            self.take_back([record.url])
            return
        self.asked += 1
        fruitful = record.title is not None or record.sha256 is not None
        fruitful = fruitful and record.reason is Reason.OK and self._is_new(record, digest)
        self.scores.note(record.url, fruitful=int(fruitful))
        if record.reason is Reason.CONTENT_TYPE:
            self.scores.count(record.url).others += 1
        if fruitful:
            self._met.see_key(text_hash(record.url) ^ FRUIT)
            self._credit(record.referrer, redirected=redirected)

    def leave(self, url: str) -> None:
        """Note that a URL is not asked for after all: its kind goes on the sooner."""
        self.scores.count(url).unasked += 1
        self.take_back([url])

    def _credit(self, referrer: str | None, *, redirected: bool) -> None:
        """Count a page as fruitful that was the first to name a new one, or led to it."""
        if referrer is None:
            return
        key = text_hash(referrer)
        if not self._met.see_key(key ^ FRUIT):
            return
        if not redirected or key % REDIRECTS_EACH == 0:
            self.scores.note(referrer, asked=0, fruitful=1)

    def _is_new(self, record: PageRecord, digest: Sequence[int] | None) -> bool:
        host = host_of(record.url)
        address = record.canonical or record.url
        if host_of(address) != host:
            address = record.url  # another host's may stand on all pages of this one
        first = self._met.see_key(text_hash(address) ^ PAGE)
        title, own = _title_words(record)
        titled = self._met.see(f"title {host} {title}" if title else f"body {record.sha256}")
        telling = bool(own) and self._met.see(f"own {host} {own}")
        varied = self._text_is_new(record.url, host, digest)
        if not first or not titled:
            return False
        if varied is None:
            return telling or self.scores.count(record.url).texts_vary
        return varied

    def _text_is_new(self, url: str, host: str, digest: Sequence[int] | None) -> bool | None:
        if digest is None:
            return None
        thing = _thing(url)
        again = bool(thing) and not self._met.see(f"thing {host} {thing}")
        new = self._met.take_text(digest, host, again=again)
        count = self.scores.count(url)
        count.texts += 1
        count.texts_new += new
        return new


def _is_never_late(link: Target) -> bool:
    """Whether a link has priority, or is a sitemap."""
    return link.express or link.kind is TargetKind.SITEMAP


def _doubtful(known: KindScore) -> int:
    """Say in which band links wait of a kind that is not known to be fruitful."""
    band = band_of(known.score)
    if not known.is_open:
        return band
    return UNLIKELY if band > UNLIKELY and known.beside >= TRIED_MIN else DOUBTFUL


def _outs(known: KindScore) -> list[tuple[int, int]]:
    """List how many are out and how many may be: of a kind, and while untried, of those alike."""
    asked = known.count.asked
    found = [(known.count.out - asked, _out_max(known.count.ended, known.score))]
    if not known.count.tried:
        asked += known.alike
        ended = asked + known.group_unasked
        found.append((known.group_out - asked, _out_max(ended, known.score)))
    return found


def _out_max(ended: int, score: float) -> int:
    """Say how many may be out of a kind, or of kinds that are alike, by how many have ended."""
    if ended < TRIED_MIN:
        return UNTRIED_OUT
    if score < FRUITFUL:
        return max(1, int(ended * DOUBTFUL_SHARE))
    return ended * (SURE_TIMES if score >= SURE else OUT_TIMES)


def _thing(url: str) -> str:
    """Return a path below its second folder: a file of which there are views and revisions."""
    return "/".join(url.partition("?")[0].split("/")[5:])


def _title_words(record: PageRecord) -> tuple[str, str]:
    """Return a title's words, without numbers and hashes; and of these, what its URL has not."""
    words = _WORD.findall(_HASH.sub("", (record.title or "").lower()))
    there = frozenset(_WORD.findall(echo_of(record.url).lower()))
    return " ".join(words), " ".join(word for word in words if word not in there)


def echo_of(url: str) -> str:
    """Return a URL as its words are written on the page."""
    if "%" not in url:
        return url
    plain = _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), url.encode())
    return plain.decode("utf-8", "replace")
