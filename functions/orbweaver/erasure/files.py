"""Erasure in files: stored pages, exports, snapshots of change feeds.

Stored pages without a record are found too, because all files are read. Files of an erased run are
removed by name, and so are all query results, which can be made again.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from orbweaver.erasure.scope import ErasureScope
from orbweaver.exporting.formats import WARC, erased, outcomes
from orbweaver.exporting.formats.hashed_file import Erased
from orbweaver.exporting.manifest import (
    MANIFESTS,
    PREFIX,
    SNAPSHOTS,
    WORK,
    File,
    FilePlace,
    Manifest,
    decode_manifest,
    encode_manifest,
    place_of,
)
from orbweaver.exporting.run_state import RUN, RUN_MS_MAX, ExportEvents, begun_ms
from orbweaver.frontier.body_file import PREFIX as BODIES
from orbweaver.frontier.body_file import folder_of
from orbweaver.frontier.known_claims import PREFIX as CLAIMS
from orbweaver.frontier.known_claims import folder_of as claims_of
from orbweaver.frontier.retrying import all_of
from orbweaver.frontier.warc import WarcError
from orbweaver.model.columns import ITEMS
from orbweaver.model.ports import Clock, Files

Say = Callable[[str], None]
T = TypeVar("T")
# Errors of reading a file whose content does not have the format that the file's name implies.
UNREADABLE = (WarcError, ValueError, OSError)
# Files in memory at a time.
AT_ONCE = 4
NOTES = f"{PREFIX}{WORK}forget/"
RESULTS = "athena-results/"
# Maximum wait for a running export, longer than an invocation of the exporter, and the seconds
# between two checks.
EXPORT_WAIT_S, EXPORT_LOOK_S = 960, 15


class FileEraser:
    """Erases data in all files. `done` counts the changes, `left` lists the failures."""

    def __init__(
        self,
        *,
        files: Files | ReadOnlyFiles,
        clock: Clock,
        scope: ErasureScope,
        say: Say,
        events: ExportEvents | None = None,
    ) -> None:
        self._files = files
        self._clock = clock
        self._scope = scope
        self._say = say
        self._events = events
        self.done: Counter[str] = Counter()
        self.left: list[str] = []
        # Numbers of removed rows and of changed cells, by format. All formats contain the same
        # rows, so the maximum of the formats is reported.
        self._counted: dict[str, Counter[str]] = {"rows": Counter(), "cells": Counter()}

    async def erase(self) -> None:
        await self._claims()
        await self._segments()
        waited = await self._wait_for_exports()
        await self.erase_exports()
        # An export that was running may have copied erased records into its files.
        if waited:
            await self.erase_exports()
        await self._erase_other_files()

    async def count(self) -> None:
        """Do all steps except waiting. On read-only files this only counts."""
        await self._claims()
        await self._segments()
        await self.erase_exports()
        await self._erase_other_files()

    # --- one file ---------------------------------------------------------------------------

    async def erase_in(self, key: str) -> Erased:
        """Erase data from a copy of the file `key` in memory, and return the result.

        An unreadable file is listed in `left`.
        """
        body = await self._files.get(key)
        if body is None:
            return Erased(gone={})
        try:
            return await asyncio.to_thread(erased, key, body, self._scope)
        except UNREADABLE as error:
            said = f"{key} cannot be read ({error}): look at it, or remove it"
            self.left += [] if said in self.left else [said]
            return Erased(gone={})

    async def remove(self, keys: Sequence[str], what: str) -> None:
        if keys:
            await self._files.delete(keys)
            self.done[what] += len(keys)

    async def _all(self, calls: Iterable[Awaitable[T]]) -> list[T]:
        return await all_of(calls, AT_ONCE)

    # --- stored pages -----------------------------------------------------------------------

    async def _claims(self) -> None:
        """Remove files with digests of claimed URLs: all, or only of erased runs."""
        # These files only pass known URLs from worker to worker, so workers can do without them.
        folders = [claims_of(run) for run in sorted(self._scope.runs)] or [CLAIMS]
        for folder in folders:
            await self.remove(await self._files.list(folder), "claim_files")

    async def _segments(self) -> None:
        if self._scope.runs:
            for run in sorted(self._scope.runs):
                await self.remove(await self._files.list(folder_of(run)), "segments")
            return
        keys = await self._files.list(BODIES)
        self._say(f"looking through {len(keys):,} files of stored pages")
        await self._all(self._segment(key) for key in keys)

    async def _segment(self, key: str) -> None:
        found = await self.erase_in(key)
        self.done["mentions"] += found.mentions
        if found.body is not None:
            # Filler bytes keep the length, so the offsets in other pages' records stay valid.
            await self._files.put(key, found.body)
            self.done.update(found.gone)
            self.done["segments"] += 1

    # --- exports ----------------------------------------------------------------------------

    async def _wait_for_exports(self) -> bool:
        """Wait until no export that may have read erased data is running.

        Return True if an export was running.
        """
        until_ms = self._clock.now_ms() + EXPORT_WAIT_S * 1000
        waited = False
        while days := await self._running():
            said = ", ".join(sorted(days))
            if self._clock.now_ms() >= until_ms:
                self.left.append(f"an export of {said} has not ended: run this again when it has")
                return True
            self._say(f"waiting for the export of {said}")
            waited = True
            await self._clock.sleep(EXPORT_LOOK_S)
        return waited

    async def _running(self) -> set[str]:
        dead_ms = self._clock.now_ms() - RUN_MS_MAX
        days = set()
        for key in await self._files.list(f"{PREFIX}{WORK}dt="):
            day, *parts = key.removeprefix(f"{PREFIX}{WORK}dt=").split("/")
            runs = [part for part in parts if RUN.fullmatch(part)]
            if runs and begun_ms(runs[0]) > dead_ms:
                days.add(day)
        return days

    async def erase_exports(self) -> None:
        parts: dict[str, list[FilePlace]] = {}
        manifests: dict[str, set[str]] = {}
        paths = [key.removeprefix(PREFIX) for key in await self._files.list(PREFIX)]
        for path in paths:
            if (place := place_of(path)) is not None:
                parts.setdefault(place.day, []).append(place)
        noted = [key.removeprefix(NOTES) for key in await self._files.list(NOTES)]
        for path in (*paths, *noted):
            if path.startswith(MANIFESTS):
                day = path.partition("dt=")[2].partition("/")[0].removesuffix(".json")
                manifests.setdefault(day, set()).add(path)
        for day in sorted(parts.keys() | manifests.keys()):
            self._say(f"looking through the exports of {day}")
            await self._day(parts.get(day, []), sorted(manifests.get(day, ())))

    async def _day(self, places: list[FilePlace], paths: list[str]) -> None:
        # Each affected manifest is copied to a note and deleted, so that no reader uses it. Then
        # the files are rewritten, and the manifests are written again. After a crash, the notes are
        # the manifests to write.
        held = await self._all(map(self._holds, places))
        affected = {place.path: place for place, holds in zip(places, held, strict=True) if holds}
        touched: dict[str, Manifest] = {}
        for path in paths:
            noted = await self._manifest(f"{NOTES}{path}")
            standing = await self._manifest(f"{PREFIX}{path}")
            manifest = noted or standing
            if manifest is not None and (noted or self._concerns(manifest, affected)):
                touched[path] = manifest
        for path, manifest in touched.items():
            await self._files.put(f"{NOTES}{path}", encode_manifest(manifest))
        await self._files.delete([f"{PREFIX}{path}" for path in touched])
        await self._all(self._rewrite(place) for _, place in sorted(affected.items()))
        for path, manifest in touched.items():
            await self._restore_manifest(path, manifest)
            await self._files.delete([f"{NOTES}{path}"])

    async def _holds(self, place: FilePlace) -> bool:
        if self._scope.run(place.crawl):
            return True
        return (await self.erase_in(f"{PREFIX}{place.path}")).body is not None

    def _concerns(self, manifest: Manifest, affected: Mapping[str, FilePlace]) -> bool:
        if self._scope.run(manifest.crawl) or any(map(self._scope.run, manifest.crawls)):
            return True
        return any(file.path in affected for file in manifest.files)

    async def _rewrite(self, place: FilePlace) -> None:
        key = f"{PREFIX}{place.path}"
        if self._scope.run(place.crawl):
            await self.remove([key], "export_files")
            return
        found = await self.erase_in(key)
        if found.body is None:
            return
        self.done["export_files"] += 1
        if found.rows:
            await self._files.put(key, found.body)
        else:
            await self._files.delete([key])
        for kind, counted in self._counted.items():
            counted[place.format] += found.gone.get(kind, 0)
            self.done[kind] = max(counted.values())

    async def _restore_manifest(self, path: str, manifest: Manifest) -> None:
        """Write a manifest for the changed files, and announce it so that receivers update."""
        files = [await self._current_file(file) for file in manifest.files]
        kept = [file for file in files if file is not None]
        crawls = {}
        for crawl, sums in manifest.crawls.items():
            mine = [file for file in kept if file.crawl == crawl]
            if not mine or self._scope.run(crawl):
                continue
            rows = _rows(mine, sums.rows)
            counted = await self._outcomes(mine)
            crawls[crawl] = replace(
                sums, rows=rows, outcomes=sums.outcomes if counted is None else counted
            )
        if self._scope.run(manifest.crawl) or (manifest.crawls and not crawls):
            return  # the manifest would be empty
        # Item tables are named after crawls, so names of tables without files are left out.
        tables = {file.table for file in kept}
        columns = {
            table: rows
            for table, rows in manifest.columns.items()
            if table in tables or not table.startswith(ITEMS)
        }
        left = replace(manifest, files=tuple(kept), crawls=crawls, columns=columns)
        await self._files.put(f"{PREFIX}{path}", encode_manifest(left))
        if self._events is not None:
            await self._events.exported(left, f"{PREFIX}{path}")

    async def _current_file(self, file: File) -> File | None:
        """Return a manifest's entry of a file with its current length, rows and digest.

        Return None if the file does not exist.
        """
        body = await self._files.get(f"{PREFIX}{file.path}")
        if body is None:
            return None
        digest = hashlib.sha256(body).hexdigest()
        if digest == file.sha256:
            return file
        try:
            found = await asyncio.to_thread(erased, file.path, body, self._scope)
        except UNREADABLE:
            return file  # unchanged, and reported as unreadable
        return replace(file, rows=found.rows, bytes=len(body), sha256=digest)

    async def _outcomes(self, files: list[File]) -> dict[str, int] | None:
        pages = [file for file in files if file.table == "pages" and file.format != WARC]
        if not pages:
            return None
        total: Counter[str] = Counter()
        for file in pages:
            if file.format == pages[0].format:
                body = await self._files.get(f"{PREFIX}{file.path}")
                try:
                    total.update(outcomes(file.path, body or b"") or {})
                except UNREADABLE:
                    return None
        return dict(sorted(total.items()))

    async def _manifest(self, key: str) -> Manifest | None:
        body = await self._files.get(key)
        return None if body is None else decode_manifest(body)

    # --- other files ------------------------------------------------------------------------

    async def _erase_other_files(self) -> None:
        """Erase URLs in scope from snapshots and unfinished exports. Remove all query results."""
        snapshots = await self._files.list(f"{PREFIX}{SNAPSHOTS}")
        whole = [key for key in snapshots if self._of_run(key)]
        await self.remove(whole, "snapshots")
        await self._all(self._snapshot(key) for key in snapshots if key not in whole)
        work = await self._files.list(f"{PREFIX}{WORK}")
        held = [key for key in work if not key.startswith(NOTES) and await self._unfinished(key)]
        await self.remove(held, "work_files")
        await self.remove(await self._files.list(RESULTS), "query_results")

    def _of_run(self, key: str) -> bool:
        name, _, rest = key.removeprefix(f"{PREFIX}{SNAPSHOTS}").partition("/")
        return name in self._scope.names or self._scope.run(rest.partition("/")[0])

    async def _snapshot(self, key: str) -> None:
        found = await self.erase_in(key)
        if found.body is not None:
            await self._files.put(key, found.body)
            self.done["snapshots"] += 1

    async def _unfinished(self, key: str) -> bool:
        if any(self._scope.run(part.removeprefix("crawl=")) for part in key.split("/")):
            return True
        body = await self._files.get(key)
        return body is not None and self._scope.line(body)


def _rows(files: list[File], before: Mapping[str, int]) -> Mapping[str, int]:
    """Return the number of rows by table, from one format of each table except WARC.

    All other formats have the same rows. Without such files, return `before`.
    """
    counted: dict[str, Counter[str]] = {}
    for file in files:
        if file.format != WARC:
            counted.setdefault(file.table, Counter())[file.format] += file.rows
    if not counted:
        return before
    return {table: max(formats.values()) for table, formats in sorted(counted.items())}


class ReadOnlyFiles:
    """Read-only access to files. Writes have no effect."""

    def __init__(self, files: Files) -> None:
        self.get = files.get
        self.list = files.list

    async def put(self, _key: str, _body: bytes) -> None: ...

    async def delete(self, _keys: Sequence[str]) -> None: ...
