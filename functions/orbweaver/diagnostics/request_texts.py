"""Digests of stored texts for a report: main texts, or bodies if no text is stored."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from orbweaver.diagnostics.request_counts import StoredText
from orbweaver.frontier import warc
from orbweaver.frontier.retrying import all_of
from orbweaver.model.errors import Permanent, Transient
from orbweaver.model.ports import Files
from orbweaver.parsing.charset import decode
from orbweaver.parsing.main_text import plain_words
from orbweaver.parsing.text_digest import text_digest

READ_AT_ONCE = 16


async def digests_of(places: Iterable[StoredText], files: Files) -> Mapping[str, int]:
    """Return the digests of stored texts by URL. Deleted and unreadable texts are omitted."""
    found = await all_of((_digest(place, files) for place in places), READ_AT_ONCE)
    return {url: digest for url, digest in found if digest is not None}


async def _digest(place: StoredText, files: Files) -> tuple[str, int | None]:
    try:
        member = await files.cut(place.key, place.offset, place.length)
        text = None if member is None else _text(place, member)
    except (Transient, Permanent, ValueError):
        text = None
    echo = f"{place.url} {place.title}"
    return place.url, None if text is None else text_digest(text, echo)


def _text(place: StoredText, member: bytes) -> str | None:
    """Return the text of a stored WARC record. None: erased. Raises ValueError if invalid."""
    stored = warc.read(member)
    if warc.is_tombstone(stored):
        return None
    if place.body:
        # Bounded: this process has no limits of a page.
        return plain_words(decode(stored.body(), place.content_type)[1])
    found = json.loads(stored.payload)["text"]
    return found if isinstance(found, str) else None
