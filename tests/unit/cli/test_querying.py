"""`query`: SQL over exports, and nothing but that."""

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
from orbweaver.model.columns import PAGES, Column, Type, item_table
from tests.unit.cli.exports import BOOKS, CRAWL, DAY, USUAL, book, made, page, put, put_into
from tests.unit.cli.fakes import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.cli.conftest import Desk

# --- answers ------------------------------------------------------------------------------------


def test_pages_are_asked_in_the_usual_folder(desk: Desk) -> None:
    """Where `crawl` and `export` leave them."""
    rows = desk.rows("SELECT outcome, count(*) AS pages FROM pages GROUP BY outcome ORDER BY 1")
    assert rows == [{"outcome": "failed", "pages": 1}, {"outcome": "fetched", "pages": 2}]


def test_every_type_comes_through(desk: Desk) -> None:
    """Decimals by their digits, moments in UTC, lists, nothing; and the day as a text."""
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


def test_csv_is_exact(desk: Desk) -> None:
    """As a reader of CSV takes it back, with whatever a page may have said."""
    title = 'a, "b"\n\x1b[31mc'
    put(desk.folder / "other", made([(BOOKS, [book(title, "1")])]))
    sql = (
        "SELECT title, price, tags, NULL AS none, true AS yes, 1e300 AS big, DATE '2026-01-02' AS d"
    )
    assert desk.run(f'query "{sql} FROM items_books_example_books" --from other --format csv') == 0
    head, row = csv.reader(io.StringIO(desk.said))
    assert head == ["title", "price", "tags", "none", "yes", "big", "d"]
    assert row == [title, "1.0000", '["a", "b"]', "", "true", "1e+300", "2026-01-02"]


@pytest.mark.parametrize("form", ["csv", "json"])
def test_exact_forms_cannot_steer_a_terminal(desk: Desk, form: str) -> None:
    """On a terminal control characters are written out; quotes and lines stay as CSV has them."""
    desk.out = Terminal()
    assert desk.run(f"query \"SELECT 'a,\x1b[2J\x7f\nb' AS t\" --format {form}") == 0
    assert (
        desk.said
        == {
            "csv": 't\n"a,\\x1b[2J\\x7f\nb"\n',
            "json": '{"t": "a,\\u001b[2J\\u007f\\nb"}\n',
        }[form]
    )


def test_a_table_cannot_steer_a_terminal(desk: Desk) -> None:
    """What came from the web is cleaned and cut; numbers stand right."""
    put(desk.folder / "other", made([(PAGES, [page("a", title="x\x1b[31m" * 99, bytes=7)])]))
    assert desk.run("query 'SELECT title, bytes FROM pages' --from other") == 0
    head, row = desk.said.splitlines()
    assert head.split() == ["title", "bytes"]
    assert "\x1b" not in row
    assert row.split() == ["x" * 79 + "…", "7"]
    assert row.endswith("      7")
    assert head.startswith("title   ")
    assert desk.noted == "1 row\n"


def test_a_table_is_cut_and_says_so(desk: Desk) -> None:
    """After a hundred rows, or as many as are wanted."""
    assert desk.run("query 'SELECT * FROM range(101) t(n)'") == 0
    assert len(desk.said.splitlines()) == 101
    assert desk.noted == "the first 100 rows; --limit shows more\n"
    assert desk.run("query 'SELECT * FROM range(101) t(n)' --limit 200") == 0
    assert desk.noted == "101 rows\n"
    assert len(desk.rows("SELECT * FROM range(2500) t(n)")) == 2500
    assert len(desk.rows("SELECT * FROM range(2500) t(n)", "--limit 2")) == 2


def test_values_are_spelled_one_way(desk: Desk) -> None:
    """Also those that JSON has no word for, and columns of one name."""
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


def test_sql_may_come_from_the_input(desk: Desk) -> None:
    """Which is how a query that begins with a comment gets there."""
    around = desk.surroundings()
    object.__setattr__(
        around, "stdin", io.StringIO("-- how many\nSELECT count(*) AS n FROM pages;")
    )
    assert run(["query", "-", "--format", "json"], around) == 0
    assert desk.objects() == [{"n": 3}]


# --- tables -------------------------------------------------------------------------------------


def test_tables_of_every_deployment_are_there_without_rows(desk: Desk) -> None:
    """With their columns, and the day."""
    for table in TABLES:
        if table.name in ("texts", "invalid_items"):
            assert desk.rows(f"TABLE {table.name}") == []
            names = [row["column_name"] for row in desk.rows(f"DESCRIBE {table.name}")]
            assert names == [*(column.name for column in table.columns), "dt"]


def test_all_tables_are_listed(desk: Desk) -> None:
    """With their rows, and the queries that are there already."""
    assert desk.run("query --list") == 0
    lines = desk.said.splitlines()
    assert any(line.split()[:2] == ["pages", "3"] for line in lines)
    assert any(line.split()[:2] == ["items_books_example_books", "2"] for line in lines)
    assert all(name in desk.said for name in saved())
    assert desk.run("query --list --format json") == 0
    [listed] = [row for row in desk.objects() if row.get("table") == "items_books_example_books"]
    assert (listed["rows"], listed["columns"]["price"]) == (2, "decimal")
    queries = {row["query"]: row["sql"] for row in desk.objects() if "query" in row}
    assert queries == {name: query.sql for name, query in saved().items()}
    assert {row["name"] for row in desk.rows("SHOW TABLES")} >= {"pages", "changes"}


