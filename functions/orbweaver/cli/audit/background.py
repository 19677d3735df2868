"""Audits and backlinks of exported runs for the console, in child processes.

- A request starts an audit and returns its progress. Later requests return the report.
- A report is kept until an export of a run of the same name changes.
- One audit runs at a time, and others wait.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from orbweaver.api.problems import Refused
from orbweaver.cli.audit.catalog import checks
from orbweaver.cli.audit.child import ChildAudit, ChildBacklinks
from orbweaver.cli.audit.exported import ExportAudit
from orbweaver.cli.audit.selection import of_same_name
from orbweaver.cli.exit_codes import UsageError
from orbweaver.cli.query.confined import ExportTables, child_output
from orbweaver.cli.query.tables import Sheet
from orbweaver.frontier.retrying import closing
from orbweaver.model.errors import PortError

# Maximum number of results in memory, and of findings per check and status.
KEPT_MAX, FINDINGS_MAX = 8, 10
# SHA-256 of each file.
Version: TypeAlias = tuple[str, ...]


@dataclass(slots=True)
class _Job:
    """A started audit. `state` is the answer to requests."""

    version: Version
    state: dict[str, Any]
    task: asyncio.Task[None] = field(init=False)


@dataclass(slots=True, kw_only=True)
class ExportedSites:
    """Audits and backlinks of exported runs."""

    tables: ExportTables
    _jobs: OrderedDict[tuple[str, str | None], _Job] = field(default_factory=OrderedDict)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def audit(self, crawl: str, since: str | None = None) -> dict[str, Any]:
        """Return the state of a run's audit. If there is none, start it.

        The states are `absent` (the run is not exported), `running` (with the number of finished
        checks), `failed` and `done` (with the report). A failed audit starts again at the next
        request.
        """
        job = self._jobs.get((crawl, since))
        if job is not None and not job.task.done():
            return job.state
        try:
            exports = of_same_name(await self.tables.exports(), crawl)
        except UsageError as error:
            return {"state": "absent", "why": str(error)}
        if not exports:
            why = f"there is no export of {crawl} yet: `orbweaver export --crawl {crawl}` writes it"
            return {"state": "absent", "why": why}
        task = ExportAudit(
            exports=exports,
            which=crawl,
            since=since,
            checks=[*checks().values()],
            limit=FINDINGS_MAX,
        )
        version = _version(task.sheets.values())
        # Another request can have started the audit in the meantime.
        job = self._jobs.get((crawl, since))
        if job is None or (job.task.done() and job.version != version):
            job = self._start((crawl, since), task, version)
        if job.task.done():
            job.task.result()  # raises an error of this program
        if job.state["state"] == "failed":
            del self._jobs[crawl, since]
        return job.state

    async def backlinks(self, crawl: str, url: str) -> dict[str, Any]:
        """Return the pages that link to a URL, or why they are not known. Raises Refused."""
        if self.tables.files is not None:
            why = f"`orbweaver export --crawl {crawl}` fetches the links of this stack's run, and"
            return _unknown(f"{why} `orbweaver explain URL` then names the pages that link here")
        try:
            exports = await self.tables.exports()
        except UsageError as error:
            return _unknown(str(error))

        def task(folder: Path) -> ChildBacklinks:
            return ChildBacklinks(url=url, crawl=crawl, exports=exports, folder=folder)

        output = child_output(task, self.tables.folder)
        found = json.loads(b"".join([piece async for piece in output]))
        if found is None:
            return _unknown(f"the exports in {self.tables.named} contain no links of {crawl}")
        return {"backlinks": found, "why": None}

    async def aclose(self) -> None:
        """End running audits."""
        tasks = [job.task for job in self._jobs.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, key: tuple[str, str | None], audit: ExportAudit, version: Version) -> _Job:
        job = _Job(version, {"state": "running", "done": 0, "of": 0})
        job.task = asyncio.create_task(self._run(job, audit))
        self._jobs.pop(key, None)
        self._jobs[key] = job
        ended = [one for one, known in self._jobs.items() if known.task.done()]
        for one in ended[: max(0, len(self._jobs) - KEPT_MAX)]:
            del self._jobs[one]
        return job

    async def _run(self, job: _Job, audit: ExportAudit) -> None:
        def task(folder: Path) -> ChildAudit:
            return ChildAudit(audit=audit, folder=folder)

        try:
            async with self._turn:
                await self.tables.fetch(audit.sheets.values())
                async with closing(_lines(child_output(task, self.tables.folder))) as lines:
                    async for line in lines:
                        state = "done" if "report" in line else "running"
                        job.state = {"state": state, **line}
        except Refused as error:
            job.state = {"state": "failed", "why": error.detail}
        except (UsageError, PortError) as error:
            job.state = {"state": "failed", "why": str(error)}


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[dict[str, Any]]:
    """Yield the JSON objects of an output with one object per line."""
    rest = b""
    async with closing(pieces) as found:
        async for piece in found:
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                yield json.loads(line)


def _unknown(why: str) -> dict[str, Any]:
    return {"backlinks": None, "why": why}


def _version(sheets: Iterable[Sheet]) -> Version:
    pieces = (piece for sheet in sheets for piece in sheet.pieces)
    return tuple(file.sha256 for piece in pieces for file in piece.files)
