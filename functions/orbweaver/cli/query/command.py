"""`query`: SQL over exports in a folder or of a stack, with the tables of Athena.

CSV and JSON contain all rows and exact values. On a terminal, control characters in them are
escaped. In files they are unchanged. The table format truncates cells and removes control
characters.
"""

from __future__ import annotations

import csv
import itertools
import json
from argparse import Namespace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from orbweaver.cli import text
from orbweaver.cli.command import command, option, stack_options
from orbweaver.cli.context import CliContext, shown
from orbweaver.cli.exit_codes import OK, UsageError
from orbweaver.cli.query import duckdb, tables
from orbweaver.cli.query.duckdb import Answer, as_json, distinct, format_cell, is_number
from orbweaver.cli.query.exported import (
    check_source,
    day_option,
    fetch_tables,
    find_exports,
    from_option,
)
from orbweaver.cli.query.saved import saved
from orbweaver.cli.query.tables import Sheet

FORMATS = ("table", "csv", "json")
STDIN = "-"
ROWS_SHOWN = 100
CELL_CHARS_MAX = 80


def query(arguments: Namespace, around: CliContext) -> int:
    sql = _sql(arguments, around)
    check_source(arguments)
    with TemporaryDirectory(prefix="orbweaver-") as folder:
        place = Path(folder)
        known, taken = _tables(arguments, around, sql, place / "files")
        if sql is None:
            _list(known, arguments.format, around)
            return OK
        spill = place / "spill"
        with duckdb.run_query(sql, taken, spill) as answer:
            _show(answer, arguments, around)
    return OK


def _sql(arguments: Namespace, around: CliContext) -> str | None:
    """Return the SQL of the query: typed, piped in, or saved. None: --list was given."""
    given = [arguments.sql is not None, arguments.saved is not None, arguments.list]
    if sum(given) != 1:
        raise UsageError("orbweaver query: give one of SQL, --saved NAME and --list")
    if arguments.saved is not None:
        if arguments.saved not in saved():
            names = ", ".join(saved())
            raise UsageError(f"--saved: there is no query {arguments.saved!r}: there are {names}")
        return saved()[arguments.saved].sql
    return around.stdin.read() if arguments.sql == STDIN else arguments.sql


def _tables(
    arguments: Namespace, around: CliContext, sql: str | None, folder: Path
) -> tuple[dict[str, Sheet], dict[str, Sheet]]:
    """Return all tables, and the same tables for the query.

    Only tables that the query references have rows in the second result. Their files are fetched
    into `folder` if the exports are a stack's.
    """
    known = tables.sheets_of(find_exports(arguments, around, folder))
    taken = {} if sql is None else duckdb.referred(sql, known)
    fetch_tables(arguments, around, taken)
    return known, taken


# --- what is shown ------------------------------------------------------------------------------


def _list(sheets: dict[str, Sheet], form: str, around: CliContext) -> None:
    if form == "json":
        for sheet in sheets.values():
            columns = {name: str(column.type) for name, column in sheet.columns.items()}
            body = {"table": sheet.name, "rows": sheet.rows, "columns": columns}
            around.write(json.dumps(body))
        for query in saved().values():
            around.write(json.dumps({"query": query.name, "title": query.title, "sql": query.sql}))
        return
    rows = [
        (sheet.name, f"{sheet.rows:,}", text.cut(", ".join(sheet.columns), CELL_CHARS_MAX))
        for sheet in sheets.values()
    ]
    titles = [(query.name, query.title) for query in saved().values()]
    around.write("tables, rows, columns (each table also has dt)")
    around.write(*text.table(rows, right=[1], indent=2), "", "saved queries")
    around.write(*text.table(titles, indent=2))


def _show(answer: Answer, arguments: Namespace, around: CliContext) -> None:
    match arguments.format:
        case "csv":
            # A terminal gets no control characters, even in CSV.
            out: Any = SimpleNamespace(write=lambda line: around.out.write(shown(line, around.out)))
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(answer.columns)
            for row in itertools.islice(answer.rows, arguments.limit):
                writer.writerow(map(format_cell, row))
        case "json":
            names = list(distinct(answer.columns))
            for row in itertools.islice(answer.rows, arguments.limit):
                body = dict(zip(names, map(as_json, row), strict=True))
                around.write(json.dumps(body, allow_nan=False))
        case _:
            _show_table(answer, arguments.limit or ROWS_SHOWN, around)


def _show_table(answer: Answer, limit: int, around: CliContext) -> None:
    rows = list(itertools.islice(answer.rows, limit))
    more = next(answer.rows, None) is not None
    columns = zip(*rows, strict=True) if rows else [()] * len(answer.columns)
    numbers = [place for place, values in enumerate(columns) if all(map(is_number, values))]
    heads = [text.cut(name, CELL_CHARS_MAX) for name in answer.columns]
    cells = [[text.cut(format_cell(value), CELL_CHARS_MAX) for value in row] for row in rows]
    around.write(*text.table([heads, *cells], right=numbers))
    counted = text.plural(len(rows), "row")
    around.note(f"the first {counted}; --limit shows more" if more else counted)


COMMANDS = (
    command(
        "query",
        query,
        option("sql SQL", "one SELECT; - reads it from the standard input", nargs="?"),
        option("--saved NAME", "run a built-in query"),
        option("--list", "list tables and saved queries"),
        from_option,
        day_option,
        option(
            f"--format {'|'.join(FORMATS)}", f"output format ({FORMATS[0]})", default=FORMATS[0]
        ),
        option("--limit N", f"maximum number of rows (table: {ROWS_SHOWN})"),
        parents=(stack_options,),
    ),
)
