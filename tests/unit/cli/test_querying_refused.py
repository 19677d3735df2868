"""`query`: refused statements and error texts."""

from __future__ import annotations

import io

import pytest

from orbweaver.cli.main import run
from tests.unit.cli.conftest import USAGE, Desk
from tests.unit.cli.exports import CRAWL, USUAL, made, put

# --- refused statements -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM read_csv('/etc/hostname')",
        "SELECT * FROM '/etc/hostname'",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM parquet_metadata('/etc/hostname')",
        "SELECT * FROM 'http://127.0.0.1:9/a.parquet'",
        "SELECT * FROM read_parquet('s3://bucket/a.parquet')",
    ],
)
def test_query_reads_no_other_files_and_no_network(desk: Desk, sql: str) -> None:
    said = desk.refused(sql)
    assert "a query can read tables" in said or "there is no table '/etc/hostname'" in said


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("COPY (SELECT 1) TO 'x.csv'", "COPY"),
        ("INSTALL httpfs", "LOAD"),
        ("LOAD httpfs", "LOAD"),
        ("ATTACH 'x.db'", "ATTACH"),
        ("SET enable_external_access = true", "SET"),
        ("CREATE TABLE t AS SELECT 1", "CREATE"),
        ("DROP VIEW pages", "DROP"),
        ("DELETE FROM pages", "DELETE"),
        ("PRAGMA enable_profiling", "PRAGMA"),
        ("CALL enable_logging()", "CALL"),
        ("EXPLAIN ANALYZE COPY (SELECT 1) TO 'x.csv'", "EXPLAIN"),
        ("EXPORT DATABASE 'x'", "EXPORT"),
        ("SELECT 1; SELECT 2", "SELECT, SELECT"),
        ("", "none"),
        ("-- nothing", "none"),
    ],
)
def test_query_is_one_reading_statement(desk: Desk, sql: str, kind: str) -> None:
    around = desk.surroundings()
    object.__setattr__(around, "stdin", io.StringIO(sql))
    assert run(["query", "-"], lambda: around) == USAGE
    assert f"this is {kind}" in desk.noted
    assert sorted(path.name for path in desk.folder.iterdir()) == ["out"]


def test_settings_cannot_be_changed_by_a_select(desk: Desk) -> None:
    said = desk.refused("SELECT * FROM enable_logging(storage = 'file', storage_path = 'x')")
    assert "locked" in said


def test_python_variables_are_no_tables(desk: Desk) -> None:
    """DuckDB would read a data frame of that name."""
    assert "there is no table 'sheets'" in desk.refused("SELECT * FROM sheets")


def test_query_over_memory_limit_is_refused(desk: Desk) -> None:
    desk.folder.joinpath("x").mkdir()
    said = desk.refused("SELECT length(string_agg(repeat('x', 1000000), '')) FROM range(3000)")
    assert "memory" in said.lower()


# --- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("query", "give one of SQL, --saved NAME and --list"),
        ("query 'SELECT 1' --list", "give one of"),
        ("query --saved outcome", "there are changes, hosts, outcomes"),
        ("query 'SELECT 1' --from out --target local", "omit --target"),
        ("query 'SELECT 1' --from nowhere", "there are no exports in nowhere"),
        ("query 'SELECT 1' --day 2026-11-20", "there are no exports of 2026-11-20 in out"),
        ("query 'SELECT 1' --format xml", "--format"),
        ("query 'SELECT * FROM page'", "there is no table 'page': did you mean pages? There are"),
        ("query 'SELECT * FROM items_x'", "items_books_example_books"),
        ("query 'SELEC 1'", 'syntax error at or near "SELEC"'),
        ("query 'SELECT nope FROM pages'", 'Referenced column "nope" not found'),
        ("query \"SELECT CAST('x' AS bigint) FROM pages\"", "Could not convert string"),
    ],
)
def test_error_of_query_is_explained_with_exit_code_2(desk: Desk, line: str, said: str) -> None:
    assert said in desk.errors(line)
    assert "Traceback" not in desk.noted


def test_error_with_quoted_query_is_cleaned(desk: Desk) -> None:
    assert "\x1b" not in desk.refused('SELECT * FROM "a\x1b[31mb"')
    assert "\x1b" not in desk.refused("SELECT '\x1b[31m' nope nope")


def test_exports_without_parquet_are_refused_with_fix(desk: Desk) -> None:
    put(desk.folder / "lines", made(USUAL, names=("jsonl",)))
    assert "export with --format parquet" in desk.refused("SELECT 1", "--from lines")


@pytest.mark.parametrize("harm", ["cut", "gone"])
def test_changed_export_file_is_an_error(desk: Desk, harm: str) -> None:
    [file] = (desk.folder / "out" / CRAWL / "pages").rglob("*.parquet")
    if harm == "cut":
        file.write_bytes(file.read_bytes()[:-1])
    else:
        file.unlink()
    assert "is not the file that was exported" in desk.refused("SELECT 1 FROM pages")


def test_unreadable_manifest_is_skipped(desk: Desk) -> None:
    (desk.folder / "out" / CRAWL / "manifests" / "dt=2026-11-20.json").write_text("{}")
    assert desk.rows("SELECT count(*) AS n FROM pages") == [{"n": 3}]
