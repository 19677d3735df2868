"""Run SQL over the tables of exports with DuckDB, even SQL that another person wrote.

- Only a single statement that reads is accepted: SELECT, WITH, VALUES, DESCRIBE, SHOW.
- Before the query, settings of DuckDB are locked. Then it reads only the files of the tables, and
  uses no network. It loads no extension and no Python variable, and accepts no settings.
- The memory is limited, and so is the temporary folder for data that does not fit into memory.
- Times are UTC on every machine, as in Athena.

Source: duckdb.org/docs/2.0/operations_manual/securing_duckdb/overview.
"""

from __future__ import annotations

import difflib
import itertools
import json
import math
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from orbweaver.cli import text
from orbweaver.cli.exit_codes import UsageError
from orbweaver.cli.query.tables import Piece, Sheet
from orbweaver.exporting.glue_schema import DAY, sql_name, sql_text
from orbweaver.exporting.manifest import RUN_CHARS
from orbweaver.model.columns import LINKS, PAGES, Column, Type
from orbweaver.model.outcome import Reason
from orbweaver.model.value import value_class
from orbweaver.parsing.link_rows import FOLLOWED

ROWS_AT_ONCE = 100
INTERRUPTED_EVERY_S = 0.1
CLOSED_UP = (
    # DuckDB would draw the bar on the standard output, which is for the result.
    "enable_progress_bar = false",
    "python_enable_replacements = false",
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false",
    "allow_community_extensions = false",
)
TYPES: Mapping[Type, str] = {
    Type.STRING: "VARCHAR",
    Type.INTEGER: "BIGINT",
    Type.NUMBER: "DOUBLE",
    Type.DECIMAL: "DECIMAL(18,4)",
    Type.BOOLEAN: "BOOLEAN",
    Type.DATE: "DATE",
    Type.MOMENT: "TIMESTAMP",
}
MISSING = re.compile(r"Table with name \"?([^\s\"!]+)\"? does not exist")
CLOSED = re.compile("disabled by configuration")
# A worker decides on a link before its target is requested. The outcome of the target is known
# here. DuckDB omits the join from queries that do not read `decision`.
_DECIDED = f"""
SELECT links.* REPLACE (
  CASE WHEN links.decision <> '{FOLLOWED}' OR kind IN ('redirect', 'refresh') THEN links.decision
       ELSE coalesce(target.decision, 'waiting') END AS decision)
FROM (%(links)s) AS links LEFT JOIN (
  SELECT left(crawl, -{RUN_CHARS}) AS name, url,
         CASE WHEN arg_max(reason, fetched_at) = '{Reason.ROBOTS}' THEN '{Reason.ROBOTS}'
              ELSE '{FOLLOWED}' END AS decision
  FROM (%(pages)s) GROUP BY ALL
) AS target ON target.name = left(links.crawl, -{RUN_CHARS}) AND target.url = links.target_url
"""  # noqa: S608 - our own words
T = TypeVar("T")
NUMBERS = (int, float, Decimal)


@value_class
class QueryBounds:
    """Limits of a query on this machine: memory, temporary files, threads."""

    memory: str = "1GB"
    spill: str = "20GB"
    # None: as many threads as cores.
    threads: int | None = None


USUAL = QueryBounds()


@value_class
class Answer:
    """Result of a query: names of columns, and rows, which are read on demand."""

    columns: tuple[str, ...]
    rows: Iterator[tuple[Any, ...]]


def referenced_tables(sql: str, sheets: Mapping[str, Sheet]) -> frozenset[str]:
    """Return the tables that a query references. Raises UsageError as `run_query` does."""
    import duckdb

    # External access is off, because DuckDB resolves names here, and a query can name files and
    # addresses.
    with duckdb.connect(config={"enable_external_access": "false"}) as connection:
        try:
            _check(duckdb, connection, sql)
            for setting in CLOSED_UP:
                connection.execute(f"SET {setting}")
            names = frozenset(name.casefold() for name in connection.get_table_names(sql))
        except duckdb.Error as error:
            raise UsageError(_words(str(error), sheets)) from error
    # The view of links also reads the pages.
    return names | {PAGES.name} if LINKS.name in names else names


