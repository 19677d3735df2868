"""Journals (redo logs of packs) in the `packs` table: a head item, and chunks of long journals.

Chunks are written first, with the journal's digest in their keys. The head item names one digest,
so chunks of two different journals of a pack do not mix.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from orbweaver.adapters.aws.clients import all_of
from orbweaver.adapters.dynamodb.table import BLOB_BYTES_MAX, Dynamo, from_item, to_item
from orbweaver.frontier.journal import Journal
from orbweaver.frontier.journal_codec import VERSION, WHAT, decode
from orbweaver.model.errors import Permanent, readable
from orbweaver.model.version import FIELD, check

JOURNAL = "journal"
PUTS_AT_ONCE = 4


async def write_blob(
    dynamo: Dynamo, table: str, pack_id: str, blob: bytes, *, expires_s: int
) -> dict[str, Any]:
    """Return the fields of a journal's head item. If `blob` is long, write it as chunks first."""
    if len(blob) <= BLOB_BYTES_MAX:
        return {FIELD: VERSION, "blob": blob}
    digest = blake2b(blob, digest_size=16).hexdigest()
    starts = range(0, len(blob), BLOB_BYTES_MAX)
    items = [
        to_item(
            {
                **_chunk_key(pack_id, digest, place),
                "blob": blob[start : start + BLOB_BYTES_MAX],
                "expires_at": expires_s,
            }
        )
        for place, start in enumerate(starts)
    ]
    # Separate puts, because a batch of up to 12 MB would exceed the client's timeout.
    await all_of(
        (dynamo.call("put_item", TableName=table, Item=item) for item in items), PUTS_AT_ONCE
    )
    return {FIELD: VERSION, "digest": digest, "chunks": len(items)}


async def read(dynamo: Dynamo, table: str, head: Mapping[str, Any]) -> Journal:
    """Read the journal of a head item. Raises StoredNewer for a newer version."""
    with readable():
        check(head, WHAT, VERSION)
        return decode(await _blob(dynamo, table, head))


async def _blob(dynamo: Dynamo, table: str, head: Mapping[str, Any]) -> bytes:
    if "blob" in head:
        return bytes(head["blob"])
    pack_id, digest, count = head["k"], head["digest"], head["chunks"]
    keys = [_chunk_key(pack_id, digest, place) for place in range(count)]
    items = await dynamo.get_many(table, [to_item(key) for key in keys], consistent=True)
    chunks = {fields["part"]: fields["blob"] for fields in map(from_item, items)}
    if len(chunks) < count:
        message = f"journal of {pack_id}: {len(chunks)} of {count} chunks are there"
        raise Permanent(message)
    return b"".join(chunks[key["part"]] for key in keys)


def _chunk_key(pack_id: str, digest: str, place: int) -> dict[str, Any]:
    return {"k": pack_id, "part": f"{JOURNAL}.{digest}.{place}"}
