"""Reads an export's files with DuckDB and warcio, and checks them.

Each row must occur once, and be equal in all formats.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import duckdb
from warcio.archiveiterator import ArchiveIterator

from tests.exports_scale.records import BROKEN_EVERY, DAY, NAME, RULE, url_of

ITEMS = f"items/{NAME}/{RULE}"
READ = {
    "jsonl": "read_json('{}', format = 'newline_delimited', maximum_object_size = 33554432)",
    "csv": "read_csv('{}', header = true, quote = '\"', escape = '\"')",
    "parquet": "read_parquet('{}')",
}
# SQL sums per table. They show that each row occurs once with its values.
SUMS = {
    "pages": "count(*), count(DISTINCT url), sum(links)::BIGINT, sum(bytes)::BIGINT,"
    " max(sha256), epoch_ms(min(fetched_at)::TIMESTAMPTZ)",
    ITEMS: "count(*), count(DISTINCT url), round(sum(price), 2)::DOUBLE, sum(stock)::BIGINT,"
    " round(sum(rating), 1)::DOUBLE, count(*) FILTER (available)",
    "invalid_items": "count(*), count(DISTINCT url), count(problems)",
    "texts": "count(*), count(DISTINCT url), sum(length(text))::BIGINT",
}


class WrongError(Exception):
    """The files differ from the expected export. The message shows the difference."""


def check(folder: Path, rows: int, *, bodies: bool) -> dict[str, Any]:
    """Read an export back and return its counts. Raises WrongError."""
    manifest = json.loads((folder / f"manifests/dt={DAY}.json").read_text())
    for file in manifest["files"]:
        with (folder / file["path"]).open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        expect(file["path"], digest, file["sha256"])
    broken = -(-rows // BROKEN_EVERY)
    counts = {"pages": rows, ITEMS: rows - broken, "invalid_items": broken}
    counts |= {"texts": rows} if bodies else {}
    expect("rows in the manifest", {t: n for t, n in manifest["rows"].items() if n}, counts)
    found: dict[str, Any] = {}
    for table, count in counts.items():
        read = {name: sums_of(folder, table, name) for name in READ}
        for name, sums in read.items():
            expect(f"{table} in {name}", sums[:2], (count, count))
            expect(f"{table} in {name}", sums, read["jsonl"])
        found[table] = read["jsonl"]
    if bodies:
        found["warc"] = answers_in(folder, rows)
    return found


def expect(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise WrongError(f"{what}: {found!r}, not {expected!r}")


def sums_of(folder: Path, table: str, name: str) -> tuple[Any, ...]:
    source = READ[name].format(folder / table / name / "*" / "*" / "*.*")
    with duckdb.connect() as connection:
        connection.execute("SET threads = 2; SET TimeZone = 'UTC'")
        found = connection.execute(f"SELECT {SUMS[table]} FROM {source}").fetchone()  # noqa: S608 - our own words
    return tuple(found or ())


def answers_in(folder: Path, rows: int) -> int:
    """Count the responses in all archives, and find some of them by their index."""
    count = 0
    sought = {url_of(number) for number in range(0, rows, max(1, rows // 20))}
    for archive in sorted(folder.glob(f"pages/warc/dt={DAY}/*/*.warc.gz")):
        with archive.open("rb") as file:
            for record in ArchiveIterator(file, check_digests="raise"):
                count += record.rec_type == "response"
                record.content_stream().read()
            for line in archive.with_suffix("").with_suffix(".cdxj").read_text().splitlines():
                entry = json.loads(line.split(" ", 2)[2])
                if entry["url"] in sought:
                    file.seek(int(entry["offset"]))
                    one = next(iter(ArchiveIterator(file)))
                    expect("an answer", one.rec_headers.get_header("WARC-Target-URI"), entry["url"])
                    sought.discard(entry["url"])
    expect("answers", count, rows)
    expect("answers not in the index", sought, set())
    return count
