"""The process that asks one query of a browser, within bounds that the kernel enforces.

Rules
- It reads what is asked from its input, writes the answer to its output, and ends. What is wrong
  with a query is its last word on the standard error, with status `REFUSED`.
- The answer alone reaches that output: whatever a library prints there is discarded.
- It has no environment, hence no credentials, and an empty folder to work in.
- The kernel bounds its memory, address space, file size and wall clock. DuckDB bounds what it
  counts of its own memory and what it writes to that folder, and is closed up as for every query
  (cli/query/duckdb.py).
- It gives way to its parent.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from orbweaver.cli import text
from orbweaver.cli.exit_codes import UsageError
from orbweaver.cli.query.cells import distinct, is_number, spelled
from orbweaver.cli.query.duckdb import Answer, QueryBounds, answering, named_in, referred
from orbweaver.cli.query.tables import Sheet
from orbweaver.exporting.formats.csv import BYTE_ORDER_MARK, END, cell_of

REFUSED, NICE = 2, 10
# The process uses 512 MB at most: DATA_BYTES, and some 50 MB of shared code. DuckDB gets less,
# because it does not count fragments, single long values and a result on its way to Python.
BOUNDS = QueryBounds(memory="192MB", spill="2GB", threads=2)
DATA_BYTES = 448 * 2**20
ADDRESS_BYTES = 3 * 2**30
TOO_LARGE = "it takes more than the 512 MB of memory that a query may use: ask for less at once"
FILE_BYTES = 2 * 2**30
WALL_S, CSV_WALL_S = 30.0, 300.0
ROWS_MAX, CELL_CHARS_MAX, ANSWER_CHARS_MAX = 1_000, 2_000, 4_000_000
ROWS_AT_ONCE = 500
STDOUT = 1
PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)
# Also of a block that could not be read back for want of memory.
OUT_OF_MEMORY = re.compile(r"out of memory|not enough memory|bad allocation", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildQuery:
    """One query: its tables, the folder to work in, and as what the answer is wanted."""

    sql: str
    sheets: Mapping[str, Sheet]
    folder: Path
    # "names" of the tables that it refers to, "rows" as JSON, "csv".
    form: str

    @property
    def wall_s(self) -> float:
        """How long it may take."""
        return CSV_WALL_S if self.form == "csv" else WALL_S


def main() -> None:
    """Answer what is asked on the standard input."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a person's is the parent's to deal with
    os.nice(NICE)
    asked: ChildQuery = pickle.loads(sys.stdin.buffer.read())  # noqa: S301 - the parent has written it
    # The parent ends it before that, unless it is gone.
    signal.setitimer(signal.ITIMER_REAL, asked.wall_s * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_BYTES, ADDRESS_BYTES))
    resource.setrlimit(resource.RLIMIT_DATA, (DATA_BYTES, DATA_BYTES))
    code = 0
    try:
        with _answer_alone() as out:
            _answer(asked, out)
    except UsageError as error:
        code = _refused(TOO_LARGE if OUT_OF_MEMORY.search(str(error)) else str(error))
    except MemoryError:
        code = _refused(TOO_LARGE)
    sys.stderr.flush()
    # At an orderly end DuckDB would count what it has not freed, on the standard error.
    os._exit(code)


def _answer_alone() -> BinaryIO:
    """Keep the standard output for the answer: what else is printed there goes nowhere."""
    out = os.dup(STDOUT)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, STDOUT)
    os.close(nowhere)
    return os.fdopen(out, "wb")


def _refused(why: str) -> int:
    sys.stderr.write(why)
    return REFUSED


def _answer(asked: ChildQuery, out: BinaryIO) -> None:
    if asked.form == "names":
        out.write(json.dumps(sorted(named_in(asked.sql, asked.sheets))).encode())
        return
    began_s = time.monotonic()
    taken = referred(asked.sql, asked.sheets)
    with answering(asked.sql, taken, asked.folder, BOUNDS) as answer:
        if asked.form == "csv":
            _as_csv(answer, out)
            return
        found = _as_rows(answer)
        found["took_ms"] = round((time.monotonic() - began_s) * 1000)
        found["peak_bytes"] = _peak_bytes()
        out.write(json.dumps(found).encode())


def _peak_bytes() -> int | None:
    """Return the most memory that this process has held; None where the system has no /proc."""
    # Not `ru_maxrss`, which includes the peak of the parent.
    with contextlib.suppress(OSError, LookupError):
        held = PEAK.findall(Path("/proc/self/status").read_text())
        return int(held[0]) * 1024
    return None


def _as_rows(answer: Answer) -> dict[str, Any]:
    """Take the first rows, as many as are shown, with each cell as it is shown."""
    rows: list[list[str | None]] = []
    numeric = [True] * len(answer.columns)
    room, more, long = ANSWER_CHARS_MAX, False, 0
    for row in answer.rows:
        cells = [None if value is None else spelled(value) for value in row]
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
    """Cut a text that is too long to be shown, and say how long it is."""
    if len(cell) <= CELL_CHARS_MAX:
        return cell
    return f"{cell[:CELL_CHARS_MAX]}… ({text.plural(len(cell), 'character')})"


def _as_csv(answer: Answer, out: BinaryIO) -> None:
    """Write all rows as exports do: no cell is a formula."""
    out.write(BYTE_ORDER_MARK)
    out.write(_line(answer.columns))
    rows = iter(answer.rows)
    while some := list(itertools.islice(rows, ROWS_AT_ONCE)):
        out.write(b"".join(map(_line, some)))


def _line(row: tuple[Any, ...]) -> bytes:
    cells = (
        "" if value is None else str(value) if is_number(value) else cell_of(spelled(value))
        for value in row
    )
    return (",".join(cells) + END).encode("utf-8", "replace")
