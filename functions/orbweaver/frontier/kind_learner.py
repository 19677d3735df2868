"""Learn which groups of similar URLs (kinds) lead to new content, and sort links accordingly.

Only ordered crawls do this: crawls with one counter shard and a limit of at most 100,000 pages
(docs/order.md).
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Sequence
from operator import itemgetter

from orbweaver.frontier.kind_count import TRIED_MIN
from orbweaver.frontier.kind_scores import KindScore, KindScores
from orbweaver.frontier.late_links import (
    DOUBTFUL,
    FEW_OUT,
    SURPLUS,
    UNKNOWN,
    UNLIKELY,
    Banded,
    band_of,
)
from orbweaver.frontier.seen_content import FRUIT, PAGE, text_hash
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord
from orbweaver.model.slices import unpaused
from orbweaver.model.target import Target, TargetKind
from orbweaver.model.url import host_of

# Links of a kind with at least this score are claimed at once.
FRUITFUL = 0.5
# Limits of pending URLs for kinds with enough results, as multiples of the kind's ended URLs,
# because a kind can stop bringing new pages. DOUBTFUL_SHARE (at least one URL) applies to scores
# below FRUITFUL.
OUT_TIMES, DOUBTFUL_SHARE = 2, 1 / 8
# Links per slice of work. A link with 15 parameters takes 0.4 ms.
SORTED_AT_ONCE = 50
_WORD = re.compile(r"[^\W\d_]+")
# A name of a revision: at least seven hexadecimal digits, one of them a number.
_HASH = re.compile(r"\b(?=[a-f]*[0-9])[0-9a-f]{7,}\b")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
_FAULT, _TOO_MANY = 500, 429


class KindLearner:
    """Learns from a crawl's pages which kinds of URLs bring new content, and sorts links by it."""

    def __init__(self) -> None:
        self.scores = KindScores()
        self.asked = 0
        self._met = self.scores.met

    def wants_digest(self, url: str) -> bool:
        """Return True if the text of a page must be compared with other texts."""
        # A comparison costs as much CPU as the remaining work on a page.
        return self.scores.has_many_barren or self.scores.count(url).texts < TRIED_MIN

    def sort_links(
        self, links: Sequence[Target], taken: int | None = None, least: int = 1
    ) -> Generator[None, None, tuple[list[Target], list[Banded]]]:
        """Split links into links to claim now, best first, and links that must wait.

        `taken` is the band (rank in the waiting order, 0 first) in which these links have waited.
        New links have no band. At least `least` of the links that have waited are claimed now. The
        generator yields after each slice of links.
        """
        # Links with priority and sitemaps never wait.
        first = [link for link in links if _is_never_late(link)]
        usual = [link for link in links if not _is_never_late(link)]
        if self.scores.is_all_fruitful:
            return [*first, *usual], []
        prompt = [(-1.0, link) for link in first]
        waiting: list[tuple[float, Banded]] = []
        alone = False
        if taken is not None:
            usual.sort(key=lambda link: -self.scores.score_of(link.url).score)
            alone = any(self._is_fruitful(link) for link in usual)
        for index, link in enumerate(usual, 1):
            known = self.scores.score_of(link.url)
            band = self._band(known) if taken is None else self._later(known, taken, alone=alone)
            if band is None:
                self._let_out(known, link)
                prompt.append((-known.score, link))
            else:
                waiting.append((-known.score, (band, link)))
            if index % SORTED_AT_ONCE == 0:
                yield
        waiting.sort(key=itemgetter(0))
        if taken is not None and len(prompt) < least:
            self._go_on(prompt, waiting, taken, least)
        prompt.sort(key=itemgetter(0))
        return [link for _, link in prompt], [one for _, one in waiting]

    sorted_out = unpaused(sort_links)

    def _is_fruitful(self, link: Target) -> bool:
        known = self.scores.score_of(link.url)
        return known.score >= FRUITFUL and known.count.is_tried

    def _go_on(
        self,
        prompt: list[tuple[float, Target]],
        waiting: list[tuple[float, Banded]],
        taken: int,
        least: int,
    ) -> None:
        """Move the best links from `waiting` to `prompt` until `prompt` has `least` links.

        Only links that would wait in band `taken` again, or in a lower band, are moved.
        """
        again = [one for one in waiting if one[1][0] <= taken][: least - len(prompt)]
        for one in again:
            score, (_, link) = one
            waiting.remove(one)
            self._let_out(self.scores.score_of(link.url), link)
            prompt.append((score, link))

    def _band(self, known: KindScore) -> int | None:
        """Return the band (waiting order, 0 first) of a new link, or None to claim it now."""
        if known.score < FRUITFUL:
            return _doubtful(known)
        if self.scores.is_mostly_fruitful:
            return None
        # If a fruitful kind is known, kinds without results wait.
        patient = self.scores.rich and known.count.requested == 0
        if not patient and self._may_be_out(known):
            return None
        return SURPLUS if known.count.is_tried else UNKNOWN

    def _later(self, known: KindScore, taken: int, *, alone: bool) -> int | None:
        """Return the next band (waiting order, 0 first) of a link that has waited in band `taken`.

        Returns None to claim the link now. `alone` means that only links of fruitful kinds are
        claimed now.
        """
        if known.score >= FRUITFUL:
            return None if self.scores.is_mostly_fruitful or self._may_be_out(known) else taken
        band = max(taken, _doubtful(known))
        if alone:
            return band
        soon = band == taken or (known.is_open and band <= DOUBTFUL)
        return None if soon and self._may_be_out(known) else band

    def has_too_many_pending(self, links: Iterable[Target]) -> bool:
        """Return True if a kind has too many pending URLs, including URLs of other workers."""
        return not self.scores.is_mostly_fruitful and any(
            out > most
            for link in links
            if not link.express
            for out, most in _outs(self.scores.score_of(link.url))
        )

    def _may_be_out(self, known: KindScore) -> bool:
        """Return True if the limits allow one more pending URL of a kind.

        Only the counts of this container and the shared counts that it has read are considered.
        """
        # The limits of similar kinds apply too.
        room = all(out < most for out, most in _outs(known))
        return room and (known.count.has_ended_enough or self.scores.untried_pending < FEW_OUT)

    def _let_out(self, known: KindScore, link: Target) -> None:
        """Count a link as scheduled."""
        if not self.scores.is_mostly_fruitful:
            known.count.add_scheduled()
        self.scores.note_sent(link.url)

    def note_unscheduled(self, urls: Iterable[str]) -> None:
        """Record that links are not scheduled: they are claimed already, or beyond the limit."""
        for url in urls:
            count = self.scores.count(url)
            if count.scheduled > count.requested:
                count.add_scheduled(-1)

    def learn(self, record: PageRecord, digest: Sequence[int] | None = None) -> None:
        """Count a URL that has ended, and credit its referrer if it brought new content.

        `digest` has the text's runs of words if the text must be compared.
        """
        # Failures of a host and URLs that robots.txt forbids do not affect a kind's score.
        status = record.status
        if record.outcome is Outcome.SKIPPED and status is None:
            self.leave(record.url)
            return
        if status is None or status >= _FAULT or status == _TOO_MANY:
            self.note_unscheduled([record.url])
            return
        self.asked += 1
        fruitful = record.title is not None or record.sha256 is not None
        fruitful = fruitful and record.reason is Reason.OK and self._is_new(record, digest)
        self.scores.note(record.url, fruitful=int(fruitful))
        if record.reason is Reason.CONTENT_TYPE:
            self.scores.count(record.url).others += 1
        if fruitful:
            self._met.add_key(text_hash(record.url) ^ FRUIT)
            self._credit(record.referrer)

    def leave(self, url: str) -> None:
        """Record that a URL ended without a request and is no longer pending."""
        self.scores.count(url).not_requested += 1
        self.note_unscheduled([url])

    def _credit(self, referrer: str | None) -> None:
        """Count `referrer` as fruitful: it was the first to link or redirect to a new page."""
        if referrer is not None and self._met.add_key(text_hash(referrer) ^ FRUIT):
            self.scores.note(referrer, asked=0, fruitful=1)

    def _is_new(self, record: PageRecord, digest: Sequence[int] | None) -> bool:
        # A page is new if its canonical address, its title and its text are new. `learn` has
        # excluded `noindex` pages.
        host = host_of(record.url)
        address = record.canonical or record.url
        if host_of(address) != host:
            address = record.url  # all pages of this host may name the same page of another host
        first = self._met.add_key(text_hash(address) ^ PAGE)
        title, own = _title_words(record)
        titled = self._met.add(f"title {host} {title}" if title else f"body {record.sha256}")
        # For example, a file's history has the file's name as its title. So only words of the title
        # that are not in the URL count.
        telling = bool(own) and self._met.add(f"own {host} {own}")
        varied = self._text_is_new(record.url, host, digest)
        if not first or not titled:
            return False
        if varied is None:
            # The text was not compared. The page is new if most compared pages of its kind were.
            return telling or self.scores.count(record.url).texts_vary
        return varied

    def _text_is_new(self, url: str, host: str, digest: Sequence[int] | None) -> bool | None:
        if digest is None:
            return None
        thing = _thing(url)
        again = bool(thing) and not self._met.add(f"thing {host} {thing}")
        new = self._met.add_runs(digest, host, again=again)
        count = self.scores.count(url)
        count.texts += 1
        count.texts_new += new
        return new


