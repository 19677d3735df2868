"""Stored bodies and texts of pages and of other content."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from orbweaver.frontier import warc
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.http_exchange import Response
from orbweaver.model.page_record import PageRecord
from orbweaver.parsing.sniffing import ANY_TYPE, HTML_TYPES
from tests.unit.stage import CRAWL, SITE, Stage, answer, outcomes

PAGE = Response(
    status=200,
    headers={"content-type": "text/html"},
    body=b"<title>Ask jo@example.com</title><nav>n</nav><main><p>jo@example.com</main><a href=/b>",
)
PDF = answer(200, b"%PDF-1.7 jo@example.com", content_type="application/pdf")


async def crawled(crawl: Crawl) -> Stage:
    stage = Stage().serve({"/a": PAGE, "/b": PDF})
    await stage.crawl(crawl, f"{SITE}/a")
    return stage


def stored(stage: Stage, url: str) -> tuple[bytes | None, dict[str, str] | None]:
    (record,) = (one for one in stage.world.pages.values() if one.url == url)
    body = _part(stage, record, record.body_offset, record.body_length)
    text = _part(stage, record, record.text_offset, record.text_length)
    return (
        None if body is None else warc.read(body).body(),
        None if text is None else json.loads(warc.read(text).payload),
    )


def _part(stage: Stage, record: PageRecord, offset: int | None, length: int | None) -> bytes | None:
    if record.body_key is None or offset is None or length is None:
        return None
    return stage.world.files[record.body_key][offset : offset + length]


@pytest.mark.parametrize("bodies", Bodies)
async def test_other_content_is_fetched_only_if_all_is_stored(bodies: Bodies) -> None:
    stage = await crawled(replace(CRAWL, bodies=bodies))
    everything = bodies is Bodies.ALL
    assert outcomes(stage.world) == {
        f"{SITE}/a": "fetched.ok",
        f"{SITE}/b": "fetched.ok" if everything else "skipped.content_type",
    }
    accepted = {request.accept for request in stage.web.requests}
    assert accepted == {HTML_TYPES | {ANY_TYPE} if everything else HTML_TYPES}
    assert stored(stage, f"{SITE}/a") == (None if bodies is Bodies.OFF else PAGE.body, None)
    assert stored(stage, f"{SITE}/b") == (PDF.body if everything else None, None)


async def test_texts_and_bodies_are_stored_redacted() -> None:
    """A PDF cannot be redacted, so it is omitted."""
    crawl = replace(CRAWL, bodies=Bodies.ALL, texts=True, redacted=("email",))
    stage = await crawled(crawl)
    assert PAGE.body is not None
    body, document = stored(stage, f"{SITE}/a")
    assert body == PAGE.body.replace(b"jo@example.com", b"[email]")
    assert document == {
        "title": "Ask [email]",
        "description": None,
        "language": None,
        "text": "[email]",
        "markdown": "[email]",
    }
    assert stored(stage, f"{SITE}/b") == (None, None)
    assert [one.title for one in stage.world.pages.values()] == ["Ask [email]", None]
