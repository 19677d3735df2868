"""Stored form of a ledger (commit record of a pack), with its claimed links as a bitmap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from orbweaver.frontier.journal import Ledger
from orbweaver.model.version import FIELD, check

VERSION, WHAT = 1, "a ledger"


def to_fields(ledger: Ledger) -> dict[str, Any]:
    return {FIELD: VERSION, "children": _to_bits(ledger.children), "surplus": ledger.surplus}


def from_fields(pack_id: str, raw: Mapping[str, Any]) -> Ledger:
    """Convert plain fields to a ledger. Raises NewerVersion if a newer version has stored them."""
    check(raw, WHAT, VERSION)
    return Ledger(
        pack=pack_id,
        children=_from_bits(raw.get("children") or b""),
        surplus=bool(raw["surplus"]),
        sent=bool(raw.get("sent", False)),
        leases=int(raw.get("leases", 0)),
    )


def _to_bits(indexes: Sequence[int]) -> bytes | None:
    """Encode ascending indexes as a bitmap, or as None if there are none."""
    if not indexes:
        return None
    if any(low >= high for low, high in pairwise(indexes)):
        message = "a ledger's children must be in ascending order"
        raise ValueError(message)
    bits = bytearray(indexes[-1] // 8 + 1)
    for index in indexes:
        bits[index // 8] |= 1 << index % 8
    return bytes(bits)


def _from_bits(blob: bytes) -> tuple[int, ...]:
    return tuple(
        index * 8 + bit for index, byte in enumerate(blob) for bit in range(8) if byte >> bit & 1
    )
