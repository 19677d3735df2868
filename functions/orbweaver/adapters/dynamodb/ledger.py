"""Ledgers (commit records of packs) in the `packs` table."""

from __future__ import annotations

from typing import Any

from orbweaver.adapters.dynamodb.table import Item, from_item
from orbweaver.frontier.journal import Ledger
from orbweaver.frontier.ledger_codec import from_fields, to_fields
from orbweaver.model.errors import readable

LEDGER = "ledger"


def fields_of(ledger: Ledger) -> dict[str, Any]:
    return {"k": ledger.pack, "part": LEDGER, **to_fields(ledger)}


def read(item: Item) -> Ledger:
    """Decode a ledger. Raises StoredNewer for a newer version."""
    fields = from_item(item)
    with readable():
        return from_fields(fields["k"], fields)
