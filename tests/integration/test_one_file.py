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
from tests.sites.server import Answer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.sites.graph import Graph, Script

BOOKS = [f"/books/{number}" for number in range(3)]


@pytest.fixture(scope="module")
def site() -> Iterator[Graph]:
    pages = {"/": graph.page("Home", BOOKS), **{path: graph.page(path, []) for path in BOOKS}}
    with graph.serve_in_background(pages) as served:
        yield served


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: Graph) -> Path:
    monkeypatch.chdir(tmp_path)
    rule = '[[items]]\nname = "books"\nmatch = "/books/"\nfields.title = "title"\n'
    text = f'name = "shop"\nseeds = ["{site.url}/"]\n[politeness]\ndelay = "0s"\n{rule}'
    (tmp_path / "crawl.toml").write_text(text)
    return tmp_path


def rows(path: Path) -> list[dict[str, object]]:
    if path.suffix == ".parquet":
        found: list[dict[str, object]] = pq.read_table(path).to_pylist()
        return found
    text = path.read_text("utf-8-sig")
    if path.suffix == ".csv":
        return [*csv.DictReader(text.splitlines())]
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_out_file_holds_table_by_its_name(suffix: str, folder: Path) -> None:
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
    assert main.main(words.split()) == 2
    assert said in capsys.readouterr().err
    assert not [*folder.glob("a.*")]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_join_of_parts_has_rows_of_all(form: str, tmp_path: Path) -> None:
    """Column names are written once. A part without a column has empty cells."""
    import pyarrow as pa

    parts = [tmp_path / f"{name}.{form}" for name in "abc"]
    for part in parts:
        cells = {"title": part.stem} | ({"price": "1"} if part.stem == "c" else {})
        if form == "csv":
            lines = "".join(f"{','.join(words)}\r\n" for words in (cells, cells.values()))
            part.write_bytes(BYTE_ORDER_MARK + lines.encode())
        else:
            pq.write_table(pa.table({name: [cell] for name, cell in cells.items()}), part)
    _join(parts, tmp_path / f"all.{form}", form)
    found = [(row["title"], row["price"] or None) for row in rows(tmp_path / f"all.{form}")]
    assert found == [("a", None), ("b", None), ("c", "1")]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_out_file_of_later_runs_has_rows_of_all(
    suffix: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that continues the crawl, or requests nothing, loses no row. It names the runs."""
    words = ["crawl", "--config", "crawl.toml", "--out", f"pages.{suffix}", "--max-pages"]
    out = ""
    for limit, sources in (("2", ""), ("4", " and 1 earlier run of the same crawl"), ("4", "")):
        assert main.main([*words, limit]) == 0
        found = [row["url"] for row in rows(folder / f"pages.{suffix}")]
        assert len(found) == len({*found}) == int(limit)
        out = capsys.readouterr().out
        assert "  rows of shop-2" in out
        assert sources in out
    assert "it replaced the earlier file of" in out


def test_export_of_name_has_newest_record_of_each_url(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A page that failed at first; a folder has one run, and its line counts the other pages."""
    monkeypatch.chdir(tmp_path)
    answers = iter((Answer(status=404), graph.page("/2", ())))
    pages: dict[str, Script] = {
        "/": graph.page("/", ("/1", "/2")),
        "/1": graph.page("/1", ()),
        "/2": lambda _: next(answers),
    }
    with graph.serve_in_background(pages) as served:
        words = ["crawl", f"{served.url}/", "--name", "x", "--delay", "0", "--format", "csv"]
        assert main.main(words) == 0
        capsys.readouterr()
        assert main.main(words) == 0
    assert "earlier runs of the same crawl have 2 pages" in capsys.readouterr().out
    assert main.main(["export", "--crawl", "x", "--out", "pages.csv"]) == 0
    assert [row["status"] for row in rows(tmp_path / "pages.csv")] == ["200"] * 3


def test_out_file_of_other_seeds_is_not_written(
    folder: Path, site: Graph, capsys: pytest.CaptureFixture[str]
) -> None:
    """The seed is a page of another crawl, which is named."""
    assert main.main(["crawl", "--config", "crawl.toml", "--format", "csv"]) == 0
    words = ["crawl", f"{site.url}/books/1", "--name", "shop", "--delay", "0", "--out", "a.csv"]
    assert main.main(words) == 0
    assert not (folder / "a.csv").exists()
    assert "with other seeds, has: orbweaver export --crawl shop-2" in capsys.readouterr().out
