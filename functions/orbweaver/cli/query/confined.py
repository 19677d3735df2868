"""Run SQL from a browser over tables of exports, in a separate process.

- The query is untrusted. Even its parsing happens in a child process without environment, with
  limited memory, files and time (cli/query/child.py).
- One query and one CSV export run at a time, and further requests wait. So their limits also limit
  the load of the machine.
- Each file of a stack's exports is fetched once, at most 1 GB per query. The console deletes the
  files when it ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from orbweaver.api.problems import Refused
from orbweaver.cli.exit_codes import UsageError
from orbweaver.cli.query import tables
from orbweaver.cli.query.child import REFUSED, ChildQuery, ChildTask
from orbweaver.cli.query.duckdb import only
from orbweaver.cli.query.saved import saved
from orbweaver.cli.query.tables import Export, Sheet
from orbweaver.frontier.retrying import closing
from orbweaver.model.ports import Files

FETCH_BYTES_MAX = 1_000_000_000
KEPT_BYTES_MAX = 4 * FETCH_BYTES_MAX
PIECE_BYTES = 64 * 1024
WORDS_BYTES_MAX = 4_000
_STARTS = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]);"
    " from orbweaver.cli.query.child import main; main()"
)


@dataclass(slots=True, kw_only=True)
class ExportTables:
    """Tables of exports in a folder of this machine, or of a stack if `files` is given."""

    # Folder of the exports, and the name of this folder in messages.
    source: Path
    named: Path
    # Folder for fetched files, and for data of queries that does not fit into memory.
    folder: Path
    files: Files | None = None
    _turns: Mapping[str, asyncio.Lock] = field(
        default_factory=lambda: {"rows": asyncio.Lock(), "csv": asyncio.Lock()}
    )
    _fetched: dict[tuple[str, str], int] = field(default_factory=dict)

    async def tables(self) -> dict[str, Any]:
        try:
            sheets, why = await self._sheets(), None
        except UsageError as error:
            sheets, why = {}, str(error)
        return {
            "tables": [_told(sheet) for sheet in sheets.values()],
            "why": why,
            "fetched": self.files is not None,
            "saved": [
                {"name": one.name, "title": one.title, "sql": one.sql} for one in saved().values()
            ],
        }

    async def ask(self, sql: str) -> dict[str, Any]:
        """Run a query and return its first rows. Raises Refused."""
        pieces = [piece async for piece in self._answered(sql, "rows")]
        found: dict[str, Any] = json.loads(b"".join(pieces))
        return found

    def csv(self, sql: str) -> AsyncIterator[bytes]:
        """Run a query and yield all rows as CSV. Raises Refused."""
        return self._answered(sql, "csv")

    async def _answered(self, sql: str, form: str) -> AsyncIterator[bytes]:
        async with self._turns[form]:
            try:
                sheets = await self._sheets()
                if self.files is not None:  # only files of referenced tables are fetched
                    names = b"".join([one async for one in self._run(sql, _bare(sheets), "names")])
                    sheets = only(json.loads(names), sheets)
                    await self.fetch(sheets.values())
            except UsageError as error:
                raise Refused(400, str(error)) from error
            async with closing(self._run(sql, sheets, form)) as pieces:
                async for piece in pieces:
                    yield piece

    async def exports(self) -> list[Export]:
        """Return the exports, oldest first. Raises UsageError if there are none."""
        if self.files is None:
            return await asyncio.to_thread(tables.exports_in, self.source, self.named, None)
        return await tables.exports_of(self.files, self.folder / "files", None)

    async def _sheets(self) -> Mapping[str, Sheet]:
        return tables.sheets_of(await self.exports())

    async def fetch(self, sheets: Iterable[Sheet]) -> None:
        """Fetch the files of a stack's tables. Raises UsageError if they are too large."""
        if self.files is None:
            return
        if sum(self._fetched.values()) > KEPT_BYTES_MAX:
            self._fetched.clear()
            await asyncio.to_thread(shutil.rmtree, self.folder / "files", ignore_errors=True)
        await tables.fetch(self.files, sheets, lambda _: None, self._fetched, FETCH_BYTES_MAX)

    def _run(self, sql: str, sheets: Mapping[str, Sheet], form: str) -> AsyncIterator[bytes]:
        """Run a query in a child process, and yield its output. Raises Refused."""

        def task(folder: Path) -> ChildQuery:
            return ChildQuery(sql=sql, sheets=sheets, folder=folder, form=form)

        return child_output(task, self.folder)


async def child_output(task_in: Callable[[Path], ChildTask], folder: Path) -> AsyncIterator[bytes]:
    """Run a task in a child process, and yield its output.

    `task_in` returns the task for its working folder, which is created in `folder`. Raises Refused
    with the task's error, or with the limit that ended the process.
    """
    with TemporaryDirectory(dir=folder, prefix="task-") as place:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _STARTS, json.dumps([*map(os.path.abspath, sys.path)])),
            cwd=place,
            env={},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async for piece in _heard(process, task_in(Path(place))):
                yield piece
        finally:
            if process.returncode is None:
                process.kill()
            # The process can end only after its pipes are read, because it might wait for a full
            # pipe.
            await process.communicate()


async def _heard(process: asyncio.subprocess.Process, task: ChildTask) -> AsyncIterator[bytes]:
    """Yield the output of the child process until it ends. Raises Refused."""
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    if stdin is None or stdout is None or stderr is None:
        raise LookupError("a child has three pipes")
    stdin.write(pickle.dumps(task))
    stdin.write_eof()
    loop = asyncio.get_running_loop()
    until_s = loop.time() + task.wall_s
    while True:
        try:
            # The time that the caller takes between two yields does not count towards the timeout.
            async with asyncio.timeout_at(until_s):
                piece = await stdout.read(PIECE_BYTES)
        except TimeoutError as error:
            slow = f"the {task.noun} takes longer than {task.wall_s:g} s: {task.advice}"
            raise Refused(400, slow) from error
        if not piece:
            break
        yield piece
    said = (await stderr.read(WORDS_BYTES_MAX)).decode("utf-8", "replace")
    code = await process.wait()
    if code == REFUSED:
        raise Refused(400, said)
    if code:
        how = signal.Signals(-code).name if code < 0 else f"status {code}"
        stopped = f"the {task.noun} exceeded a limit and was stopped ({how}): {task.advice}"
        raise Refused(400, stopped)


def _bare(sheets: Mapping[str, Sheet]) -> dict[str, Sheet]:
    return {name: Sheet(name=name, columns=sheet.columns) for name, sheet in sheets.items()}


def _told(sheet: Sheet) -> dict[str, Any]:
    columns = [
        {"name": column.name, "type": f"{column.type}{' list' if column.many else ''}"}
        for column in sheet.columns.values()
    ]
    files = [file.bytes for piece in sheet.pieces for file in piece.files]
    return {"name": sheet.name, "rows": sheet.rows, "bytes": sum(files), "columns": columns}
