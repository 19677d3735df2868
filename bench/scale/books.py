"""Counts the usage of a run: billed units, time and events.

Sizes of stored data are measured once, with the real codecs and packs of documentation pages. Reads
and writes equal the adapters' (`adapters/dynamodb`).
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from hashlib import blake2b

from orbweaver.budget.billing_units import Stage, Term, Units, chunks, write_units
from orbweaver.budget.prices import dollars
from orbweaver.frontier.journal import Journal, Requeue
from orbweaver.frontier.journal_codec import encode
from orbweaver.frontier.messages import Pack
from orbweaver.frontier.messages import encode as encode_message
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord
from orbweaver.model.target import PACK_TARGETS_MAX, Target

TABLES = ("urls", "pages", "hosts", "crawls", "packs")
# A shard (item) of counters with the reasons, metrics and units of an ordinary crawl.
SHARD_BYTES = 1_500
# Logs of an invocation: one document of metrics, and three lines of Lambda.
LOG_BYTES = 1_900
# Data out of AWS: a request's head, and its share of handshakes.
REQUEST_BYTES = 900
# One record in this number is larger than 1 KB: long titles, descriptions and URLs.
RECORDS_LONG = 20


class Books:
    """Counts of one run."""

    def __init__(self) -> None:
        self.units = Units()
        self.counts: Counter[str] = Counter()
        self.waits_ms: Counter[str] = Counter()
        # Write units and half read units, by table.
        self.writes: Counter[str] = Counter()
        self.reads: Counter[str] = Counter()

    def forget(self) -> None:
        """Discard all counts, because they belong to the time before this run."""
        self.units.clear()
        self.writes.clear()
        self.reads.clear()

    def write(self, table: str, stage: Stage, units: int) -> None:
        self.units[Term.WRITE, stage] += units
        self.writes[table] += units

    def read(self, table: str, stage: Stage, halves: int) -> None:
        self.units[Term.READ_HALVES, stage] += halves
        self.reads[table] += halves

    def use(self, term: Term, stage: Stage, number: int) -> None:
        self.units[term, stage] += number

    def count(self, event: str, number: int = 1) -> None:
        self.counts[event] += number

    @property
    def dollars_a_million(self) -> dict[Term, float]:
        """Return dollars per million finished URLs, by term."""
        ended = max(1, self.counts["ended"])
        by_term = self.units.by_term
        return {term: dollars({term: by_term[term]}) / ended * 1e6 for term in by_term}

    def a_page(self, term: Term) -> float:
        """Return units of a term per finished URL."""
        return self.units.by_term.get(term, 0) / max(1, self.counts["ended"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Bytes of stored or sent data: of one item, and of each of its parts."""

    pack: int
    target: int
    journal: int
    record: int
    candidate: int
    again: int
    # A pack in a backlog, by its number of URLs.
    waiting: tuple[int, ...]

    def journal_units(self, *, records: int, candidates: int, again: int) -> int:
        parts = self.record * records + self.candidate * candidates + self.again * again
        return write_units(self.journal + parts)

    def outgoing_chunks(self, targets: int, outgoing_packs: int) -> int:
        """Return the number of SQS requests for these packs, in batches of ten."""
        batches = -(-outgoing_packs // 10)
        return max(batches, chunks(self.pack * outgoing_packs + self.target * targets))


@cache
def sizes() -> Sizes:
    empty = len(encode(Journal(at_ms=0, crawl="crawl-20261121-200000")))
    count = 20
    targets = tuple(map(_target, range(count)))
    records = tuple(map(_record, targets))
    again = tuple(Requeue(target=target, delay_s=17) for target in targets)
    pack = Pack(id="0" * 32, crawl="crawl-20261121-200000", at_ms=0, targets=targets)

    def each(journal: Journal) -> int:
        return (len(encode(journal)) - empty) // count

    return Sizes(
        pack=180,
        target=(len(encode_message(pack)) - 180) // count,
        # Includes key, digest of the crawl, and expiry.
        journal=empty + 90,
        record=each(Journal(at_ms=0, records=records)),
        candidate=each(Journal(at_ms=0, candidates=targets)),
        again=each(Journal(at_ms=0, returning=again)),
        waiting=tuple(map(_waiting, range(PACK_TARGETS_MAX + 1))),
    )


def _waiting(urls: int) -> int:
    targets = tuple(map(_target, range(urls)))
    pack = Pack(id="0" * 32, crawl="crawl-20261121-200000", at_ms=0, targets=targets)
    # In addition to the body: key, place, host, and two times.
    return len(zlib.compress(encode_message(replace(pack, place="0" * 56)).encode())) + 190


def _target(place: int) -> Target:
    word = blake2b(str(place).encode(), digest_size=9).hexdigest()
    url = f"https://www.example.com/library/{word[:7]}/{word[7:]}.html"
    return Target(url=url, depth=3, referrer=f"https://www.example.com/library/{word[:7]}/")


def _record(target: Target) -> PageRecord:
    words = blake2b(target.url.encode(), digest_size=32).hexdigest()
    return PageRecord(
        crawl="crawl-20261121-200000",
        url=target.url,
        outcome=Outcome.FETCHED,
        reason=Reason.OK,
        fetched_at=1_790_035_200_000,
        depth=3,
        referrer=target.referrer,
        attempt=1,
        error=None,
        status=200,
        content_type="text/html; charset=utf-8",
        charset="utf-8",
        bytes=33_123,
        latency_ms=251,
        title=f"{words[:12]} {words[12:20]}: the library",
        description=json.dumps(words),
        language="en",
        links=50,
        sha256=words,
    )
