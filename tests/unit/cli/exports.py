"""Exports for query tests: files as the exporter writes them, in a folder or in memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from orbweaver.exporting import formats
from orbweaver.exporting.cells import cells_of
from orbweaver.exporting.manifest import PREFIX, File, Manifest, Sums, encode_manifest, path_of
from orbweaver.model.columns import CHANGES, PAGES, Column, Table, Type, item_table
from tests.memory import World

DAY = "2026-11-21"
NOON_MS = 1_795_219_200_000 + 12 * 3_600_000
CRAWL = "docs-20261121-120000"
BOOKS = item_table(
    "books.example",
    "books",
    (
        Column(name="title"),
        Column(name="price", type=Type.DECIMAL),
        Column(name="stock", type=Type.INTEGER),
        Column(name="tags", many=True),
    ),
)


def page(name: str, **more: Any) -> dict[str, Any]:
    given = {
        "crawl": CRAWL,
        "url": f"https://example.org/{name}",
        "outcome": "fetched",
        "reason": "ok",
        "fetched_at": NOON_MS,
        "depth": 1,
        "status": 200,
        "bytes": 1000,
        "latency_ms": 12,
    }
    return given | more


def change(name: str, kind: str) -> dict[str, Any]:
    return {
        "crawl": CRAWL,
        "url": f"https://example.org/{name}",
        "change": kind,
        "found_at": NOON_MS,
    }


def book(title: str, price: str | None, **more: Any) -> dict[str, Any]:
    given = {"crawl": CRAWL, "url": "https://example.org/", "fetched_at": NOON_MS, "place": 0}
    return given | {"title": title, "price": price, "stock": 3, "tags": ["a", "b"]} | more


Rows = list[tuple[Table, list[dict[str, Any]]]]
USUAL: Rows = [
    (PAGES, [page(""), page("a", title="A"), page("b", outcome="failed", reason="timeout")]),
    (CHANGES, [change("a", "created"), change("b", "unchanged")]),
    (BOOKS, [book("One", "12.30"), book("Two", None)]),
]


def made(
    rows: Rows,
    *,
    day: str = DAY,
    crawl: str = CRAWL,
    of_day: bool = False,
    names: tuple[str, ...] = ("jsonl", "parquet"),
) -> dict[str, bytes]:
    """Make the export of a crawl's day as path to file content, with its manifest."""
    files: dict[str, bytes] = {}
    listed: list[File] = []
    with TemporaryDirectory() as folder:
        for table, lines in rows:
            for name in names:
                writer, cells = formats.writer(name, table, Path(folder)), cells_of(table)
                for line in lines:
                    writer.add(cells({**line, "crawl": crawl}))
                part = writer.close()
                path = path_of(table.name, name, day, crawl, 0, 0, part.suffix)
                files[path] = part.path.read_bytes()
                listed.append(
                    File(
                        path=path,
                        table=table.name,
                        format=name,
                        crawl=crawl,
                        rows=part.rows,
                        bytes=part.bytes,
                        sha256=part.sha256,
                    )
                )
    sums = Sums(name="docs", rows={table.name: len(lines) for table, lines in rows})
    manifest = Manifest(
        day=day,
        crawl=None if of_day else crawl,
        crawls={crawl: sums},
        files=tuple(listed),
        columns={table.name: table.columns for table, _ in rows},
    )
    return {**files, manifest.path: encode_manifest(manifest)}


def put(folder: Path, files: Mapping[str, bytes]) -> None:
    for path, body in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(body)


def put_into(world: World, files: Mapping[str, bytes]) -> None:
    world.files.update({f"{PREFIX}{path}": body for path, body in files.items()})
