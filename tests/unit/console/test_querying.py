"""SQL typed in a browser: its answers and its limits."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.api.problems import Refused
from orbweaver.cli.query import child, confined
from orbweaver.cli.query.child import CELL_CHARS_MAX, ROWS_MAX
from orbweaver.cli.query.confined import ExportTables
from tests.memory import World
from tests.unit.cli.exports import BOOKS, USUAL, book, made, put, put_into
from tests.unit.console.stage import opened

if TYPE_CHECKING:
    from tests.unit.console.stage import Stage

# ruff: noqa: S608 - queries are built from parts here, because users may type any SQL

# The memory limit of a child for one query, as docs/console.md states.
CHILD_KB_MAX = 500_000


def children_kb() -> int:
    """Return the peak memory of the largest ended child in KB, from any test."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


async def asked(stage: Stage, sql: str) -> Any:
    return await stage.post("/console/query", {"sql": sql})


async def refused(stage: Stage, sql: str) -> str:
    reply = await stage.ask("POST", "/console/query", json={"sql": sql})
    assert reply.status == 400
    return str((await reply.json())["detail"])


async def test_query_of_exports_returns_typed_rows(tmp_path: Path) -> None:
    put(tmp_path / "out", made(USUAL))
    async with opened(tmp_path) as stage:
        told = await stage.get("/console/tables")
        assert (told["why"], told["fetched"]) == (None, False)
        pages = next(one for one in told["tables"] if one["name"] == "pages")
        assert pages["rows"] == 3
        assert {"name": "url", "type": "string"} in pages["columns"]
        assert "outcomes" in {one["name"] for one in told["saved"]}
        sql = "SELECT title, price, tags, '' AS empty FROM items_books_example_books ORDER BY title"
        found = await asked(stage, sql)
        assert found["columns"] == [
            {"name": "title", "number": False},
            {"name": "price", "number": True},
            {"name": "tags", "number": False},
            {"name": "empty", "number": False},
        ]
        assert found["rows"] == [
            ["One", "12.3000", '["a", "b"]', ""],
            ["Two", None, '["a", "b"]', ""],
        ]
        assert (found["more"], found["cut"]) == (False, 0)


async def test_query_without_exports_names_export_command(tmp_path: Path) -> None:
    async with opened(tmp_path) as stage:
        told = await stage.get("/console/tables")
        assert told["tables"] == []
        assert "`orbweaver export`" in told["why"]
        assert "there are no exports in out" in await refused(stage, "SELECT 1")


async def test_truncated_rows_and_cells_are_reported(tmp_path: Path) -> None:
    put(tmp_path / "out", made(USUAL))
    async with opened(tmp_path) as stage:
        many = await asked(stage, f"SELECT range AS n FROM range({ROWS_MAX + 1})")
        assert (len(many["rows"]), many["more"]) == (ROWS_MAX, True)
        all_of_them = await asked(stage, f"SELECT range AS n FROM range({ROWS_MAX})")
        assert (len(all_of_them["rows"]), all_of_them["more"]) == (ROWS_MAX, False)
        long = await asked(stage, f"SELECT repeat('x', {CELL_CHARS_MAX + 1}) AS t")
        assert long["rows"][0][0].endswith(f"x… ({CELL_CHARS_MAX + 1:,} characters)")
        assert long["cut"] == 1
        wide = await asked(
            stage, "SELECT repeat('x', 2000) AS t, * FROM range(900) AS a, range(9) AS b"
        )
        assert wide["more"]
        large = await asked(stage, "SELECT repeat('x', 10000000) AS t FROM range(5)")
        assert len(json.dumps(large)) < 5 * (CELL_CHARS_MAX + 100)


async def test_download_of_answer_has_all_rows_as_export(tmp_path: Path) -> None:
    put(tmp_path / "out", made([(BOOKS, [book("=1+1", "-2.50")])]))
    async with opened(tmp_path) as stage:
        sql = (
            "SELECT title, price, NULL AS nothing FROM items_books_example_books, range("
            f"{ROWS_MAX + 5})"
        )
        ticket = (await stage.post("/console/query/file", {"sql": sql}))["ticket"]
        reply = await stage.ask("GET", f"/download/{ticket}", {})
        assert reply.status == 200
        assert 'filename="query.csv"' in reply.headers["Content-Disposition"]
        head, *rows = csv.reader(io.StringIO((await reply.read()).decode("utf-8-sig")))
        assert head == ["title", "price", "nothing"]
        assert rows == [["'=1+1", "-2.5000", ""]] * (ROWS_MAX + 5)
        wrong = (await stage.post("/console/query/file", {"sql": "SELEC"}))["ticket"]
        reply = await stage.ask("GET", f"/download/{wrong}", {})
        assert reply.status == 400
        assert "syntax error" in (await reply.json())["detail"]