def _is_never_late(link: Target) -> bool:
    return link.express or link.kind is TargetKind.SITEMAP


def _doubtful(known: KindScore) -> int:
    """Return the band for a kind of URLs that brought little or has too few results."""
    # A kind without results is tried late if related kinds bring little, because it may differ.
    band = band_of(known.score)
    if not known.is_open:
        return band
    return UNLIKELY if band > UNLIKELY and known.beside >= TRIED_MIN else DOUBTFUL


def _outs(known: KindScore) -> list[tuple[int, int]]:
    """List pairs of pending URLs and their limit, for a kind of URLs.

    Until the kind is tried, the list has another pair for all similar kinds together.
    """
    asked = known.count.requested
    found = [(known.count.scheduled - asked, _out_max(known.count.ended, known.score))]
    if not known.count.is_tried:
        asked += known.alike
        ended = asked + known.group_not_requested
        found.append((known.group_scheduled - asked, _out_max(ended, known.score)))
    return found


def _out_max(ended: int, score: float) -> int:
    if ended < TRIED_MIN:
        return 1  # because each response adds more knowledge than all before
    if score < FRUITFUL:
        return max(1, int(ended * DOUBTFUL_SHARE))
    return ended * OUT_TIMES


def _thing(url: str) -> str:
    """Return the path below a URL's second folder: a file that can have several views."""
    return "/".join(url.partition("?")[0].split("/")[5:])


def _title_words(record: PageRecord) -> tuple[str, str]:
    """Return the words of a page's title, and its words that the page's URL does not contain.

    Numbers and hashes are left out of both.
    """
    words = _WORD.findall(_HASH.sub("", (record.title or "").lower()))
    there = frozenset(_WORD.findall(echo_of(record.url).lower()))
    return " ".join(words), " ".join(word for word in words if word not in there)


def echo_of(url: str) -> str:
    """Return a URL without percent-escapes, as a page would show its words."""
    if "%" not in url:
        return url
    plain = _ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), url.encode())
    return plain.decode("utf-8", "replace")