def test_a_folder_of_exports_is_asked_as_one(desk: Desk) -> None:
    """And a crawl's day once, from the export that was made last."""
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


def test_columns_that_came_later_are_empty_before(desk: Desk) -> None:
    """A rule may change from run to run, types and all."""
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


def test_folders_that_look_like_columns_mean_nothing(desk: Desk) -> None:
    """Not even where a person has called one so."""
    put(desk.folder / "dt=yesterday" / "title=x", made(USUAL))
    rows = desk.rows("SELECT DISTINCT dt, crawl FROM pages", "--from dt=yesterday/title=x")
    assert rows == [{"dt": DAY, "crawl": CRAWL}]


def test_a_quote_in_a_path_is_a_quote(desk: Desk) -> None:
    """Paths are somebody's, too."""
    put(desk.folder / "it's", made(USUAL))
    assert desk.run("""query "SELECT 1 FROM pages" --from "it's" """) == 0


# --- saved queries ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(saved()))
def test_saved_queries_run(desk: Desk, name: str) -> None:
    """On what was exported today, whichever day that is, and on nothing."""
    [(today,)] = duckdb.execute("SELECT CAST(current_date AS VARCHAR)").fetchall()
    put(desk.folder / "today", made(USUAL, day=today))
    assert desk.run(f"query --saved {name} --from today --format json") == 0
    assert desk.objects()
    put(desk.folder / "nothing", made([]))
    assert desk.run(f"query --saved {name} --from nothing --format json") == 0
    assert desk.objects() == []


def test_saved_queries_say_what_they_ask() -> None:
    """Each in its first line, which is a comment for both engines."""
    assert saved().keys() == {"outcomes", "hosts", "changes", "requests"}
    for query in saved().values():
        assert query.sql.startswith(f"-- {query.title}\nSELECT")
        assert not query.sql.endswith(";")


# --- a stack's exports --------------------------------------------------------------------------


def test_a_stack_is_asked_by_fetching_what_is_asked_for(desk: Desk) -> None:
    """The files of the tables in question, and no others."""
    put_into(desk.world, made(USUAL, of_day=True))
    desk.world.files = {
        key: body for key, body in desk.world.files.items() if "/changes/parquet/" not in key
    }
    assert desk.rows("SELECT count(*) AS n FROM pages", "--target local") == [{"n": 3}]
    assert "fetching 1 file" in desk.noted
    assert "is not the file" in desk.refused("SELECT * FROM changes", "--target local")
    assert desk.run("query --list --target local") == 0
    assert "items_books_example_books" in desk.said


def test_a_stack_without_exports_says_so(desk: Desk) -> None:
    """Of the day in question, if there is one; the way there is does not end here again."""
    refused = desk.refused("SELECT 1", "--target local")
    assert "no exports yet" in refused
    assert "`orbweaver query` without --target queries them" in refused
    put_into(desk.world, made(USUAL, of_day=True))
    assert "of 2026-11-20 yet" in desk.refused("SELECT 1", "--target local --day 2026-11-20")
    assert desk.rows("SELECT 1 AS n FROM pages LIMIT 1", f"--target local --day {DAY}")


def test_a_changed_file_of_a_stack_is_an_error(desk: Desk) -> None:
    """It is checked by its SHA-256."""
    put_into(desk.world, made(USUAL))
    for key in desk.world.files:
        if "/pages/parquet/" in key:
            desk.world.files[key] = desk.world.files[key][::-1]
    assert "being exported anew" in desk.refused("SELECT 1 FROM pages", "--target local")


def test_too_much_is_not_fetched(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """For that there is Athena."""
    monkeypatch.setattr("orbweaver.cli.query.tables.FETCH_BYTES_MAX", 10)
    put_into(desk.world, made(USUAL))
    assert "use Athena" in desk.refused("SELECT 1 FROM pages", "--target local")


def test_json_is_ascii(desk: Desk) -> None:
    """So that no character of a page reaches a terminal raw."""
    assert desk.run("query \"SELECT 'ü\x1b' AS t\" --format json") == 0
    assert json.loads(desk.said) == {"t": "ü\x1b"}
    assert desk.said.isascii()


def test_memory_is_bounded(desk: Desk) -> None:
    """What does not fit goes to a folder, which goes with the query."""
    sql = "SELECT current_setting('memory_limit') AS m, current_setting('temp_directory') AS t"
    [found] = desk.rows(sql)
    assert found["m"] == "953.6 MiB"
    assert found["t"].endswith("/spill")


# --- interrupted --------------------------------------------------------------------------------


def test_an_interrupted_query_ends_quietly(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C before DuckDB is at work: one word, no traceback, the exit code of an interrupt."""
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
def test_an_interrupt_while_work_is_handed_over_ends_the_work(breaks: bool) -> None:
    """Ctrl-C that comes when the thread has the work and its caller has no future of it yet.

    It may break a lock of the pool's on its way.
    """
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
