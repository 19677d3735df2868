"""The stored form of a pack's ledger: the candidates it won, as a bitmap."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from orbweaver.adapters.dynamodb.table import Item, from_item
from orbweaver.frontier.journal import Ledger
from orbweaver.model.errors import readable
from orbweaver.model.version import FIELD, check

LEDGER = "ledger"
VERSION, WHAT = 1, "a ledger"


def fields_of(ledger: Ledger) -> dict[str, Any]:
    """Spell a ledger as fields; no children are None."""
    return {
        "k": ledger.pack,
        "part": LEDGER,
        FIELD: VERSION,
        "children": _to_bits(ledger.children),
        "surplus": ledger.surplus,
    }


def read(item: Item) -> Ledger:
    """Read a ledger back; StoredNewer for a newer one."""
    fields = from_item(item)
    with readable():
        check(fields, WHAT, VERSION)
    return Ledger(
        pack=fields["k"],
        children=_from_bits(fields.get("children", b"")),
        surplus=fields["surplus"],
        sent=fields.get("sent", False),
    )


def _to_bits(places: Sequence[int]) -> bytes | None:
    """Spell ascending places as a bitmap, None for no places at all."""
    if not places:
        return None
    if any(low >= high for low, high in pairwise(places)):
        message = "a ledger's children must be in ascending order"
        raise ValueError(message)
    bits = bytearray(places[-1] // 8 + 1)
    for place in places:
        bits[place // 8] |= 1 << place % 8
    return bytes(bits)


def _from_bits(blob: bytes) -> tuple[int, ...]:
    return tuple(
        place * 8 + bit for place, byte in enumerate(blob) for bit in range(8) if byte >> bit & 1
    )