async def test_download_failing_midway_closes_connection(tmp_path: Path) -> None:
    put(tmp_path / "out", made(USUAL))
    async with opened(tmp_path) as stage:
        sql = "SELECT CASE WHEN range < 900000 THEN 1 ELSE CAST('x' AS INT) END FROM range(1000000)"
        ticket = (await stage.post("/console/query/file", {"sql": sql}))["ticket"]
        reply = await stage.ask("GET", f"/download/{ticket}", {})
        if reply.status == 200:
            with pytest.raises(Exception, match=r".") as found:
                await reply.read()
            assert type(found.value).__name__ in {"ClientPayloadError", "ClientConnectionError"}
        else:  # this error is known before the first row
            assert reply.status == 400


# --- hostile text -------------------------------------------------------------------------------


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if not path.name.startswith("store.db"))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT * FROM read_text('{secret}')", "a query can read tables"),
        ("SELECT * FROM read_blob('{secret}')", "a query can read tables"),
        ("SELECT * FROM read_csv('{secret}')", "a query can read tables"),
        ("SELECT * FROM '{secret}'", "there is no table"),
        ("SELECT * FROM glob('/*')", "a query can read tables"),
        ("SELECT * FROM read_text('/proc/self/environ')", "a query can read tables"),
        ("SELECT * FROM read_csv('http://127.0.0.1:9/a.csv')", "a query can read tables"),
        ("SELECT * FROM read_parquet('s3://bucket/a.parquet')", "a query can read tables"),
        ("SELECT * FROM sqlite_scan('{store}', 'pages')", "sqlite"),
        ("COPY (SELECT 1) TO 'x.csv'", "this is COPY"),
        ("ATTACH '{store}'", "this is ATTACH"),
        ("INSTALL httpfs", "this is LOAD"),
        ("SET enable_external_access = true", "this is SET"),
        ("SELECT 1; COPY (SELECT 1) TO 'x.csv'", "this is SELECT, COPY"),
        ("SELECT * FROM enable_logging(storage = 'file', storage_path = 'x')", "locked"),
        ("SELECT * FROM asked", "there is no table 'asked'"),
        ("SELECT getenv('HOME')", "getenv"),
        ("SELECT length(string_agg(repeat('x', 1000000), '')) FROM range(3000)", "emory"),
        ("SELECT repeat('x', 4000000000)", "limit of 512 MB"),
        ("SELECT repeat('x', 500000000)", "limit of 512 MB"),
        ("SELECT range(20000000) FROM range(5)", "limit of 512 MB"),
    ],
)
async def test_hostile_sql_reaches_no_file_network_or_setting(
    sql: str, why: str, tmp_path: Path
) -> None:
    before_kb = children_kb()
    put(tmp_path / "out", made(USUAL))
    secret = tmp_path / "secret.txt"
    secret.write_text("a secret")
    async with opened(tmp_path) as stage:
        before = files_in(tmp_path)
        said = await refused(stage, sql.format(secret=secret, store=tmp_path / "store.db"))
        assert why.casefold() in said.casefold()
        assert "a secret" not in said
        assert files_in(tmp_path) == before
    assert children_kb() <= max(before_kb, CHILD_KB_MAX)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT {'(' * 50_000}1{')' * 50_000}",
        f"SELECT {'-' * 1_000}1",
        f"SELECT {'NOT ' * 24_000}true",
        "SELECT " + " + ".join(["1"] * 30_000),
        f"{'WITH a AS (' * 5_000}SELECT 1",
        "SELECT '\x00'",
        "SELECT '\ud800'",
    ],
    ids=["brackets", "comment", "not", "sum", "with", "nul", "surrogate"],
)
async def test_sql_crashing_parser_ends_one_child_at_most(sql: str, tmp_path: Path) -> None:
    put(tmp_path / "out", made(USUAL))
    async with opened(tmp_path) as stage:
        reply = await stage.ask("POST", "/console/query", json={"sql": sql})
        assert reply.status in (200, 400), await reply.text()
        assert (await asked(stage, "SELECT 1 AS one"))["rows"] == [["1"]]


async def test_query_with_output_of_a_library_answers_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "out", made(USUAL))
    prints = (
        "from orbweaver.cli.query import child; answer = child._answer;"
        " child._answer = lambda *words: (print('a bar', flush=True), answer(*words)); main()"
    )
    monkeypatch.setattr(confined, "_STARTS", confined._STARTS.replace("main()", prints))
    tables = ExportTables(source=tmp_path / "out", named=Path("out"), folder=tmp_path)
    found = await tables.ask("SELECT 1 AS one")
    assert found["rows"] == [["1"]]
    assert 0 < found["peak_bytes"] < CHILD_KB_MAX * 1024
    whole = b"".join([piece async for piece in tables.csv("SELECT 1 AS one")])
    assert whole.decode("utf-8-sig").splitlines() == ["one", "1"]


