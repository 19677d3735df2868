"""Stored form of a journal (redo log of a pack).

Decoding ignores unknown fields, and leaves missing fields empty. It raises NewerVersion for a
journal of a newer version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Any

from orbweaver.frontier.journal import Journal, Requeue, Unrecorded
from orbweaver.frontier.messages import past_in, past_row
from orbweaver.model.compression import compress, decompress, known
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord, from_fields, to_fields
from orbweaver.model.slices import SLICE_URLS
from orbweaver.model.target import Target, extras_of, with_extras
from orbweaver.model.version import NewerVersion, check, one_of

VERSION, WHAT = 1, "a journal"
DIGEST, DIGEST_BYTES = "sha256", 32
HEX = re.compile(r"[0-9a-f]{64}")


def encode(journal: Journal) -> bytes:
    """Encode a journal as compressed JSON: about 120 bytes a page for a documentation site."""
    columns, digests = _columns(journal.records)
    body = {
        "v": VERSION,
        "at": journal.at_ms,
        "columns": columns,
        "again": [_target_row(item.target, item.delay_s) for item in journal.returning],
        "candidates": [_target_row(target) for target in journal.candidates],
        "tally": dict(journal.counts),
        "alone": journal.alone,
        "unasked": journal.unasked,
        "unrecorded": [[one.url, one.outcome, one.reason] for one in journal.unrecorded],
        "reserved": dict(journal.reserved),
        "crawl": journal.crawl,
    }
    if journal.delivery:
        body["by"] = journal.delivery
    if journal.left:
        body["left"] = [_target_row(target) for target in journal.left]
    if journal.past:
        body["past"] = [past_row(past) for past in journal.past]
    if journal.late:
        body["late"] = [_target_row(target, band) for band, target in journal.late]
    if journal.surplus_band is not None:
        body["surplus"] = journal.surplus_band
    return compress(json.dumps(body, separators=(",", ":")).encode()) + digests


def is_long(journal: Journal) -> bool:
    """Return True if encoding a journal would block the event loop for too long."""
    return len(journal.candidates) + len(journal.late) + len(journal.left) > SLICE_URLS


def decode(blob: bytes) -> Journal:
    """Decode a journal. Raises ValueError if it is incomplete.

    Raises NewerVersion if a newer version of Orbweaver wrote it.
    """
    if blob and not known(blob):
        raise NewerVersion(WHAT, None, VERSION)
    plain, digests = decompress(blob)
    body: dict[str, Any] = json.loads(plain)
    check(body, WHAT, VERSION)
    rows = _rows(body["columns"], digests)
    return Journal(
        at_ms=body["at"],
        records=tuple(map(from_fields, rows)),
        returning=tuple(Requeue(target=_target(row), delay_s=row[5]) for row in body["again"]),
        candidates=tuple(_target(row) for row in body["candidates"]),
        counts=MappingProxyType(body["tally"]),
        alone=body["alone"],
        unasked=tuple(body.get("unasked", ())),
        unrecorded=tuple(
            Unrecorded(
                url=url,
                outcome=one_of(Outcome, outcome, WHAT, VERSION),
                reason=one_of(Reason, reason, WHAT, VERSION),
            )
            for url, outcome, reason in body.get("unrecorded", ())
        ),
        reserved=MappingProxyType(body.get("reserved", {})),
        delivery=body.get("by", 0),
        crawl=body.get("crawl", ""),
        left=tuple(_target(row) for row in body.get("left", ())),
        past=tuple(past_in(row) for row in body.get("past", ())),
        late=tuple((row[5], _target(row)) for row in body.get("late", ())),
        surplus_band=body.get("surplus"),
    )


def _columns(records: Sequence[PageRecord]) -> tuple[dict[str, list[Any]], bytes]:
    """Return the values of records by column, and the concatenated SHA-256 digests.

    In the columns, True replaces a digest.
    """
    # Journals are billed by the KB and consist mostly of records. Columns of similar values
    # compress well. Digests do not compress, so they follow the compressed part as raw bytes.
    rows = [to_fields(record) for record in records]
    digests = b""
    for row in rows:
        if HEX.fullmatch(row.get(DIGEST, "")):
            digests += bytes.fromhex(row[DIGEST])
            row[DIGEST] = True
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}, digests


def _rows(columns: dict[str, list[Any]], digests: bytes) -> Iterator[dict[str, Any]]:
    """Convert columns and digests back to the fields of each record, without empty fields."""
    offset = 0
    for values in zip(*columns.values(), strict=True):
        row = {
            name: value for name, value in zip(columns, values, strict=True) if value is not None
        }
        if row.get(DIGEST) is True:
            row[DIGEST] = digests[offset : offset + DIGEST_BYTES].hex()
            offset += DIGEST_BYTES
        yield row


def _target_row(target: Target, *more: int) -> list[Any]:
    # Rows end with an object of rare fields (`model/target.py`).
    row = [target.url, target.depth, target.attempt, target.hops, target.referrer, *more]
    extras = extras_of(target)
    return [*row, extras] if extras else row


def _target(row: list[Any]) -> Target:
    url, depth, attempt, hops, referrer, *more = row
    target = Target(url=url, depth=depth, attempt=attempt, hops=hops, referrer=referrer)
    return with_extras(target, more[-1]) if more and isinstance(more[-1], dict) else target
