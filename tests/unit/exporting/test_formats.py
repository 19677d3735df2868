"""Each format: exact bytes of small files, and properties of large ones."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from orbweaver.exporting import formats
from orbweaver.exporting.formats import parquet
from orbweaver.model.columns import PAGES, Column, Table, Type
from tests.unit.exporting.reading import written

COLUMNS = tuple(Column(name=kind.value, type=kind) for kind in Type)
EVERY = Table(name="every", columns=(*COLUMNS, Column(name="list", type=Type.DECIMAL, many=True)))
ROW: dict[str, Any] = {
    "string": "a\u2028b",
    "integer": -5,
    "number": 1e16,
    "decimal": "12.30",
    "boolean": True,
    "date": "2026-11-21",
    "moment": 1_795_219_200_007,
    "list": ["1.0", None],
}
NAMED = Table(name="named", columns=(Column(name="a"), Column(name="b")))


def test_jsonl_bytes_are_exact(tmp_path: Path) -> None:
    made = written("jsonl", EVERY, [ROW, {}], tmp_path)
    body = made.path.read_bytes()
    assert body[3:8] == bytes(5), "flags and time of gzip's header"
    assert gzip.decompress(body).decode() == (
        '{"string":"a\\u2028b","integer":-5,"number":1e+16,"decimal":12.30,"boolean":true,'
        '"date":"2026-11-21","moment":"2026-11-21T00:00:00.007Z","list":[1.0,null]}\n'
        '{"string":null,"integer":null,"number":null,"decimal":null,"boolean":null,'
        '"date":null,"moment":null,"list":null}\n'
    )
    assert (made.suffix, made.rows) == (".jsonl.gz", 2)


def test_csv_bytes_are_exact(tmp_path: Path) -> None:
    made = written("csv", EVERY, [ROW, {}], tmp_path)
    assert made.path.read_bytes().decode() == (
        "\ufeffstring,integer,number,decimal,boolean,date,moment,list\r\n"
        'a\u2028b,-5,1e+16,12.30,true,2026-11-21,2026-11-21T00:00:00.007Z,"[1.0,null]"\r\n'
        ",,,,,,,\r\n"
    )
    assert (made.suffix, made.rows) == (".csv", 2)


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("", '""'),
        ("plain", "plain"),
        ("a, b", '"a, b"'),
        ('say "a"', '"say ""a"""'),
        ("two\nlines", '"two\nlines"'),
        ("=1+1", "'=1+1"),
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ('=HYPERLINK("http://e.org","a")', '"\'=HYPERLINK(""http://e.org"",""a"")"'),
        ("+49 30", "'+49 30"),
        ("-5", "'-5"),
        ("@name", "'@name"),
        ("\t=1", "'\t=1"),
        ("\r=1", '"\'\r=1"'),
        ("\uff1d1", "'\uff1d1"),
        ("'=1", "''=1"),
        ("'tis", "'tis"),
        ("\x00=1", "'=1"),
        ("\x1b[31mred", "[31mred"),
        ("nul\x00l", "null"),
        ("\x07", '""'),
        ("a-b", "a-b"),
    ],
)
def test_csv_cell_is_escaped(text: str, cell: str, tmp_path: Path) -> None:
    made = written("csv", NAMED, [{"a": text, "b": "-"}], tmp_path)
    assert made.path.read_bytes().decode() == f"\ufeffa,b\r\n{cell},'-\r\n"


def test_parquet_columns_have_types(tmp_path: Path) -> None:
    made = written("parquet", EVERY, [ROW, {}], tmp_path)
    with pq.ParquetFile(made.path) as file:
        assert file.schema_arrow.types[:7] == [
            pa.string(),
            pa.int64(),
            pa.float64(),
            pa.decimal128(18, 4),
            pa.bool_(),
            pa.date32(),
            pa.timestamp("us", tz="UTC"),
        ]
        assert file.schema_arrow.types[7].value_type == pa.decimal128(18, 4)
        assert all(field.nullable for field in file.schema_arrow)
        assert file.schema_arrow.metadata is None
        assert file.metadata.metadata is None
        assert file.schema.column(3).physical_type == "INT64"
        group = file.metadata.row_group(0)
        assert {group.column(n).compression for n in range(group.num_columns)} == {"ZSTD"}
        moment = group.column(6).statistics
        assert moment.min == datetime(2026, 11, 21, 0, 0, 0, 7000, tzinfo=UTC)
        assert (moment.null_count, group.column(1).statistics.max) == (1, -5)


