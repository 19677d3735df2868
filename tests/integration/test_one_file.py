"""`--out FILE`: one table of a crawl as one file."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from orbweaver.cli import main
from orbweaver.cli.one_file import _join
from orbweaver.exporting.formats.csv import BYTE_ORDER_MARK
from tests.sites import graph

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.sites.graph import Graph

BOOKS = [f"/books/{number}" for number in range(3)]


@pytest.fixture(scope="module")
def site() -> Iterator[Graph]:
    """Serve a list of books."""
    pages = {"/": graph.page("Home", BOOKS), **{path: graph.page(path, []) for path in BOOKS}}
    with graph.serve_in_background(pages) as served:
        yield served


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: Graph) -> Path:
    """Work in an empty folder with a definition that has rules."""
    monkeypatch.chdir(tmp_path)
    rule = '[[items]]\nname = "books"\nmatch = "/books/"\nfields.title = "title"\n'
    text = f'name = "shop"\nseeds = ["{site.url}/"]\n[politeness]\ndelay = "0s"\n{rule}'
    (tmp_path / "crawl.toml").write_text(text)
    return tmp_path


def rows(path: Path) -> list[dict[str, object]]:
    """Read a file by its extension."""
    if path.suffix == ".parquet":
        found: list[dict[str, object]] = pq.read_table(path).to_pylist()
        return found
    text = path.read_text("utf-8-sig")
    if path.suffix == ".csv":
        return [*csv.DictReader(text.splitlines())]
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_out_file_holds_table_by_its_name(suffix: str, folder: Path) -> None:
    """A rule's items, or pages; a file is replaced, and no other is written."""
    words = ["crawl", "--config", "crawl.toml", "--out"]
    assert main.main([*words, f"new/books.{suffix}"]) == 0
    assert {row["title"] for row in rows(folder / "new" / f"books.{suffix}")} == {*BOOKS}
    (folder / f"all.{suffix}").write_text("old")
    assert main.main(["export", "--crawl", "shop", "--out", f"all.{suffix}"]) == 0
    assert {row["title"] for row in rows(folder / f"all.{suffix}")} == {"Home", *BOOKS}
    known = {".orbweaver", "crawl.toml", "new", f"all.{suffix}"}
    assert {path.name for path in folder.iterdir()} == known


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("crawl --config crawl.toml --out a.json", "one file ends in .csv, .jsonl, .parquet"),
        ("crawl --config crawl.toml --out a.csv --format parquet", "a.csv is csv"),
        ("export --out a.csv", "give --crawl ID without --day"),
        ("serve --out a.csv", "this command needs a folder"),
    ],
)
def test_out_file_of_other_format_exits_2(
    words: str, said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No crawl starts and no file is written."""
    assert main.main(words.split()) == 2
    assert said in capsys.readouterr().err
    assert not [*folder.glob("a.*")]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_join_of_parts_has_rows_of_all(form: str, tmp_path: Path) -> None:
    """Column names are written once."""
    import pyarrow as pa

    parts = [tmp_path / f"{name}.{form}" for name in "ab"]
    for part in parts:
        if form == "csv":
            part.write_bytes(BYTE_ORDER_MARK + f"title\r\n{part.stem}\r\n".encode())
        else:
            pq.write_table(pa.table({"title": [part.stem]}), part)
    _join(parts, tmp_path / f"all.{form}", form)
    assert [row["title"] for row in rows(tmp_path / f"all.{form}")] == ["a", "b"]
