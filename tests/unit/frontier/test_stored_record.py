"""Reading of a stored page part, or the reason why it is missing."""

from __future__ import annotations

from typing import Any

import pytest

from orbweaver.frontier import warc
from orbweaver.frontier.stored_record import Missing, PagePart, read_stored
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord
from tests.memory import MemoryFiles, World

URL, KEY = "https://example.com/", "bodies/one.warc.gz"
BODY = warc.response(URL, 0, status=200, headers={}, body=b"<p>", truncated=False)
TEXT = warc.conversion(URL, 0, {"text": "a"}, stored=True)
GRAVE = warc.tombstone(200)
PARTS = {PagePart.BODY: (0, len(BODY)), PagePart.TEXT: (len(BODY), len(TEXT))}


def page(**changes: Any) -> PageRecord:
    places: dict[str, Any] = {"body_key": KEY}
    for part, (offset, length) in PARTS.items():
        places |= {f"{part}_offset": offset, f"{part}_length": length}
    known = {"crawl": "c", "url": URL, "fetched_at": 0, "depth": 0}
    ended = {"outcome": Outcome.FETCHED, "reason": Reason.OK}
    return PageRecord(**{**known, **ended, **places, **changes})


def holding(body: bytes) -> MemoryFiles:
    world = World()
    world.files[KEY] = body
    return MemoryFiles(world)


async def test_body_and_text_are_read() -> None:
    files = holding(BODY + TEXT)
    body = await read_stored(files, page(), PagePart.BODY)
    text = await read_stored(files, page(), PagePart.TEXT)
    assert isinstance(body, warc.Record)
    assert isinstance(text, warc.Record)
    assert (body.body(), text.payload) == (b"<p>", b'{"text":"a"}')


@pytest.mark.parametrize("part", PagePart)
async def test_missing_part_has_reason(part: PagePart) -> None:
    files = holding(GRAVE)
    place = {f"{part}_offset": 0, f"{part}_length": len(GRAVE)}
    for changes, why in (
        ({"body_key": None}, Missing.NOT_KEPT),
        ({f"{part}_offset": None}, Missing.NOT_KEPT),
        ({f"{part}_length": None}, Missing.NOT_KEPT),
        ({**place, "body_key": "bodies/gone.warc.gz"}, Missing.GONE),
        (place, Missing.FORGOTTEN),
    ):
        assert await read_stored(files, page(**changes), part) is why
