"""WARC files and their index, read by warcio and by binary search."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from bisect import bisect_left
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from warcio.archiveiterator import ArchiveIterator

from orbweaver.exporting import formats
from orbweaver.exporting.formats.hashed_file import FinishedFile
from orbweaver.exporting.formats.warc import surt
from orbweaver.frontier import warc
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord

if TYPE_CHECKING:
    import pytest

# Imported by its full name, because the package exports a function of this name.
module = importlib.import_module("orbweaver.exporting.formats.warc")
AT_MS = 1_795_262_400_123
NAME = "pages/warc/dt=2026-11-21/shop/shop-2026-11-21-03-00007.warc.gz"
ASKED = (("Host", "a.example"), ("User-Agent", "bot/1"), ("Cookie", "redacted"))
URLS = [f"https://{host}/{n}?b=2&a=1" for n in range(8) for host in ("b.example", "www.a.example")]


def page(number: int, **more: object) -> PageRecord:
    found = {"status": 200, "content_type": "text/html; charset=utf-8"} | more
    return PageRecord(
        crawl="shop",
        url=URLS[number],
        outcome=Outcome.FETCHED,
        reason=Reason.OK,
        fetched_at=AT_MS + number * 1000,
        depth=0,
        **found,  # type: ignore[arg-type]
    )


def body_of(number: int) -> bytes:
    return b"<title>%d</title>" % number + bytes(range(256)) * number


def member_of(number: int) -> bytes:
    return warc.response(
        URLS[number],
        AT_MS + number * 1000,
        status=200,
        headers={"content-type": "text/html; charset=utf-8", "content-encoding": "gzip"},
        body=body_of(number),
        truncated=False,
        asked=ASKED if number % 2 else (),
    )


def archived(folder: Path) -> tuple[FinishedFile, FinishedFile]:
    writer = formats.archive(folder, NAME)
    for number in range(len(URLS)):
        assert writer.add(page(number), member_of(number))
    assert not writer.add(page(0), warc.tombstone(len(member_of(0))))
    archive, index = writer.close()
    assert (archive.suffix, index.suffix) == (".warc.gz", ".cdxj")
    assert archive.rows == index.rows == len(URLS)
    return archive, index


def test_warcio_accepts_file_and_digests(tmp_path: Path) -> None:
    archive, _ = archived(tmp_path)
    words = [sys.executable, "-m", "warcio.cli", "check", "-v", str(archive.path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("digest pass") == len(URLS)
    with archive.path.open("rb") as file:
        info, *pages = [
            (record.rec_headers, record.content_stream().read())
            for record in ArchiveIterator(file, check_digests=True)
        ]
    assert info[0].get_header("WARC-Type") == "warcinfo"
    assert info[0].get_header("WARC-Filename") == NAME
    assert b"isPartOf: shop\r\n" in info[1]
    answers = [page for page in pages if page[0].get_header("WARC-Type") == "response"]
    assert [body for _, body in answers] == [body_of(number) for number in range(len(URLS))]
    assert [headers.get_header("WARC-Target-URI") for headers, _ in answers] == URLS
    asked = [page for page in pages if page[0].get_header("WARC-Type") == "request"]
    assert [headers.get_header("WARC-Target-URI") for headers, _ in asked] == URLS[1::2]
    assert [headers.get_header("WARC-Concurrent-To") for headers, _ in asked] == [
        headers.get_header("WARC-Record-ID") for headers, _ in answers[1::2]
    ]


def test_stored_responses_are_copied_byte_for_byte(tmp_path: Path) -> None:
    archive, _ = archived(tmp_path)
    body = archive.path.read_bytes()
    members = list(warc.members(body))
    stored = [one for one in members if one.record.type == "response"]
    assert [body[one.offset : one.offset + one.length] for one in stored] == [
        *map(member_of, range(len(URLS)))
    ]
    assert [one.record.type for one in members[1:5]] == ["response"] * 2 + ["request", "response"]


def test_index_finds_every_answer(tmp_path: Path) -> None:
    archive, index = archived(tmp_path)
    lines = index.path.read_bytes().splitlines()
    assert lines == sorted(lines)
    for number, url in enumerate(URLS):
        line = lines[bisect_left(lines, f"{surt(url)} ".encode())].decode()
        key, moment, text = line.split(" ", 2)
        entry = json.loads(text)
        assert (key, moment) == (surt(url), f"202611211200{number:02d}")
        assert entry["filename"] == "shop-2026-11-21-03-00007.warc.gz"
        assert (entry["url"], entry["mime"], entry["status"]) == (url, "text/html", "200")
        assert entry["digest"] == warc.digest_of(body_of(number))
        with archive.path.open("rb") as file:
            file.seek(int(entry["offset"]))
            (found,) = ArchiveIterator(BytesIO(file.read(int(entry["length"]))))
            assert found.rec_headers.get_header("WARC-Target-URI") == url


def test_index_equals_index_of_warcio(tmp_path: Path) -> None:
    archive, index = archived(tmp_path)
    fields = "warc-type,offset,warc-target-uri,http:status,warc-payload-digest"
    words = [sys.executable, "-m", "warcio.cli", "index", "-f", fields, str(archive.path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    theirs = [json.loads(line) for line in done.stdout.splitlines()]
    ours = [json.loads(line.split(" ", 2)[2]) for line in index.path.read_text().splitlines()]
    assert sorted(
        (
            entry["offset"],
            entry["warc-target-uri"],
            entry["http:status"],
            entry["warc-payload-digest"],
        )
        for entry in theirs
        if entry["warc-type"] == "response"
    ) == sorted((entry["offset"], entry["url"], entry["status"], entry["digest"]) for entry in ours)


def test_same_pages_give_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = archived(tmp_path)
    monkeypatch.setattr(module, "LINES_MAX", 3)
    second = archived(tmp_path)
    assert [made.sha256 for made in first] == [made.sha256 for made in second]
    assert {path.name for path in tmp_path.iterdir()} == {
        made.path.name for made in (*first, *second)
    }


def test_discarded_archive_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINES_MAX", 2)
    writer = formats.archive(tmp_path, NAME)
    for number in range(5):
        writer.add(page(number), member_of(number))
    assert writer.size > sum(len(member_of(number)) for number in range(5))
    writer.discard()
    writer.discard()
    assert list(tmp_path.iterdir()) == []


def test_answer_without_type_is_indexed(tmp_path: Path) -> None:
    writer = formats.archive(tmp_path, NAME)
    url = "https://example.org/" + "a" * 9_000
    member = warc.response(url, AT_MS, status=404, headers={}, body=b"", truncated=True)
    assert writer.add(page(0, content_type=None, status=404), member)
    _, index = writer.close()
    entry = json.loads(index.path.read_text().split(" ", 2)[2])
    assert (entry["mime"], entry["status"]) == ("unk", "404")
    assert entry["digest"] == warc.digest_of(b"")
