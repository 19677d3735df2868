"""`query`: SQL over exports, refused statements and error texts."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from orbweaver.cli.main import run
from orbweaver.cli.query import duckdb as duck
from orbweaver.cli.query.saved import saved
from orbweaver.exporting.glue_schema import TABLES
from orbweaver.model.columns import LINKS, PAGES, Column, Type, item_table
from tests.unit.cli.conftest import USAGE, Desk
from tests.unit.cli.exports import (
    BOOKS,
    CRAWL,
    DAY,
    NOON_MS,
    USUAL,
    book,
    made,
    page,
    put,
    put_into,
)
from tests.unit.cli.fakes import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.cli.conftest import Desk


def test_query_reads_default_folder(desk: Desk) -> None:
    rows = desk.rows("SELECT outcome, count(*) AS pages FROM pages GROUP BY outcome ORDER BY 1")
    assert rows == [{"outcome": "failed", "pages": 1}, {"outcome": "fetched", "pages": 2}]


def test_every_type_is_returned(desk: Desk) -> None:
    sql = "SELECT * FROM items_books_example_books WHERE dt = '2026-11-21' ORDER BY title"
    assert desk.rows(sql) == [
        {
            "crawl": CRAWL,
            "url": "https://example.org/",
            "fetched_at": "2026-11-21T12:00:00.000Z",
            "place": 0,
            "title": title,
            "price": price,
            "stock": 3,
            "tags": ["a", "b"],
            "dt": DAY,
        }
        for title, price in (("One", "12.3000"), ("Two", None))
    ]


def test_csv_is_exact_for_any_content(desk: Desk) -> None:
    title = 'a, "b"\n\x1b[31mc'
    put(desk.folder / "other", made([(BOOKS, [book(title, "1")])]))
    sql = (
        "SELECT title, price, tags, NULL AS none, true AS yes, 1e300 AS big, DATE '2026-01-02' AS d"
    )
    assert desk.run(f'query "{sql} FROM items_books_example_books" --from other --format csv') == 0
    head, row = csv.reader(io.StringIO(desk.said))
    assert head == ["title", "price", "tags", "none", "yes", "big", "d"]
    assert row == [title, "1.0000", '["a", "b"]', "", "true", "1e+300", "2026-01-02"]


@pytest.mark.parametrize(
    ("name", "kind", "decision", "read"),
    [
        ("a", "a", "followed", "followed"),
        ("a", "a", "exclude", "exclude"),
        ("old", "a", "followed", "followed"),
        ("private", "a", "followed", "robots"),
        ("private", "sitemap", "followed", "robots"),
        ("later", "a", "followed", "waiting"),
        ("later", "redirect", "followed", "followed"),
        ("later", "img", "not_followed", "not_followed"),
    ],
)
def test_links_have_decision_by_record_of_target(
    desk: Desk, name: str, kind: str, decision: str, read: str
) -> None:
    forbidden = page("private", outcome="skipped", reason="robots")
    earlier = page("private", fetched_at=NOON_MS - 1)
    link = {"crawl": CRAWL, "url": "https://example.org/", "fetched_at": NOON_MS, "kind": kind}
    link |= {"target_url": f"https://example.org/{name}", "position": 0, "decision": decision}
    files = made([(PAGES, [page("a"), forbidden]), (LINKS, [link, link])])
    put(desk.folder / "other" / "one", files)
    old = made([(PAGES, [page("old"), earlier])], crawl="docs-20261120-120000", day="2026-11-20")
    put(desk.folder / "other" / "two", old)
    assert desk.run('query "SELECT decision FROM links" --from other --format json') == 0
    assert [json.loads(line)["decision"] for line in desk.said.splitlines()] == [read, read]


@pytest.mark.parametrize("form", ["csv", "json"])
def test_csv_on_terminal_escapes_control_characters(desk: Desk, form: str) -> None:
    desk.out = Terminal()
    assert (
        desk.output(f"query \"SELECT 'a,\x1b[2J\x7f\nb' AS t\" --format {form}")
        == {"csv": 't\n"a,\\x1b[2J\\x7f\nb"\n', "json": '{"t": "a,\\u001b[2J\\u007f\\nb"}\n'}[form]
    )


def test_table_on_terminal_is_cleaned_and_truncated(desk: Desk) -> None:
    put(desk.folder / "other", made([(PAGES, [page("a", title="x\x1b[31m" * 99, bytes=7)])]))
    head, row = desk.output("query 'SELECT title, bytes FROM pages' --from other").splitlines()
    assert head.split() == ["title", "bytes"]
    assert "\x1b" not in row
    assert row.split() == ["x" * 79 + "…", "7"]
    assert row.endswith("      7")
    assert head.startswith("title   ")
    assert desk.noted == "1 row\n"


def test_table_is_truncated_after_limit_and_says_so(desk: Desk) -> None:
    assert len(desk.output("query 'SELECT * FROM range(101) t(n)'").splitlines()) == 101
    assert desk.noted == "the first 100 rows; --limit shows more\n"
    assert desk.errors("query 'SELECT * FROM range(101) t(n)' --limit 200", code=0) == "101 rows\n"
    assert len(desk.rows("SELECT * FROM range(2500) t(n)")) == 2500
    assert len(desk.rows("SELECT * FROM range(2500) t(n)", "--limit 2")) == 2


def test_values_without_json_form_have_one_spelling(desk: Desk) -> None:
    sql = """SELECT 1 AS a, 2 AS a, 'NaN'::DOUBLE AS n, TIMESTAMP '2026-01-02 03:04:05.000006' AS m,
             '\\xAB'::BLOB AS b, {'x': 1.5} AS s, TIMESTAMPTZ '2026-01-02 03:04:05.5+02' AS z,
             INTERVAL '1' DAY AS i"""
    assert desk.rows(sql) == [
        {
            "a": 1,
            "a_2": 2,
            "n": "nan",
            "m": "2026-01-02T03:04:05.000006Z",
            "b": "ab",
            "s": {"x": "1.5"},
            "z": "2026-01-02T01:04:05.500Z",
            "i": "1 day, 0:00:00",
        }
    ]


def test_sql_is_read_from_standard_input(desk: Desk) -> None:
    around = desk.surroundings()
    object.__setattr__(
        around, "stdin", io.StringIO("-- how many\nSELECT count(*) AS n FROM pages;")
    )
    assert run(["query", "-", "--format", "json"], lambda: around) == 0
    assert desk.objects() == [{"n": 3}]


# --- tables -------------------------------------------------------------------------------------


def test_tables_without_exports_are_empty_with_columns(desk: Desk) -> None:
    for table in TABLES:
        if table.name in ("texts", "invalid_items"):
            assert desk.rows(f"TABLE {table.name}") == []
            names = [row["column_name"] for row in desk.rows(f"DESCRIBE {table.name}")]
            assert names == [*(column.name for column in table.columns), "dt"]


def test_list_shows_tables_with_rows_and_saved_queries(desk: Desk) -> None:
    lines = desk.output("query --list").splitlines()
    assert any(line.split()[:2] == ["pages", "3"] for line in lines)
    assert any(line.split()[:2] == ["items_books_example_books", "2"] for line in lines)
    assert all(name in desk.said for name in saved())
    assert desk.run("query --list --format json") == 0
    [listed] = [row for row in desk.objects() if row.get("table") == "items_books_example_books"]
    assert (listed["rows"], listed["columns"]["price"]) == (2, "decimal")
    queries = {row["query"]: row["sql"] for row in desk.objects() if "query" in row}
    assert queries == {name: query.sql for name, query in saved().items()}
    assert {row["name"] for row in desk.rows("SHOW TABLES")} >= {"pages", "changes"}


def test_folder_of_exports_is_read_as_one_table(desk: Desk) -> None:
    again = [page("", title="new"), page("z", title="new")]
    put(desk.folder / "out" / "again", made([(PAGES, again)], of_day=True))
    for place, name in enumerate((CRAWL, "again")):
        for file in (desk.folder / "out" / name / "manifests").rglob("*.json"):
            os.utime(file, (place, place))
    put(desk.folder / "out" / "more", made([(PAGES, [page("y")])], day="2026-11-22"))
    rows = desk.rows(
        "SELECT dt, count(*) AS n, max(title) AS title FROM pages GROUP BY dt ORDER BY dt"
    )
    assert rows == [
        {"dt": DAY, "n": 2, "title": "new"},
        {"dt": "2026-11-22", "n": 1, "title": None},
    ]
    assert desk.rows("SELECT count(*) AS n FROM changes") == [{"n": 2}]
    assert desk.rows("SELECT count(*) AS n FROM pages", "--day 2026-11-22") == [{"n": 1}]


def test_column_of_later_export_is_null_in_earlier_ones(desk: Desk) -> None:
    changed = item_table(
        "books.example",
        "books",
        (Column(name="title"), Column(name="rating", type=Type.INTEGER), Column(name="price")),
    )
    rows = [{"title": "Three", "rating": 5, "price": "cheap", "fetched_at": 0, "place": 0}]
    put(desk.folder / "out" / "later", made([(changed, rows)], day="2026-11-22", crawl="other"))
    sql = "SELECT title, stock, rating, price FROM items_books_example_books ORDER BY title"
    assert desk.rows(sql) == [
        {"title": "One", "stock": 3, "rating": None, "price": "12.3000"},
        {"title": "Three", "stock": None, "rating": 5, "price": "cheap"},
        {"title": "Two", "stock": 3, "rating": None, "price": None},
    ]


def test_folder_named_like_partition_adds_no_column(desk: Desk) -> None:
    put(desk.folder / "dt=yesterday" / "title=x", made(USUAL))
    rows = desk.rows("SELECT DISTINCT dt, crawl FROM pages", "--from dt=yesterday/title=x")
    assert rows == [{"dt": DAY, "crawl": CRAWL}]


def test_quote_in_path_is_escaped(desk: Desk) -> None:
    put(desk.folder / "it's", made(USUAL))
    assert desk.run("""query "SELECT 1 FROM pages" --from "it's" """) == 0


# --- saved queries ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(saved()))
def test_saved_queries_run_on_exports_of_any_day(desk: Desk, name: str) -> None:
    [(today,)] = duckdb.execute("SELECT CAST(current_date AS VARCHAR)").fetchall()
    put(desk.folder / "today", made(USUAL, day=today))
    assert desk.run_json(f"query --saved {name} --from today --format json")
    put(desk.folder / "nothing", made([]))
    assert desk.run_json(f"query --saved {name} --from nothing --format json") == []


def test_saved_query_has_description_in_first_line() -> None:
    assert saved().keys() == {"outcomes", "hosts", "changes", "requests"}
    for query in saved().values():
        assert query.sql.startswith(f"-- {query.title}\nSELECT")
        assert not query.sql.endswith(";")


# --- a stack's exports --------------------------------------------------------------------------


def test_query_of_stack_fetches_files_of_named_tables(desk: Desk) -> None:
    put_into(desk.world, made(USUAL, of_day=True))
    desk.world.files = {
        key: body for key, body in desk.world.files.items() if "/changes/parquet/" not in key
    }
    assert desk.rows("SELECT count(*) AS n FROM pages", "--target local") == [{"n": 3}]
    assert "fetching 1 file" in desk.noted
    assert "is not the file" in desk.refused("SELECT * FROM changes", "--target local")
    assert "items_books_example_books" in desk.output("query --list --target local")


def test_stack_without_exports_names_command(desk: Desk) -> None:
    refused = desk.refused("SELECT 1", "--target local")
    assert "no exports yet" in refused
    assert "`orbweaver query` without --target queries them" in refused
    put_into(desk.world, made(USUAL, of_day=True))
    assert "of 2026-11-20 yet" in desk.refused("SELECT 1", "--target local --day 2026-11-20")
    assert desk.rows("SELECT 1 AS n FROM pages LIMIT 1", f"--target local --day {DAY}")


def test_changed_file_of_stack_is_an_error(desk: Desk) -> None:
    put_into(desk.world, made(USUAL))
    for key in desk.world.files:
        if "/pages/parquet/" in key:
            desk.world.files[key] = desk.world.files[key][::-1]
    assert "being exported anew" in desk.refused("SELECT 1 FROM pages", "--target local")


def test_query_of_too_many_bytes_fetches_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orbweaver.cli.query.tables.FETCH_BYTES_MAX", 10)
    put_into(desk.world, made(USUAL))
    assert "use Athena" in desk.refused("SELECT 1 FROM pages", "--target local")


def test_json_is_ascii(desk: Desk) -> None:
    assert json.loads(desk.output("query \"SELECT 'ü\x1b' AS t\" --format json")) == {"t": "ü\x1b"}
    assert desk.said.isascii()


def test_memory_is_bounded_by_spilling_to_folder(desk: Desk) -> None:
    sql = "SELECT current_setting('memory_limit') AS m, current_setting('temp_directory') AS t"
    [found] = desk.rows(sql)
    assert found["m"] == "953.6 MiB"
    assert found["t"].endswith("/spill")


# --- interrupted --------------------------------------------------------------------------------


def test_interrupt_before_query_ends_without_traceback(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    interruptible, interrupted = duck._interruptible, threading.Event()

    def too_soon(pool: Any, connection: Any, act: Callable[[], Any]) -> Any:
        def late() -> Any:
            os.kill(os.getpid(), signal.SIGINT)
            interrupted.wait()
            return act()

        def interrupt() -> None:
            connection.interrupt()
            interrupted.set()

        return interruptible(pool, SimpleNamespace(interrupt=interrupt), late)

    monkeypatch.setattr(duck, "_interruptible", too_soon)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        endless = "SELECT count(*) FROM range(1000000000000) AS r(n) WHERE n % 7 = 3"
        assert desk.run(f'query "{endless}"') == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert (desk.said, desk.noted) == ("", "interrupted\n")


@pytest.mark.parametrize("breaks", [False, True])
def test_interrupt_during_handover_cancels_work(breaks: bool) -> None:
    interrupted = threading.Event()
    handed_over: list[Any] = []

    def act() -> None:
        interrupted.wait()

    with ThreadPoolExecutor(1) as pool:

        def submit(work: Callable[[], Any]) -> Any:
            handed_over.append(pool.submit(work))
            if len(handed_over) > 1:
                return handed_over[-1]
            try:
                raise KeyboardInterrupt
            finally:
                if breaks:
                    raise RuntimeError("release unlocked lock")

        handing = SimpleNamespace(submit=submit)
        connection = SimpleNamespace(interrupt=interrupted.set)
        with pytest.raises(KeyboardInterrupt):
            duck._interruptible(handing, connection, act)  # type: ignore[arg-type]
        assert handed_over[0].done()
        assert interrupted.is_set()


# --- refused statements and errors ----------------------------------------------------------------


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
