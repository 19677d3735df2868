"""Erasure in files: stored pages, exports, what change feeds go by.

- A stored page makes room for as many bytes that say nothing, so that what stands behind it in its
  file stays where the records of other pages say it is. All files are read: a page that no record
  means, since its invocation died too soon, is found as well.
- Of a run that goes as a whole, files go by their names; so do all results of queries, which may
  hold anything and are made again by asking again.
- Exports are written anew after records are gone (erasure/exports.py).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from orbweaver.erasure.exports import NOTES, ExportEraser, ExportReader, OnlyRead
from orbweaver.exporting.manifest import PREFIX, SNAPSHOTS, WORK
from orbweaver.frontier.body_file import PREFIX as BODIES
from orbweaver.frontier.body_file import folder_of
from orbweaver.model.ports import Clock, Files

if TYPE_CHECKING:
    from orbweaver.erasure.exports import Say
    from orbweaver.erasure.scope import ErasureScope
    from orbweaver.exporting.ports import ExportEvents

RESULTS = "athena-results/"


class FileEraser:
    """Goes through all files that may hold it."""

    def __init__(
        self,
        *,
        files: Files | OnlyRead,
        clock: Clock,
        scope: ErasureScope,
        say: Say,
        events: ExportEvents | None = None,
    ) -> None:
        """Take the ports, and what to erase; files that are only read need no bus."""
        self._files = files
        self._scope = scope
        self._say = say
        self._reader = ExportReader(files=files, scope=scope)
        self._exports = ExportEraser(reader=self._reader, clock=clock, say=say, events=events)

    @property
    def done(self) -> Counter[str]:
        """What was done, by kind."""
        return self._reader.done

    @property
    def left(self) -> list[str]:
        """What could not be done."""
        return self._reader.left

    async def erase(self) -> None:
        """Take it out of everything."""
        await self._segments()
        waited = await self._exports.under_way()
        await self._exports.erase()
        if waited:
            await self._exports.erase()
        await self._beside()

    async def count(self) -> None:
        """Go through everything without a wait: over files that are only read, to count."""
        await self._segments()
        await self._exports.erase()
        await self._beside()

    # --- stored pages -----------------------------------------------------------------------

    async def _segments(self) -> None:
        if self._scope.runs:
            for run in sorted(self._scope.runs):
                await self._reader.remove(await self._files.list(folder_of(run)), "segments")
            return
        keys = await self._files.list(BODIES)
        self._say(f"looking through {len(keys):,} files of stored pages")
        await self._reader.all(self._segment(key) for key in keys)

    async def _segment(self, key: str) -> None:
        found = await self._reader.look(key)
        self._reader.done["mentions"] += found.mentions
        if found.body is not None:
            await self._files.put(key, found.body)
            self._reader.done.update(found.gone)
            self._reader.done["segments"] += 1

    # --- what lies beside them --------------------------------------------------------------

    async def _beside(self) -> None:
        """Erase in snapshots and unfinished exports; remove results of queries."""
        snapshots = await self._files.list(f"{PREFIX}{SNAPSHOTS}")
        whole = [key for key in snapshots if self._of_run(key)]
        await self._reader.remove(whole, "snapshots")
        await self._reader.all(self._snapshot(key) for key in snapshots if key not in whole)
        work = await self._files.list(f"{PREFIX}{WORK}")
        held = [key for key in work if not key.startswith(NOTES) and await self._holds(key)]
        await self._reader.remove(held, "work_files")
        await self._reader.remove(await self._files.list(RESULTS), "query_results")

    def _of_run(self, key: str) -> bool:
        name, _, rest = key.removeprefix(f"{PREFIX}{SNAPSHOTS}").partition("/")
        return name in self._scope.names or self._scope.run(rest.partition("/")[0])

    async def _snapshot(self, key: str) -> None:
        found = await self._reader.look(key)
        if found.body is not None:
            await self._files.put(key, found.body)
            self._reader.done["snapshots"] += 1

    async def _holds(self, key: str) -> bool:
        if any(self._scope.run(part.removeprefix("crawl=")) for part in key.split("/")):
            return True
        body = await self._files.get(key)
        return body is not None and self._scope.line(body)
