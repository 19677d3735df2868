"""Count the units that AWS bills, by kind of unit (`Term`) and purpose (`Stage`).

Sources: Amazon DynamoDB developer guide, "Item sizes and formats", "Capacity unit consumption";
Amazon SQS pricing; Amazon EventBridge pricing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum

from orbweaver.model.crawl import Counts

PREFIX = "units."
WRITE_BYTES, READ_BYTES, CHUNK_BYTES = 1024, 4096, 64 * 1024


class Term(StrEnum):
    """Kind of billed unit.

    `READ_HALVES` are half read units, because an eventually consistent read costs half a unit.
    """

    WRITE = "write"
    READ_HALVES = "read_halves"
    SQS = "sqs"
    S3_PUT = "s3_put"
    S3_GET = "s3_get"
    EVENTS = "events"
    LOG_BYTES = "log_bytes"
    SENT_BYTES = "sent_bytes"
    INVOCATIONS = "invocations"
    MB_MS = "mb_ms"
    MB_MS_X86 = "mb_ms_x86"


class Stage(StrEnum):
    """Step of a message's processing for which units are used, in the order of the steps."""

    RECEIVE = "receive"
    RECALL = "recall"
    CRAWL = "crawl"
    RESERVE = "reserve"
    HOST = "host"
    ROBOTS = "robots"
    HISTORY = "history"
    WEB = "web"
    LOOKUP = "lookup"
    BODIES = "bodies"
    JOURNAL = "journal"
    CLAIM = "claim"
    STORE = "store"
    COMMIT = "commit"
    SEND = "send"
    SENT = "sent"
    ANNOUNCE = "announce"
    EXPORT = "export"
    RUN = "run"
    OTHER = "other"


_TERMS = {term.value: term for term in Term}
_STAGES = {stage.value: stage for stage in Stage}
# Two-letter names of the units as attributes of items, because DynamoDB bills the length of names.
# A new unit appends its letter.
_TERM_LETTERS: Mapping[Term, str] = dict(zip(Term, "wrqpgelsimx", strict=True))
_STAGE_LETTERS: Mapping[Stage, str] = dict(zip(Stage, "qrcahtywlbjkpmsdnxuo", strict=True))
CODES: Mapping[str, str] = {
    f"{PREFIX}{term}.{stage}": f"{letter}{_STAGE_LETTERS[stage]}"
    for term, letter in _TERM_LETTERS.items()
    for stage in Stage
}


class Units(Counter[tuple[Term, Stage]]):
    """Number of units by kind and purpose."""

    def use(self, term: Term, stage: Stage, number: int) -> None:
        self[term, stage] += number

    @property
    def counts(self) -> dict[str, int]:
        """Units as counters of a crawl, with keys `units.<term>.<stage>`."""
        return {f"{PREFIX}{term}.{stage}": n for (term, stage), n in self.items() if n}

    @property
    def by_term(self) -> dict[Term, int]:
        return {
            term: total
            for term in Term
            if (total := sum(n for (one, _), n in self.items() if one is term))
        }

    @property
    def by_stage(self) -> dict[Stage, Units]:
        found: dict[Stage, Units] = {}
        for stage in Stage:
            part = Units({key: n for key, n in self.items() if key[1] is stage and n})
            if part:
                found[stage] = part
        return found


def units_of(counts: Counts) -> Units:
    """Read units from a crawl's counters. Ignores units of other versions."""
    units = Units()
    for key, number in counts.items():
        if not key.startswith(PREFIX):
            continue
        term, _, stage = key.removeprefix(PREFIX).partition(".")
        if term in _TERMS and stage in _STAGES:
            units[_TERMS[term], _STAGES[stage]] += number
    return units


def write_units(size_bytes: int, *, transacted: bool = False) -> int:
    # A started KB of the larger of the old and new item. A failed condition costs the same.
    units = max(1, -(-size_bytes // WRITE_BYTES))
    return 2 * units if transacted else units


def read_halves(size_bytes: int, *, consistent: bool) -> int:
    """Return the half read units of one item, or of all items together that one query reads."""
    return max(1, -(-size_bytes // READ_BYTES)) * (2 if consistent else 1)


def chunks(size_bytes: int) -> int:
    """Return the number of SQS requests or events that a payload is billed as."""
    return max(1, -(-size_bytes // CHUNK_BYTES))


def text_bytes(text: str) -> int:
    """Return the size of a text in UTF-8.

    A lone surrogate counts three bytes and raises no error.
    """
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
