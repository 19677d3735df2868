"""SQL that was typed in a browser: tables of exports, asked in a process of its own.

Rules
- The text is taken for hostile: it is not even bound in the console's own process, but in one
  without environment, of bounded memory, files and time (cli/query/child.py).
- One query is at work at a time, and one that becomes a file, so that bounds are those of the
  machine; further ones wait.
- Of a stack's exports the files in question are fetched into a folder that lasts as long as the
  console, and each is fetched once; 1 GB at most are of one query.
"""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from orbweaver.api.problems import Refused
from orbweaver.cli.exit_codes import UsageError
from orbweaver.cli.query import tables
from orbweaver.cli.query.child import REFUSED, ChildQuery
from orbweaver.cli.query.duckdb import only
from orbweaver.cli.query.saved import saved
from orbweaver.cli.query.tables import Sheet
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
    """Tables of exports: in a folder of this machine, or of a stack where `files` is given."""

    # Where exports are, and as what that is named.
    source: Path
    named: Path
    # For files that are fetched, and for what does not fit into memory.
    folder: Path
    files: Files | None = None
    _turns: Mapping[str, asyncio.Lock] = field(
        default_factory=lambda: {"rows": asyncio.Lock(), "csv": asyncio.Lock()}
    )
    _fetched: dict[tuple[str, str], int] = field(default_factory=dict)

    async def tables(self) -> dict[str, Any]:
        """List tables with columns and sizes, and the queries that are saved."""
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
        """Ask, and return the first rows; raises Refused for what cannot be."""
        pieces = [piece async for piece in self._answered(sql, "rows")]
        found: dict[str, Any] = json.loads(b"".join(pieces))
        return found

    def csv(self, sql: str) -> AsyncIterator[bytes]:
        """Ask, and return all rows as CSV, piece by piece; raises Refused."""
        return self._answered(sql, "csv")

    async def _answered(self, sql: str, form: str) -> AsyncIterator[bytes]:
        async with self._turns[form]:
            try:
                sheets = await self._sheets()
                if self.files is not None:
                    sheets = await self._brought(self.files, sql, sheets)
            except UsageError as error:
                raise Refused(400, str(error)) from error
            async with closing(self._run(sql, sheets, form)) as pieces:
                async for piece in pieces:
                    yield piece

    async def _sheets(self) -> Mapping[str, Sheet]:
        if self.files is None:
            found = await asyncio.to_thread(tables.exports_in, self.source, self.named, None)
        else:
            found = await tables.exports_of(self.files, self.folder / "files", None)
        return tables.sheets_of(found)

    async def _brought(
        self, files: Files, sql: str, sheets: Mapping[str, Sheet]
    ) -> Mapping[str, Sheet]:
        """Have the files of the tables that a query refers to here."""
        told = b"".join([piece async for piece in self._run(sql, _bare(sheets), "names")])
        taken = only(json.loads(told), sheets)
        if sum(self._fetched.values()) > KEPT_BYTES_MAX:
            self._fetched.clear()
            await asyncio.to_thread(shutil.rmtree, self.folder / "files", ignore_errors=True)
        await tables.fetch(files, taken.values(), lambda _: None, self._fetched, FETCH_BYTES_MAX)
        return taken

    async def _run(self, sql: str, sheets: Mapping[str, Sheet], form: str) -> AsyncIterator[bytes]:
        """Have the child answer; raises Refused with its last word, or for what ended it."""
        with TemporaryDirectory(dir=self.folder, prefix="query-") as place:
            asked = ChildQuery(sql=sql, sheets=sheets, folder=Path(place), form=form)
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", _STARTS, json.dumps([*map(os.path.abspath, sys.path)])),
                cwd=place,
                env={},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            try:
                async for piece in _heard(process, asked):
                    yield piece
            finally:
                if process.returncode is None:
                    process.kill()
                # It counts as ended once its pipes are, of which one may be full.
                await process.communicate()


async def _heard(process: asyncio.subprocess.Process, asked: ChildQuery) -> AsyncIterator[bytes]:
    """Hear the child until it has ended; raises Refused."""
    stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
    if stdin is None or stdout is None or stderr is None:
        raise LookupError("a child has three pipes")
    stdin.write(pickle.dumps(asked))
    stdin.write_eof()
    loop = asyncio.get_running_loop()
    until_s = loop.time() + asked.wall_s
    while True:
        try:
            # Not around the whole loop: what is heard is handed on in between.
            async with asyncio.timeout_at(until_s):
                piece = await stdout.read(PIECE_BYTES)
        except TimeoutError as error:
            slow = f"it takes longer than {asked.wall_s:g} s: ask less of it"
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
        raise Refused(400, f"it takes more than a query may, and was ended ({how}): ask less of it")


def _bare(sheets: Mapping[str, Sheet]) -> dict[str, Sheet]:
    return {name: Sheet(name=name, columns=sheet.columns) for name, sheet in sheets.items()}


def _told(sheet: Sheet) -> dict[str, Any]:
    columns = [
        {"name": column.name, "type": f"{column.type}{' list' if column.many else ''}"}
        for column in sheet.columns.values()
    ]
    files = [file.bytes for piece in sheet.pieces for file in piece.files]
    return {"name": sheet.name, "rows": sheet.rows, "bytes": sum(files), "columns": columns}