def referred(sql: str, sheets: Mapping[str, Sheet]) -> dict[str, Sheet]:
    """Return all tables, with rows only for tables that a query references. Raises UsageError."""
    return only(referenced_tables(sql, sheets), sheets)


def only(names: Collection[str], sheets: Mapping[str, Sheet]) -> dict[str, Sheet]:
    """Return all tables, with rows only for tables in `names`."""
    return {
        name: sheet if name in names else Sheet(name=name, columns=sheet.columns)
        for name, sheet in sheets.items()
    }


class Database:
    """An open DuckDB database that reads only the tables of exports."""

    def __init__(self, connection: Any, pool: ThreadPoolExecutor) -> None:
        self._connection, self._pool = connection, pool

    def execute(self, sql: str, values: Sequence[Any] = ()) -> Answer:
        """Run statements of SQL. The next call discards the rows of this result."""
        opened = self._connection
        _interruptible(self._pool, opened, lambda: opened.execute(sql, list(values) or None))
        columns = tuple(column[0] for column in opened.description or ())
        return Answer(columns=columns, rows=_rows(self._pool, opened))


@contextmanager
def database(
    sheets: Mapping[str, Sheet], folder: Path, bounds: QueryBounds = USUAL
) -> Iterator[Database]:
    """Open a database with the tables. Raises UsageError with the error of a query.

    `folder` is for data that does not fit into memory.
    """
    import duckdb

    config: dict[str, Any] = {"memory_limit": bounds.memory, "temp_directory": str(folder)}
    if bounds.threads is not None:
        config["threads"] = bounds.threads
    with duckdb.connect(config=config) as opened, ThreadPoolExecutor(1) as pool:
        try:
            pool.submit(_close_up, opened, sheets, bounds).result()
            yield Database(opened, pool)
        except duckdb.Error as error:
            raise UsageError(_words(str(error), sheets)) from error


@contextmanager
def run_query(
    sql: str, sheets: Mapping[str, Sheet], folder: Path, bounds: QueryBounds = USUAL
) -> Iterator[Answer]:
    """Run a query over tables. Raises UsageError with the error of the query."""
    with database(sheets, folder, bounds) as opened:
        yield opened.execute(sql)


def _interruptible(pool: ThreadPoolExecutor, connection: Any, act: Callable[[], T]) -> T:
    """Run `act` in the pool's thread. In the main thread, waiting for DuckDB would block Ctrl-C."""
    handed_over = threading.Event()

    def work() -> T:
        handed_over.wait()
        return act()

    try:
        future = pool.submit(work)
        handed_over.set()
        # A signal that arrives just before a wait does not end this wait, so each wait is short.
        while not wait([future], INTERRUPTED_EVERY_S).done:
            pass
        return future.result()
    except BaseException as error:
        # An interrupt during `submit` can break the pool's locks (RuntimeError). `after` is a task
        # that the pool runs after `work`.
        handed_over.set()
        after = pool.submit(int)
        # DuckDB ignores an interrupt if the query has not started yet, so the interrupt is
        # repeated.
        while not after.done():
            connection.interrupt()
            wait([after], INTERRUPTED_EVERY_S)
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from error
        raise


def _check(duckdb: Any, connection: Any, sql: str) -> None:
    statements = connection.extract_statements(sql)
    kinds = [statement.type for statement in statements]
    if kinds != [duckdb.StatementType.SELECT]:
        found = ", ".join(str(kind).rpartition(".")[2] for kind in kinds) or "none"
        raise UsageError(f"a query is one statement that reads, like SELECT; this is {found}")


def _close_up(connection: Any, sheets: Mapping[str, Sheet], bounds: QueryBounds) -> None:
    paths = [str(path) for sheet in sheets.values() for one in sheet.pieces for path in one.paths]
    for setting in (
        *CLOSED_UP,
        "TimeZone = 'UTC'",
        f"max_temp_directory_size = '{bounds.spill}'",
        f"allowed_paths = {_texts(paths)}",
        "enable_external_access = false",
    ):
        connection.execute(f"SET {setting}")
    for sheet in sheets.values():
        view = _view(sheet)
        if sheet.name == LINKS.name and sheets[PAGES.name].pieces:
            view = _DECIDED % {"links": view, "pages": _view(sheets[PAGES.name])}
        connection.execute(f"CREATE VIEW {sql_name(sheet.name)} AS {view}")
    connection.execute("SET lock_configuration = true")


