"""Page bodies: stored in few files, and readable by one range request each with any reader."""

from __future__ import annotations

import hashlib
import io
import subprocess
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.e2e.stand import PROGRAM, Row, Stand
from tests.sites import child

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(200)]
CHECK = PROGRAM.with_name("warcio")


def segments_of(stand: Stand, crawl: str, folder: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for key, body in stand.files(f"bodies/{crawl}/"):
        found[key] = folder / key.rpartition("/")[2]
        found[key].write_bytes(body)
    return found


def body_by_range(stand: Stand, row: Row) -> bytes:
    """Read a page's WARC record by its row, without the product's reader."""
    first, last = row["body_offset"], row["body_offset"] + row["body_length"] - 1
    with stand.client("s3") as s3:
        answer = s3.get_object(
            Bucket=stand.outputs["Bucket"], Key=row["body_key"], Range=f"bytes={first}-{last}"
        )
        member = answer["Body"].read()
    record = next(iter(ArchiveIterator(io.BytesIO(member), check_digests="raise")))
    assert record.rec_headers.get_header("WARC-Target-URI") == row["url"]
    content: bytes = record.content_stream().read()
    return content


def test_bodies_of_crawl_match_recorded_digests(stand: Stand, tmp_path: Path) -> None:
    with child.start("bookshop", "--books", "60") as shop:
        crawled = stand.start(shop.url + "/", "--delay", "0", "--no-sitemaps")
    crawl = crawled.result["crawl"]
    files = segments_of(stand, crawl, tmp_path)
    for path in files.values():
        checked = subprocess.run(
            [CHECK, "check", path], capture_output=True, text=True, check=False
        )
        assert checked.returncode == 0, checked.stdout
    fetched = [row for row in crawled.rows if row["outcome"] == "fetched"]
    assert {row["body_key"] for row in fetched} == set(files)
    assert all(row["body_key"] is None for row in crawled.rows if row["outcome"] != "fetched")
    # One file per batch of any pages: few pages wait for each other in vain.
    assert len(files) <= max(3, len(fetched) // 5)
    for row in fetched[::7]:
        assert hashlib.sha256(body_by_range(stand, row)).hexdigest() == row["sha256"]
    row = fetched[0]
    done = subprocess.run(
        [PROGRAM, "page", row["url"], "--crawl", crawl, "--body"],
        env=stand.environment,
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert hashlib.sha256(done.stdout).hexdigest() == row["sha256"]
