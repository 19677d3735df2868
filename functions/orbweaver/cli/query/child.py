"""The process that runs one task of the console, such as a query from a browser.

- It reads the task from the standard input, writes the result to the standard output, and ends. An
  error goes to the standard error, with exit status `REFUSED`. Output of libraries is discarded.
- It has no environment variables, so no credentials. It works in an empty folder.
- For a query, the kernel limits memory, address space, file size and wall clock. DuckDB limits its
  own memory and temporary files, and is restricted as for every query (cli/query/duckdb.py).
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pickle
import re
import resource
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from orbweaver.cli import text
from orbweaver.cli.exit_codes import UsageError
from orbweaver.cli.query.duckdb import (
    Answer,
    QueryBounds,
    distinct,
    format_cell,
    is_number,
    referenced_tables,
    referred,
    run_query,
)
from orbweaver.cli.query.tables import Sheet
from orbweaver.exporting.formats.csv import BYTE_ORDER_MARK, END, cell_of
from orbweaver.model.value import value_class

REFUSED, NICE = 2, 10
# The process uses 512 MB at most: DATA_BYTES, and about 50 MB of shared code. DuckDB gets less than
# that, because it does not count fragmentation, single long values, and results that it passes to
# Python.
BOUNDS = QueryBounds(memory="192MB", spill="2GB", threads=2)
DATA_BYTES = 448 * 2**20
ADDRESS_BYTES = 3 * 2**30
TOO_LARGE = "the query needs more than its limit of 512 MB of memory: select less at once"
FILE_BYTES = 2 * 2**30
WALL_S, CSV_WALL_S = 30.0, 300.0
ROWS_MAX, CELL_CHARS_MAX, ANSWER_CHARS_MAX = 1_000, 2_000, 4_000_000
ROWS_AT_ONCE = 500
STDOUT = 1
PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)
# This also matches errors on blocks that could not be read back because memory was full.
OUT_OF_MEMORY = re.compile(r"out of memory|not enough memory|bad allocation", re.IGNORECASE)


class ChildTask(Protocol):
    """Work for a child process, which receives it pickled."""

    @property
    def noun(self) -> str:
        """Name of the work in messages, such as `query`."""

    @property
    def advice(self) -> str:
        """Advice to a user whose task exceeds a limit."""

    @property
    def wall_s(self) -> float:
        """Time limit in seconds."""

    def run(self, out: BinaryIO) -> None:
        """Write the result. Raises UsageError."""


@value_class
class ChildQuery:
    """One query, the tables, the working folder, and the form of the result."""

    sql: str
    sheets: Mapping[str, Sheet]
    folder: Path
    # "names" of the referenced tables, "rows" as JSON, or "csv".
    form: str
    noun: str = "query"
    advice: str = "select less"

    @property
    def wall_s(self) -> float:
        return CSV_WALL_S if self.form == "csv" else WALL_S

    def run(self, out: BinaryIO) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_BYTES, ADDRESS_BYTES))
        resource.setrlimit(resource.RLIMIT_DATA, (DATA_BYTES, DATA_BYTES))
        try:
            _answer(self, out)
        except MemoryError as error:
            raise UsageError(TOO_LARGE) from error
        except UsageError as error:
            if OUT_OF_MEMORY.search(str(error)):
                raise UsageError(TOO_LARGE) from error
            raise


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    os.nice(NICE)
    task: ChildTask = pickle.loads(sys.stdin.buffer.read())  # noqa: S301 - written by the parent
    # The timer ends the process if the parent process is gone.
    signal.setitimer(signal.ITIMER_REAL, task.wall_s * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    code = 0
    try:
        with _answer_alone() as out:
            task.run(out)
    except UsageError as error:
        sys.stderr.write(str(error))
        code = REFUSED
    sys.stderr.flush()
    # At a normal exit DuckDB would report unfreed memory on the standard error.
    os._exit(code)


def _answer_alone() -> BinaryIO:
    """Return the standard output for the result only. Output of libraries is discarded."""
    out = os.dup(STDOUT)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, STDOUT)
    os.close(nowhere)
    return os.fdopen(out, "wb")


def _answer(asked: ChildQuery, out: BinaryIO) -> None:
    if asked.form == "names":
        out.write(json.dumps(sorted(referenced_tables(asked.sql, asked.sheets))).encode())
        return
    began_s = time.monotonic()
    taken = referred(asked.sql, asked.sheets)
    with run_query(asked.sql, taken, asked.folder, BOUNDS) as answer:
        if asked.form == "csv":
            _as_csv(answer, out)
            return
        found = _as_rows(answer)
        found["took_ms"] = round((time.monotonic() - began_s) * 1000)
        found["peak_bytes"] = _peak_bytes()
        out.write(json.dumps(found).encode())


def _peak_bytes() -> int | None:
    """Return the peak memory of this process, or None on systems without /proc."""
    # `ru_maxrss` is not used, because it includes the peak of the parent process.
    with contextlib.suppress(OSError, LookupError):
        held = PEAK.findall(Path("/proc/self/status").read_text())
        return int(held[0]) * 1024
    return None


def _as_rows(answer: Answer) -> dict[str, Any]:
    """Return the first rows of a result as JSON, with each cell as the text to show."""
    rows: list[list[str | None]] = []
    numeric = [True] * len(answer.columns)
    room, more, long = ANSWER_CHARS_MAX, False, 0
    for row in answer.rows:
        cells = [None if value is None else format_cell(value) for value in row]
        numeric = [was and is_number(value) for was, value in zip(numeric, row, strict=True)]
        long += sum(cell is not None and len(cell) > CELL_CHARS_MAX for cell in cells)
        cells = [None if cell is None else shortened(cell) for cell in cells]
        room -= sum(len(cell or "") for cell in cells)
        if len(rows) == ROWS_MAX or room < 0:
            more = True
            break
        rows.append(cells)
    columns = [
        {"name": shortened(name), "number": number}
        for name, number in zip(distinct(answer.columns), numeric, strict=True)
    ]
    return {"columns": columns, "rows": rows, "more": more, "cut": long}


def shortened(cell: str) -> str:
    if len(cell) <= CELL_CHARS_MAX:
        return cell
    return f"{cell[:CELL_CHARS_MAX]}… ({text.plural(len(cell), 'character')})"


def _as_csv(answer: Answer, out: BinaryIO) -> None:
    """Write all rows as CSV. As in exports, cells cannot be formulas for spreadsheets."""
    out.write(BYTE_ORDER_MARK)
    out.write(_line(answer.columns))
    rows = iter(answer.rows)
    while some := list(itertools.islice(rows, ROWS_AT_ONCE)):
        out.write(b"".join(map(_line, some)))


def _line(row: tuple[Any, ...]) -> bytes:
    cells = (
        "" if value is None else str(value) if is_number(value) else cell_of(format_cell(value))
        for value in row
    )
    return (",".join(cells) + END).encode("utf-8", "replace")
