"""A journal as stored, and back: its one codec.

Rows end with an object of what few of them have (`core/target.py`). Parts that another version
does not know are passed over, and those that are missing are empty.
"""

from __future__ import annotations

import json
import zlib
from types import MappingProxyType
from typing import Any

from orbweaver.core.journal import Again, Journal, Unrecorded
from orbweaver.core.outcome import Outcome, Reason
from orbweaver.core.record import from_fields, to_fields
from orbweaver.core.target import Target, extras_of, with_extras

VERSION = 1


def encode(journal: Journal) -> bytes:
    """Render a journal as compressed JSON: about 200 bytes a page of a documentation site."""
    body = {
        "v": VERSION,
        "at": journal.at_ms,
        "records": [to_fields(record) for record in journal.records],
        "again": [_target_row(item.target, item.delay_s) for item in journal.again],
        "candidates": [_target_row(target) for target in journal.candidates],
        "tally": dict(journal.tally),
        "alone": journal.alone,
        "unasked": journal.unasked,
        "unrecorded": [[one.url, one.outcome, one.reason] for one in journal.unrecorded],
        "reserved": dict(journal.reserved),
        "crawl": journal.crawl,
    }
    return zlib.compress(json.dumps(body, separators=(",", ":")).encode(), 6)


def decode(blob: bytes) -> Journal:
    """Read a journal back."""
    body: dict[str, Any] = json.loads(zlib.decompress(blob))
    return Journal(
        at_ms=body["at"],
        records=tuple(from_fields(raw) for raw in body["records"]),
        again=tuple(Again(target=_target(row), delay_s=row[5]) for row in body["again"]),
        candidates=tuple(_target(row) for row in body["candidates"]),
        tally=MappingProxyType(body["tally"]),
        alone=body["alone"],
        unasked=tuple(body.get("unasked", ())),
        unrecorded=tuple(
            Unrecorded(url=url, outcome=Outcome(outcome), reason=Reason(reason))
            for url, outcome, reason in body.get("unrecorded", ())
        ),
        reserved=MappingProxyType(body.get("reserved", {})),
        crawl=body.get("crawl", ""),
    )


def _target_row(target: Target, *more: int) -> list[Any]:
    row = [target.url, target.depth, target.attempt, target.hops, target.referrer, *more]
    extras = extras_of(target)
    return [*row, extras] if extras else row


def _target(row: list[Any]) -> Target:
    url, depth, attempt, hops, referrer, *more = row
    target = Target(url=url, depth=depth, attempt=attempt, hops=hops, referrer=referrer)
    return with_extras(target, more[-1]) if more and isinstance(more[-1], dict) else target
