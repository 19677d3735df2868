"""Options `--body`, `--text` and `--screenshot` of `page URL`."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from orbweaver.frontier import body_file, warc
from orbweaver.model.http_exchange import Response
from tests.unit.cli.fakes import NOW_MS, SITE, Stage

PICTURE = b"RIFF" + bytes(300)
BODY = "<p>läuft \x1b[31m\nzwei".encode()


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path)
    stage.run(f"crawl {SITE}")
    (key, record), *_ = (
        (key, record) for key, record in stage.world.pages.items() if record.url == f"{SITE}/"
    )
    answer = Response(status=200, headers={}, body=BODY)
    document = {"text": "läuft", "markdown": "# läuft \x1b[31m\n\nzwei"}
    kept = body_file.kept_of(record.url, NOW_MS, answer=answer, body=BODY, document=document)
    kept = body_file.with_screenshot(kept, record.url, NOW_MS, PICTURE)
    assert kept is not None
    opened = body_file.Segment(record.crawl, NOW_MS, Random(1))
    stage.world.pages[key] = body_file.with_body_location(record, opened.add(kept))
    stage.world.files[opened.key] = opened.whole()
    stage.out.seek(0)
    stage.out.truncate()
    return stage


def test_body_is_written_unchanged_to_pipe_or_file(stage: Stage) -> None:
    raw = io.BytesIO()
    stage.out = io.TextIOWrapper(raw, encoding="ascii")  # type: ignore[assignment]
    assert stage.run(f"page {SITE}/ --body") == 0
    assert raw.getvalue() == BODY


def test_body_on_terminal_is_cleaned(stage: Stage) -> None:
    assert stage.output(f"page {SITE}/ --body") == "<p>läuft \nzwei\n"


def test_main_text_is_written_as_clean_markdown(stage: Stage) -> None:
    assert stage.output(f"page {SITE}/ --text") == "# läuft \n\nzwei\n"


def test_truncated_main_text_is_reported_on_standard_error(stage: Stage) -> None:
    (place,) = (k for k, record in stage.world.pages.items() if record.body_key)
    record = stage.world.pages[place]
    stage.world.pages[place] = replace(record, cut="text=1200 title=3")
    assert stage.output(f"page {SITE}/ --text") == "# läuft \n\nzwei\n"
    assert "the text is cut: text 1,200: bytes of the main part" in stage.noted
    assert "title" not in stage.noted
    stage.world.pages[place] = replace(record, cut="title=3")
    assert "cut" not in stage.errors(f"page {SITE}/ --text", code=0)


def test_missing_body_has_reason(stage: Stage) -> None:
    (key,) = (key for key in stage.world.files if key.startswith("bodies/"))
    (place,) = (k for k, record in stage.world.pages.items() if record.body_key)
    record = stage.world.pages[place]
    whole = stage.world.files[key]
    length = record.body_length or 0
    end = (record.body_offset or 0) + length
    erased = whole[: record.body_offset] + warc.tombstone(length) + whole[end:]
    stage.world.files[key] = erased
    assert "was forgotten" in stage.errors(f"page {SITE}/ --body", code=11)
    del stage.world.files[key]
    stage.notes(f"page {SITE}/ --text", "the text of", "is past its retention", code=11)
    stage.world.pages[place] = replace(record, body_key=None)
    assert "no body of it is stored" in stage.errors(f"page {SITE}/ --body", code=11)


def test_screenshot_is_written_to_file_only(stage: Stage, tmp_path: Path) -> None:
    file = tmp_path / "page.webp"
    assert stage.run(f"page {SITE}/ --screenshot {file}") == 0
    assert file.read_bytes() == PICTURE
    assert (stage.said, "304 bytes of WebP" in stage.noted) == ("", True)
    (place,) = (k for k, record in stage.world.pages.items() if record.body_key)
    record = stage.world.pages[place]
    stage.world.pages[place] = replace(record, screenshot_offset=None, screenshot_length=None)
    assert stage.run(f"page {SITE}/ --screenshot {file}") == 11
    assert "set `render.screenshot` in the definition" in stage.noted