def _view(sheet: Sheet) -> str:
    """Return the SELECT statement that reads a table's files: their columns, and the day."""
    columns = tuple(sheet.columns.values())
    if not sheet.pieces:
        return f"SELECT {_cells(columns, frozenset())}, CAST(NULL AS VARCHAR) AS {DAY} WHERE false"
    return " UNION ALL ".join(_part(piece, columns) for piece in sheet.pieces)


def _part(piece: Piece, columns: tuple[Column, ...]) -> str:
    had = frozenset(column.name for column in piece.columns)
    files = _texts([str(path) for path in piece.paths])
    # Hive partitions in paths are ignored, because the files contain these columns and the day is
    # known.
    return (
        f"SELECT {_cells(columns, had)}, {sql_text(piece.day)} AS {DAY}"  # noqa: S608 - all quoted
        f" FROM read_parquet({files}, hive_partitioning = false, union_by_name = true)"
    )


def _cells(columns: tuple[Column, ...], had: frozenset[str]) -> str:
    cells = []
    for column in columns:
        name, kind = sql_name(column.name), TYPES[column.type] + "[]" * column.many
        cells.append(f"CAST({name if column.name in had else 'NULL'} AS {kind}) AS {name}")
    return ", ".join(cells)


def _texts(values: list[str]) -> str:
    return "[" + ", ".join(map(sql_text, values)) + "]" if values else "[]::VARCHAR[]"


def _rows(pool: ThreadPoolExecutor, connection: Any) -> Iterator[tuple[Any, ...]]:
    while rows := _interruptible(pool, connection, lambda: connection.fetchmany(ROWS_AT_ONCE)):
        yield from rows


def _words(said: str, known: Mapping[str, Sheet]) -> str:
    """Return DuckDB's error message for a query, in clearer words if possible."""
    missing = MISSING.search(said)
    if missing is not None:
        near = difflib.get_close_matches(missing[1].casefold(), known, n=1)
        hint = f" did you mean {near[0]}?" if near else ""
        there = ", ".join(sorted(known))
        return f"there is no table {text.clean(missing[1])!r}:{hint} There are {there}"
    if CLOSED.search(said):
        return "a query can read tables only, not files, addresses or extensions"
    lines = [text.clean(line.rstrip()) for line in said.splitlines()]
    return "\n".join(line for line in lines if line)


def is_number(value: object) -> bool:
    """Return True for a number, or for None (a missing number)."""
    return value is None or (isinstance(value, NUMBERS) and not isinstance(value, bool))


def format_cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case list() | tuple() | dict():
            return json.dumps(as_json(value), ensure_ascii=False, allow_nan=False)
        case float():
            return repr(value)
        case _:
            return str(as_json(value))


def as_json(value: Any) -> Any:
    """Convert a value for JSON: decimals as strings, times in UTC to the millisecond."""
    if value is None or isinstance(value, bool | int | str):
        return value
    for kind, spell in SPELLINGS:
        if isinstance(value, kind):
            return spell(value)
    return str(value)


def _moment(value: datetime) -> str:
    unit = "microseconds" if value.microsecond % 1000 else "milliseconds"
    return value.isoformat(timespec=unit).removesuffix("+00:00") + "Z"


# The first matching type applies. datetime comes before date, because it is a subclass of date.
SPELLINGS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (float, lambda value: value if math.isfinite(value) else str(value)),
    (datetime, _moment),
    (date, date.isoformat),
    (bytes, bytes.hex),
    (dict, lambda value: {str(name): as_json(one) for name, one in value.items()}),
    (list | tuple, lambda value: [*map(as_json, value)]),
)


def distinct(names: Sequence[str]) -> Iterable[str]:
    """Make column names unique, in the same order."""
    seen: dict[str, None] = {}
    for name in names:
        tries = itertools.chain((name,), (f"{name}_{number}" for number in itertools.count(2)))
        seen[next(tried for tried in tries if tried not in seen)] = None
    return seen