@pytest.mark.long
async def test_query_of_several_seconds_is_answered(tmp_path: Path) -> None:
    put(tmp_path / "out", made(USUAL))
    tables = ExportTables(source=tmp_path / "out", named=Path("out"), folder=tmp_path)
    sql = "SELECT count(*) AS n FROM range({}) t(i) WHERE sin(i) > 2"
    rows = 20_000_000
    while (found := await tables.ask(sql.format(rows)))["took_ms"] < 3_000:
        rows *= 3
    assert found["rows"] == [["0"]]
    whole = b"".join([piece async for piece in tables.csv(sql.format(rows))])
    assert whole.decode("utf-8-sig").splitlines() == ["n", "0"]


async def test_query_over_time_limit_ends_with_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "WALL_S", 0.5)
    put(tmp_path / "out", made(USUAL))
    async with opened(tmp_path) as stage:
        slow = "SELECT count(*) FROM range(100000000000) a, range(100000) b WHERE a.range % 7 = 1"
        assert "longer than 0.5 s" in await refused(stage, slow)
        monkeypatch.setattr(child, "WALL_S", 30.0)
        assert (await asked(stage, "SELECT 1 AS one"))["rows"] == [["1"]]
        assert children() == []


async def test_query_of_closed_connection_ends_its_process(tmp_path: Path) -> None:
    put(tmp_path / "out", made(USUAL))
    tables = ExportTables(source=tmp_path / "out", named=Path("out"), folder=tmp_path)
    pieces = tables.csv("SELECT repeat('x', 10000) FROM range(1000000)")
    assert await anext(pieces)
    await pieces.aclose()  # type: ignore[attr-defined]
    assert children() == []
    assert (await tables.ask("SELECT 1 AS one"))["rows"] == [["1"]]


def children() -> list[str]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                status = (folder / "stat").read_text().rpartition(")")[2].split()
                command = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if int(status[1]) == os.getpid() and b"cli.query.child" in command:
                found.append(folder.name)
    return found


async def test_query_process_has_no_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment contains credentials."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a secret")
    put(tmp_path / "out", made(USUAL))
    tables = ExportTables(source=tmp_path / "out", named=Path("out"), folder=tmp_path)
    pieces = tables.csv("SELECT repeat('x', 10000) FROM range(1000000)")
    assert await anext(pieces)
    [pid] = children()
    assert b"secret" not in await asyncio.to_thread(Path(f"/proc/{pid}/environ").read_bytes)
    await pieces.aclose()  # type: ignore[attr-defined]


# --- exports of a stack -------------------------------------------------------------------------


async def test_query_of_stack_fetches_needed_files_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    put_into(world, made(USUAL))
    fetched: list[str] = []

    class Counted:
        """Files of a stack that record reads."""

        async def list(self, prefix: str) -> list[str]:
            return [key for key in world.files if key.startswith(prefix)]

        async def get(self, key: str) -> bytes | None:
            if key.endswith(".parquet"):
                fetched.append(key)
            return world.files.get(key)

    files: Any = Counted()
    tables = ExportTables(source=tmp_path, named=tmp_path, folder=tmp_path, files=files)
    for _ in range(2):
        assert (await tables.ask("SELECT count(*) AS n FROM pages"))["rows"] == [["3"]]
    assert len(fetched) == 1
    assert "/pages/" in fetched[0]
    assert (await tables.tables())["fetched"]
    monkeypatch.setattr(confined, "FETCH_BYTES_MAX", 1)
    with pytest.raises(Refused, match="would have to be fetched"):
        await tables.ask("SELECT * FROM changes")


async def test_queries_run_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "out", made(USUAL))
    tables = ExportTables(source=tmp_path / "out", named=Path("out"), folder=tmp_path)
    at_once: list[int] = []
    start = asyncio.create_subprocess_exec

    async def counted(*words: Any, **given: Any) -> Any:
        at_once.append(len(children()))
        return await start(*words, **given)

    monkeypatch.setattr(asyncio, "create_subprocess_exec", counted)
    found = await asyncio.gather(*(tables.ask(f"SELECT {number} AS n") for number in range(3)))
    assert [one["rows"] for one in found] == [[["0"]], [["1"]], [["2"]]]
    assert at_once == [0, 0, 0]
