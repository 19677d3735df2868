"""Repair exports with files that the published manifest does not name.

A worker of an outdated run (a later run has replaced it) may write or remove a file just before it
notices, or before it dies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orbweaver.exporting.file_store import Store
from orbweaver.exporting.formats import FORMATS
from orbweaver.exporting.manifest import CRAWL_KEY, MANIFESTS, File, folder_of, place_of
from orbweaver.exporting.run_state import ExportScope, OrderKind
from orbweaver.exporting.runs import ExportRuns

ITEMS = "items/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repairer:
    """Keeps manifests and files consistent."""

    store: Store
    runs: ExportRuns

    async def withdraw(self, scope: ExportScope, files: Sequence[File]) -> None:
        """Remove a manifest that names other contents for these paths, or that is unreadable.

        Call it before a file is written, so that readers never see both, and afterwards, because
        the manifest may have been written meanwhile.
        """
        body, manifest = await self.store.manifest(scope.manifest)
        if body is None:
            return
        named = {} if manifest is None else manifest.named()
        if manifest is None or any(named.get(file.path, file) != file for file in files):
            await self.store.delete([scope.manifest])

    async def repair(self, scope: ExportScope, crawl: str | None) -> None:
        """Repair wrong files that a worker of an outdated run may have written.

        If files of the crawl (None: of all crawls) differ from the manifest, remove the manifest
        and export the day again.
        """
        current = await self.runs.current(scope)
        body, manifest = await self.store.manifest(scope.manifest)
        if body is None:
            await self.missing(scope)
            return
        if manifest is not None:
            named = [file for file in manifest.files if crawl in (None, file.crawl)]
            if not await self.store.damaged(named):
                if current is None:
                    await self.clear(scope, crawl, named)
                return
        await self.replace(scope, body)

    async def replace(self, scope: ExportScope, body: bytes) -> None:
        """Withdraw a wrong manifest and export the day again, unless the manifest is gone."""
        # The current run may have withdrawn it meanwhile, to write other files.
        if await self.store.get(scope.manifest) == body:
            await self.store.delete([scope.manifest])
            await self._export_again(scope)

    async def take_back(self, scope: ExportScope, body: bytes) -> None:
        """Withdraw a manifest that was written too late.

        The current or a new run writes another.
        """
        if await self.store.get(scope.manifest) == body:
            await self.store.delete([scope.manifest])
        await self.missing(scope)

    async def missing(self, scope: ExportScope) -> None:
        """Export a day or crawl again if it has no manifest and no run is in progress.

        Then a worker withdrew the manifest after the export was complete.
        """
        if await self.runs.current(scope) is None and await self.store.get(scope.manifest) is None:
            await self._export_again(scope)

    async def _export_again(self, scope: ExportScope) -> None:
        await self.runs.order(OrderKind.PLAN, scope, self.runs.ticket(0)[1])

    async def clear(self, scope: ExportScope, crawl: str | None, named: Sequence[File]) -> None:
        """Remove all files of a day, or of one crawl of it, except these."""
        kept = {file.path for file in named}
        present = await self._existing_files(scope.day, crawl or scope.crawl)
        surplus = [path for path in present if path not in kept]
        if not surplus:
            return
        await self.store.delete(surplus)
        # This worker may have been suspended between listing and removing. The run that writes a
        # later manifest checks that manifest.
        body, manifest = await self.store.manifest(scope.manifest)
        if (
            body is not None
            and manifest is not None
            and not manifest.named().keys().isdisjoint(surplus)
        ):
            await self.replace(scope, body)

    async def _existing_files(self, day: str, crawl: str | None) -> list[str]:
        found: list[str] = []
        crawls = (None,) if crawl is None else (crawl, f"{CRAWL_KEY}{crawl}")
        for table in await self._tables():
            for name in FORMATS:
                for one in crawls:
                    found += await self.store.list(folder_of(table, name, day, one))
        return [path for path in found if place_of(path) is not None]

    async def _tables(self) -> list[str]:
        tables: list[str] = []
        for folder in await self.store.folders(""):
            if folder == ITEMS:
                for name in await self.store.folders(ITEMS):
                    tables += await self.store.folders(name)
            elif folder != MANIFESTS and not folder.startswith("_"):
                tables.append(folder)
        return [folder.rstrip("/") for folder in tables]
