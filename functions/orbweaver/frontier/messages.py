"""Messages on the queues, and their JSON form.

A pack has up to 25 claimed URLs. Other messages contain seeds, end a crawl, or are from a newer
version.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from enum import StrEnum
from hashlib import blake2b
from typing import Any, ClassVar, TypeAlias, assert_never

from orbweaver.frontier.envelope import (
    CRAWL_ID_CHARS_MAX,
    VERSION,
    InvalidError,
    Newer,
    identity,
    integer,
    newer,
    refuse,
)
from orbweaver.model.crawl import DEFAULT_CRAWL
from orbweaver.model.target import PACK_TARGETS_MAX, Target, from_rows, to_rows
from orbweaver.model.value import value_class

# Maximum references per message. Each reference needs a claim. One invocation can process this
# number even with a slow table.
SEEDS_REFERENCES_MAX = 100
REFERENCE_CHARS_MAX = 8_192
# Maximum number of references in a message from a person, which is split into about a hundred
# messages. Maximum number of escaped characters in each of these.
LOOSE_REFERENCES_MAX, SEEDS_CHARS_MAX = 10_000, 700_000
# Packs of an earlier run that one message names. Each can list a thousand omitted URLs.
PAST_PACKS_MAX = 5
PACK_ID_CHARS_MAX = 64
PLACE_CHARS_MAX = 100


class MessageSource(StrEnum):
    """Kind of queue that a message came from: the seed queue, or a queue of packs."""

    SEEDS = "seeds"
    PACKS = "packs"

    @classmethod
    def from_queue(cls, queue: str, pack_queues: AbstractSet[str]) -> MessageSource:
        """Return the kind of a queue, by its name. An unknown queue counts as the seed queue."""
        # The name is empty if the caller invoked the worker directly.
        return cls.PACKS if not queue or queue in pack_queues else cls.SEEDS


@value_class
class Pack:
    """Up to 25 URLs of one crawl. They are claimed, except in a `late` pack.

    `at_ms` is the creation time. `failures` counts deliveries without a result before the last
    requeue, because the queue counts each message separately. `requeues` counts how often the pack
    was sent again unchanged. `place` is its sort key in a host's backlog, if it comes from there.
    """

    id: str
    crawl: str
    at_ms: int
    targets: tuple[Target, ...]
    failures: int = 0
    requeues: int = 0
    place: str = ""
    late: bool = False
    past: ClassVar[None] = None

    @property
    def render(self) -> bool:
        # URLs for workers with a browser are in separate packs.
        return any(target.render for target in self.targets)


@value_class
class Past:
    """Packs of an earlier run to read for URLs that the run left out.

    If `packs` is empty, these are the packs that the run started with.
    """

    run: str
    packs: tuple[str, ...] = ()


@value_class
class SeedsMessage:
    """References that no pack has claimed yet.

    `planned` references came with the crawl, `dropped` references came through the seed queue. A
    message with a `past` has no references: it refers to journals (redo logs) of an earlier run.
    """

    id: str
    crawl: str
    at_ms: int
    references: tuple[str, ...]
    planned: bool = False
    dropped: bool = False
    past: Past | None = None
    targets: ClassVar[tuple[Target, ...]] = ()
    place: ClassVar[str] = ""
    late: ClassVar[bool] = False


@value_class
class Close:
    """Message that ends a crawl cancelled at `at_ms`, without waiting for queued messages."""

    crawl: str
    at_ms: int


@value_class
class Loose:
    """References that a person sent: a bare URL, `{"url": …}` or `{"urls": […]}`.

    They have no stable id, so a worker sends them again as `SeedsMessage`. The seed queue accepts
    only loose messages.
    """

    crawl: str
    references: tuple[str, ...]


@value_class
class Malformed:
    """A body that is not a valid message, with the reason for the dead-letter queue."""

    reason: str


Message: TypeAlias = Pack | SeedsMessage | Close | Loose | Newer | Malformed


def child_id(parent: str, key: int | str) -> str:
    """Return the stable id of a message that `parent` sends, by `key`, its index or name."""
    return blake2b(f"{parent}/{key}".encode(), digest_size=16).hexdigest()


def seeds_of(
    origin: str,
    crawl: str,
    references: Sequence[str],
    *,
    at_ms: int,
    planned: bool,
    dropped: bool = False,
) -> tuple[SeedsMessage, ...]:
    """Split references into messages whose ids are derived from `origin` and their index."""
    return tuple(
        SeedsMessage(
            id=child_id(origin, index),
            crawl=crawl,
            at_ms=at_ms,
            references=some,
            planned=planned,
            dropped=dropped,
        )
        for index, some in enumerate(_cut(references))
    )


def past_of(origin: str, crawl: str, past: Past, key: int | str, at_ms: int) -> SeedsMessage:
    """Build a message that makes a worker read packs of an earlier run.

    Its id is derived from `origin` and `key`.
    """
    return SeedsMessage(
        id=child_id(origin, f"past/{key}"),
        crawl=crawl,
        at_ms=at_ms,
        references=(),
        planned=True,
        past=past,
    )


def _cut(references: Sequence[str]) -> Iterator[tuple[str, ...]]:
    # Canonical URLs never reach the limit of characters.
    some, chars = list[str](), 0
    for reference in references:
        length = len(json.dumps(reference))  # an escape has six characters
        if len(some) == SEEDS_REFERENCES_MAX or (some and chars + length > SEEDS_CHARS_MAX):
            yield tuple(some)
            some, chars = [], 0
        some.append(reference)
        chars += length
    if some:
        yield tuple(some)


def encode(message: Pack | SeedsMessage | Close | Loose) -> str:
    match message:
        case Pack():
            body: dict[str, Any] = _encode_pack(message)
        case SeedsMessage():
            body = {
                "v": VERSION,
                "seeds": message.id,
                "crawl": message.crawl,
                "at": message.at_ms,
                "urls": message.references,
                "planned": message.planned,
                **({"dropped": True} if message.dropped else {}),
                **({} if message.past is None else {"past": past_row(message.past)}),
            }
        case Close():
            body = {"v": VERSION, "close": message.crawl, "at": message.at_ms}
        case Loose():
            body = {"urls": message.references, "crawl": message.crawl}
        case _:
            assert_never(message)
    # SQS refuses characters outside XML 1.0 (`InvalidMessageContents`).
    return json.dumps(body, ensure_ascii=True, separators=(",", ":"))


def decode(body: str, source: MessageSource = MessageSource.PACKS) -> Message:
    """Decode a message body from this kind of queue. Never raises."""
    text = body.strip()
    if not text.startswith(("{", "[", '"')):
        return _decode_reference(text)
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        return Malformed(reason="body is neither a URL nor valid JSON")
    if isinstance(raw, str):
        return _decode_reference(raw)
    if not isinstance(raw, dict):
        return Malformed(reason="body must be a URL or a JSON object")
    try:
        return _decode_object(raw, source)
    except InvalidError as error:
        return Malformed(reason=str(error))


def _decode_reference(text: str) -> Loose | Malformed:
    if not text:
        return Malformed(reason="body is empty")
    if len(text) > REFERENCE_CHARS_MAX:
        return Malformed(reason=f"URL is longer than {REFERENCE_CHARS_MAX} characters")
    return Loose(crawl=DEFAULT_CRAWL, references=(text,))


def _decode_object(raw: dict[str, Any], source: MessageSource) -> Message:
    if "v" not in raw:
        return _decode_loose(raw)
    if source is MessageSource.SEEDS:
        refuse("the seed queue takes seeds only: a URL, url or urls, and perhaps crawl")
    if raw["v"] != VERSION:
        strange = Malformed(reason=f"version {str(raw['v'])[:20]} is not {VERSION}")
        return newer(raw, VERSION) or strange
    if "pack" in raw:
        return _decode_pack(raw)
    if "seeds" in raw:
        past = past_in(raw["past"]) if "past" in raw else None
        return SeedsMessage(
            id=identity(raw, "seeds", PACK_ID_CHARS_MAX),
            crawl=identity(raw, "crawl", CRAWL_ID_CHARS_MAX),
            at_ms=integer(raw.get("at"), "at"),
            references=() if past else _references(raw.get("urls"), SEEDS_REFERENCES_MAX),
            planned=raw.get("planned") is True,
            dropped=raw.get("dropped") is True,
            past=past,
        )
    if "close" in raw:
        crawl = identity(raw, "close", CRAWL_ID_CHARS_MAX)
        return Close(crawl=crawl, at_ms=integer(raw.get("at"), "at"))
    return Malformed(reason="versioned body holds neither pack, seeds nor close")


def _decode_loose(raw: dict[str, Any]) -> Loose:
    unknown = sorted(set(raw) - {"url", "urls", "crawl"})
    if unknown:
        refuse(f"unknown field {unknown[0][:40]!r}: use url, urls and crawl")
    if ("url" in raw) == ("urls" in raw):
        refuse("give either url or urls")
    listed = raw["urls"] if "urls" in raw else [raw["url"]]
    crawl = identity(raw, "crawl", CRAWL_ID_CHARS_MAX) if "crawl" in raw else DEFAULT_CRAWL
    return Loose(crawl=crawl, references=_references(listed, LOOSE_REFERENCES_MAX))


def past_row(past: Past) -> list[Any]:
    return [past.run, *past.packs]


def past_in(row: object) -> Past:
    """Decode packs of an earlier run. Raises InvalidError."""
    strings = isinstance(row, list) and all(isinstance(item, str) for item in row)
    if not strings or not isinstance(row, list) or not 1 <= len(row) <= PAST_PACKS_MAX + 1:
        refuse(f"past is a run and at most {PAST_PACKS_MAX} ids of packs")
    run, *packs = row
    return Past(run=run, packs=tuple(packs))


def _encode_pack(pack: Pack) -> dict[str, Any]:
    rows, referrers = to_rows(pack.targets)
    body: dict[str, Any] = {
        "v": VERSION,
        "pack": pack.id,
        "crawl": pack.crawl,
        "at": pack.at_ms,
        "urls": rows,
        "from": referrers,
        "failures": pack.failures,
        "put_offs": pack.requeues,
    }
    if pack.place or pack.late:
        body["place"] = pack.place
    if pack.late:
        body["late"] = True
    return body


def _decode_pack(raw: dict[str, Any]) -> Pack:
    rows, referrers = raw.get("urls"), raw.get("from", [])
    if not isinstance(rows, list) or not 1 <= len(rows) <= PACK_TARGETS_MAX:
        refuse(f"a pack holds 1 to {PACK_TARGETS_MAX} urls")
    if not isinstance(referrers, list):
        refuse("from must be a list")
    late = raw.get("late", False)
    if not isinstance(late, bool):
        refuse("late must be true or false")
    return Pack(
        id=identity(raw, "pack", PACK_ID_CHARS_MAX),
        crawl=identity(raw, "crawl", CRAWL_ID_CHARS_MAX),
        at_ms=integer(raw.get("at"), "at"),
        targets=_targets(rows, referrers),
        failures=integer(raw.get("failures", 0), "failures"),
        requeues=integer(raw.get("put_offs", 0), "put_offs"),
        place=identity(raw, "place", PLACE_CHARS_MAX) if "place" in raw or late else "",
        late=late,
    )


def _targets(rows: list[Any], referrers: list[Any]) -> tuple[Target, ...]:
    try:
        return tuple(from_rows(rows, referrers))
    except ValueError as error:
        raise InvalidError(str(error)) from error


def _references(value: object, count_max: int) -> tuple[str, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= count_max:
        refuse(f"urls must be a list of 1 to {count_max} strings")
    for item in value:
        if not isinstance(item, str) or len(item) > REFERENCE_CHARS_MAX:
            refuse(f"a URL must be a string of at most {REFERENCE_CHARS_MAX} characters")
    return tuple(value)