def test_parquet_row_groups_end_by_rows_and_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "GROUP_ROWS_MAX", 2_048)
    rows = [{"a": str(n)} for n in range(5_000)]
    made = [written("parquet", NAMED, rows, tmp_path) for _ in range(2)]
    assert made[0].sha256 == made[1].sha256
    with pq.ParquetFile(made[0].path) as file:
        groups = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
        assert groups == [2_048, 2_048, 904]
        assert file.read().column("a").to_pylist() == [str(n) for n in range(5_000)]
    monkeypatch.setattr(parquet, "GROUP_BYTES_MAX", 3_000_000)
    large = [{"a": "x" * 600_000}] * 20
    with pq.ParquetFile(written("parquet", NAMED, large, tmp_path).path) as file:
        groups = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
    assert sum(groups) == 20
    assert max(groups) <= 6


def test_parquet_rows_of_many_lines_files_stay_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "LINES_FILE_BYTES", 10_000)
    texts = [str(n) for n in range(5_000)]
    made = written("parquet", NAMED, [{"a": text} for text in texts], tmp_path)
    assert pq.read_table(made.path).column("a").to_pylist() == texts


@pytest.mark.parametrize("name", formats.NAMES)
def test_file_without_rows_is_written(name: str, tmp_path: Path) -> None:
    made = written(name, PAGES, [], tmp_path)
    assert made.rows == 0
    if name == "parquet":
        assert pq.read_schema(made.path).names == [column.name for column in PAGES.columns]


@pytest.mark.parametrize("name", formats.NAMES)
@pytest.mark.parametrize("rows", [0, 3, 5_000])
def test_discarded_writer_leaves_no_file(name: str, rows: int, tmp_path: Path) -> None:
    writer = formats.writer(name, NAMED, tmp_path)
    for number in range(rows):
        writer.add([f"{number}", None])
    writer.discard()
    writer.discard()
    assert list(tmp_path.iterdir()) == []
    kept = formats.writer(name, NAMED, tmp_path)
    made = kept.close()
    kept.discard()
    assert list(tmp_path.iterdir()) == [made.path]


@pytest.mark.parametrize("name", formats.NAMES)
def test_writer_size_estimates_file_size(name: str, tmp_path: Path) -> None:
    writer = formats.writer(name, NAMED, tmp_path)
    for number in range(70_000):
        writer.add([f"https://example.org/{number * 7919}", f"{number % 9}"])
    said = writer.size
    made = writer.close()
    assert made.bytes * 0.5 < said < made.bytes * 2


def test_parquet_size_counts_waiting_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise rows that compress well could fill the temporary storage."""
    monkeypatch.setattr(parquet, "SAMPLE_ROWS", 10)
    writer = formats.writer("parquet", NAMED, tmp_path)
    for _ in range(20):
        writer.add(["x" * 80_000, None])
    assert writer.size >= 20 * 80_000 // parquet.SHRINKS_BY_MAX
    assert writer.close().bytes < 80_000


def test_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match="xml is none of jsonl, csv, parquet"):
        formats.writer("xml", PAGES, None)  # type: ignore[arg-type]


def test_column_names_are_escaped(tmp_path: Path) -> None:
    table = Table(name="t", columns=(Column(name='%s "a"'), Column(name="=b, c")))
    line = gzip.decompress(written("jsonl", table, [{"=b, c": "%d"}], tmp_path).path.read_bytes())
    assert json.loads(line) == {'%s "a"': None, "=b, c": "%d"}
    assert written("csv", table, [], tmp_path).path.read_bytes().decode() == (
        '\ufeff"%s ""a""","\'=b, c"\r\n'
    )
