"""Dead letters: what one is, why it lies there, which belong together, what is sent back.

Rules
- A cause is a reason without what differs from message to message, so that a thousand of one
  mistake are one line. One without a reason was moved by SQS, or was too large to take one along.
- A body may hold anything, so nothing of it is shown but URLs, redacted, and names of fields.
- Sent back, a pack starts without failures; a loose message becomes seeds whose ids follow from the
  dead letter's, so that a copy of it is the same message.
- What came from the seed queue is read as seeds for ever: no redrive makes a pack of it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from orbweaver.frontier.envelope import Newer
from orbweaver.frontier.messages import (
    Close,
    Loose,
    Malformed,
    Message,
    MessageSource,
    Pack,
    SeedsMessage,
    decode,
    seeds_of,
)
from orbweaver.model.url import host_of, hostname_of, redacted, resolved
from orbweaver.model.version import NEWER

CAUSE_CHARS_MAX = 100
FIELDS_SHOWN = 10
# What is no JSON may be anything; so much of it says whose it is, and is no password.
START_CHARS = 12
NEWER_VERSION = "newer version"
# How reasons begin whose rest is of one message only.
_CAUSES = {
    "unknown crawl ": "unknown crawl",
    "no usable URL": "no usable URL",
    "failed ": "failed too often",
    "crashed its worker ": "crashed its worker",
    "unknown field ": "unknown field",
    "version ": "unknown version",
    NEWER: NEWER_VERSION,
}
# Why a dead letter that was asked for is not sent back.
HOPELESS = "malformed"
UNKNOWN_CRAWL = "unknown crawl"
# What is sent back and fails at once is a new dead letter; the run that sent it leaves it alone.
NEW = "new since the start"
RECEIVED_TOO_OFTEN = "received too often"
_URL = re.compile(r"https?:", re.IGNORECASE)
_KINDS = {
    Pack: "pack",
    SeedsMessage: "seeds",
    Close: "close",
    Loose: "loose",
    Newer: "newer",
    Malformed: "malformed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A message on the dead-letter queue; `handle` is the queue's word for having taken it.

    `sent_at_ms` is when it was buried, or first sent if SQS moved it; `receives` counts every look.
    """

    id: str
    body: str = field(repr=False)
    reason: str | None
    receives: int
    sent_at_ms: int
    first_received_at_ms: int | None = None
    source: MessageSource = MessageSource.PACKS
    handle: str = field(default="", repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A dead letter that was read: what it is, and why it is dead."""

    letter: DeadLetter
    message: Message
    cause: str
    references: tuple[str, ...]

    @property
    def kind(self) -> str:
        """Which of the kinds of messages it is, in lower case."""
        return _KINDS[type(self.message)]

    @property
    def crawl(self) -> str | None:
        """The crawl it belongs to."""
        return None if isinstance(self.message, Malformed) else self.message.crawl

    @property
    def failures(self) -> int:
        """How many deliveries ended without a result before it was last requeued."""
        return self.message.failures if isinstance(self.message, Pack) else 0

    @property
    def hopeless(self) -> bool:
        """Whether it would come straight back: it is no message, or has no URL."""
        match self.message:
            case Malformed():
                return True
            case Loose(references=references):
                return not any(map(resolved, references))
            case _:
                return False

    @property
    def first_seen_ms(self) -> int:
        """When its URLs came to be known, as far as it says."""
        made = self.message
        known = (made.at_ms,) if isinstance(made, Pack | SeedsMessage) and made.at_ms else ()
        return min(self.letter.sent_at_ms, *known) if known else self.letter.sent_at_ms

    @property
    def last_seen_ms(self) -> int:
        """When it was buried; of what SQS moved, when it was first received."""
        received_ms = None if self.letter.reason else self.letter.first_received_at_ms
        return max(self.letter.sent_at_ms, received_ms or 0)

    def hosts(self) -> frozenset[str]:
        """Write the hosts of its URLs: by name, with the port, and with the scheme."""
        found: set[str] = set()
        for url in filter(None, map(resolved, self.references)):
            origin = host_of(url)
            found |= {hostname_of(url), origin, origin.partition("://")[2]}
        return frozenset(found)


def read(letter: DeadLetter) -> Case:
    """Read a dead letter; never raises."""
    message = decode(letter.body, letter.source)
    match message:
        case Pack():
            references = tuple(target.url for target in message.targets)
        case SeedsMessage() | Loose():
            references = message.references
        case _:
            references = ()
    return Case(
        letter=letter, message=message, cause=_cause(letter, message), references=references
    )


def _cause(letter: DeadLetter, message: Message) -> str:
    reason = letter.reason
    if reason is None:
        if isinstance(message, Newer):
            return NEWER_VERSION
        if not isinstance(message, Malformed):
            return f"{RECEIVED_TOO_OFTEN} ({_KINDS[type(message)]})"
        reason = message.reason
    for start, cause in _CAUSES.items():
        if reason.startswith(start):
            return cause
    return reason[:CAUSE_CHARS_MAX]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterSelection:
    """The dead letters to act on: by words of their reason, a host of their URLs, their cause."""

    reason: str | None = None
    host: str | None = None
    cause: str | None = None

    def takes(self, case: Case) -> bool:
        """Whether a dead letter is selected."""
        if self.reason is not None:
            told = f"{case.cause}\n{case.letter.reason or ''}".casefold()
            if self.reason.casefold() not in told:
                return False
        if self.cause not in (None, case.cause):
            return False
        return self.host is None or self.host.lower().rstrip("/") in case.hosts()


EVERYTHING = DeadLetterSelection()


# --- groups -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterGroup:
    """Dead letters of one cause; `sample` is the newest of them."""

    cause: str
    count: int
    kinds: Mapping[str, int]
    oldest_ms: int
    newest_ms: int
    sample: Case


def grouped(cases: Iterable[Case]) -> tuple[DeadLetterGroup, ...]:
    """Group dead letters by cause, the most frequent first."""
    causes: dict[str, list[Case]] = {}
    for case in cases:
        causes.setdefault(case.cause, []).append(case)
    groups = [_group(cause, members) for cause, members in causes.items()]
    return tuple(sorted(groups, key=lambda group: (-group.count, group.cause)))


def _group(cause: str, members: list[Case]) -> DeadLetterGroup:
    # By id as well, so that the same dead letters have the same sample in any order.
    sample = max(members, key=lambda case: (case.first_seen_ms, case.letter.id))
    return DeadLetterGroup(
        cause=cause,
        count=len(members),
        kinds=dict(sorted(Counter(case.kind for case in members).items())),
        oldest_ms=min(case.first_seen_ms for case in members),
        newest_ms=sample.first_seen_ms,
        sample=sample,
    )


# --- what is shown ----------------------------------------------------------------------------


def outline(case: Case) -> str:
    """Say what a body holds that has no URLs to show, without anything that may be a secret."""
    text = case.letter.body.strip()
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        if _URL.match(text):
            return redacted(text)
        start = redacted(text, START_CHARS)
        return start if len(text) <= START_CHARS else f"{start}… ({len(text):,} characters)"
    if isinstance(raw, dict):
        names = [f"{name[:40]}: {_shape(raw[name])}" for name in list(raw)[:FIELDS_SHOWN]]
        more = ", …" if len(raw) > FIELDS_SHOWN else ""
        return f"{{{', '.join(names)}{more}}}"
    return _shape(raw)


def _shape(value: object) -> str:
    match value:
        case str() if _URL.match(value):
            return redacted(value)
        case str():
            return f"text of {len(value):,}"
        case list():
            return f"list of {len(value):,}"
        case dict():
            return f"object of {len(value):,}"
        case int() | float():
            return "true or false" if isinstance(value, bool) else "number"
        case _:
            return "null"


# --- sending back -----------------------------------------------------------------------------


Revived: TypeAlias = Pack | tuple[SeedsMessage, ...]


def revived(case: Case, now_ms: int) -> Revived | None:
    """Make of a dead letter what is sent back; None of what goes as it is."""
    message = case.message
    if case.hopeless or isinstance(message, Malformed | Close | Newer):
        return None
    match message:
        case Pack():
            return replace(message, failures=0)
        case SeedsMessage():
            return (message,)
        case Loose():
            return seeds_of(
                case.letter.id,
                message.crawl,
                message.references,
                at_ms=now_ms,
                planned=False,
                dropped=True,
            )
