"""Dead letters: messages that could not be processed, with their causes, groups and redrive.

A body can contain anything, so only its redacted URLs and the names of its fields are shown.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
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
from orbweaver.model.value import value_class
from orbweaver.model.version import NEWER

CAUSE_CHARS_MAX = 100
FIELDS_SHOWN = 10
# Number of characters that are shown of a body that is no JSON. They hint at its origin, and are
# too few for a password.
START_CHARS = 12
NEWER_VERSION = "newer version"
# Beginnings of reasons, and their causes. A cause is a reason without the parts that differ between
# messages, so that a thousand equal failures are shown as one line.
_CAUSES = {
    "unknown crawl ": "unknown crawl",
    "no usable URL": "no usable URL",
    "failed ": "failed too often",
    "crashed its worker ": "crashed its worker",
    "unknown field ": "unknown field",
    "version ": "unknown version",
    NEWER: NEWER_VERSION,
}
# Reasons why a selected dead letter is not redriven.
HOPELESS = "malformed"
UNKNOWN_CRAWL = "unknown crawl"
# A redriven message that fails at once is a new dead letter. The same run does not redrive it
# again.
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


@value_class
class DeadLetter:
    """A message on the dead-letter queue. `handle` is its receipt handle.

    `sent_at_ms` is the time when a worker moved it to this queue. If SQS moved it, it is the time
    when the message was first sent. `receives` counts every read.
    """

    id: str
    body: str = field(repr=False)
    reason: str | None
    receives: int
    sent_at_ms: int
    first_received_at_ms: int | None = None
    source: MessageSource = MessageSource.PACKS
    handle: str = field(default="", repr=False, compare=False)


@value_class
class Case:
    """A dead letter with its decoded message and its cause."""

    letter: DeadLetter
    message: Message
    cause: str
    references: tuple[str, ...]

    @property
    def kind(self) -> str:
        return _KINDS[type(self.message)]

    @property
    def crawl(self) -> str | None:
        return None if isinstance(self.message, Malformed) else self.message.crawl

    @property
    def failures(self) -> int:
        return self.message.failures if isinstance(self.message, Pack) else 0

    @property
    def is_hopeless(self) -> bool:
        """True if a redrive would fail at once: the body is malformed, or has no usable URL."""
        match self.message:
            case Malformed():
                return True
            case Loose(references=references):
                return not any(map(resolved, references))
            case _:
                return False

    @property
    def first_seen_ms(self) -> int:
        """Time when the message was created, or the earliest known time."""
        made = self.message
        known = (made.at_ms,) if isinstance(made, Pack | SeedsMessage) and made.at_ms else ()
        return min(self.letter.sent_at_ms, *known) if known else self.letter.sent_at_ms

    @property
    def last_seen_ms(self) -> int:
        """Time when a worker moved the message. If SQS moved it, the time of its first receive."""
        received_ms = None if self.letter.reason else self.letter.first_received_at_ms
        return max(self.letter.sent_at_ms, received_ms or 0)

    def hosts(self) -> frozenset[str]:
        """Return the hosts of the message's URLs, each as name, as name and port, and as origin."""
        found: set[str] = set()
        for url in filter(None, map(resolved, self.references)):
            origin = host_of(url)
            found |= {hostname_of(url), origin, origin.partition("://")[2]}
        return frozenset(found)


def read(letter: DeadLetter) -> Case:
    """Decode a dead letter and determine its cause. Never raises."""
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
    # A letter without a reason was moved by SQS, or was too large to carry a reason.
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


@value_class
class DeadLetterSelection:
    """Selects dead letters by a part of their reason, a host of their URLs, and their cause."""

    reason: str | None = None
    host: str | None = None
    cause: str | None = None

    def matches(self, case: Case) -> bool:
        if self.reason is not None:
            told = f"{case.cause}\n{case.letter.reason or ''}".casefold()
            if self.reason.casefold() not in told:
                return False
        if self.cause not in (None, case.cause):
            return False
        return self.host is None or self.host.lower().rstrip("/") in case.hosts()


EVERYTHING = DeadLetterSelection()


# --- groups -----------------------------------------------------------------------------------


@value_class
class DeadLetterGroup:
    """Dead letters of one cause. `sample` is the newest of them."""

    cause: str
    count: int
    kinds: Mapping[str, int]
    oldest_ms: int
    newest_ms: int
    sample: Case


def group_by_cause(cases: Iterable[Case]) -> tuple[DeadLetterGroup, ...]:
    """Group dead letters by cause, the most frequent first."""
    causes: dict[str, list[Case]] = {}
    for case in cases:
        causes.setdefault(case.cause, []).append(case)
    groups = [_group(cause, members) for cause, members in causes.items()]
    return tuple(sorted(groups, key=lambda group: (-group.count, group.cause)))


def _group(cause: str, members: list[Case]) -> DeadLetterGroup:
    # Ordered by id as well, so that the sample does not depend on the order of the letters.
    sample = max(members, key=lambda case: (case.first_seen_ms, case.letter.id))
    return DeadLetterGroup(
        cause=cause,
        count=len(members),
        kinds=dict(sorted(Counter(case.kind for case in members).items())),
        oldest_ms=min(case.first_seen_ms for case in members),
        newest_ms=sample.first_seen_ms,
        sample=sample,
    )


# --- display ----------------------------------------------------------------------------------


def outline(case: Case) -> str:
    """Describe a message body by its field names and redacted URLs, without possible secrets."""
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


# --- redrive ----------------------------------------------------------------------------------


Revived: TypeAlias = Pack | tuple[SeedsMessage, ...]


def message_to_resend(case: Case, now_ms: int) -> Revived | None:
    """Return the message to send when a dead letter is redriven. None: send its body unchanged."""
    message = case.message
    if case.is_hopeless or isinstance(message, Malformed | Close | Newer):
        return None
    match message:
        case Pack():
            return replace(message, failures=0)
        case SeedsMessage():
            return (message,)
        case Loose():
            # The ids are derived from the dead letter's id, so that a copy results in the same
            # messages. A loose message never becomes a pack.
            return seeds_of(
                case.letter.id,
                message.crawl,
                message.references,
                at_ms=now_ms,
                planned=False,
                dropped=True,
            )
