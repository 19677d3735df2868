"""Repair of exports: files that a standing manifest does not name.

- Before and after a file is put, a manifest that means another one by its name is withdrawn:
  before, so that readers never see the two together; after, because it may have come meanwhile.
- A worker whose run does not count any more may have put or removed a file all the same, just
  before it noticed, or died of it. It looks at what stands of the crawl it worked on, or of all
  that it sealed: where that is not what the manifest means, the manifest goes and the day is
  exported again. Where there is neither a manifest nor a run that counts, a worker withdrew it when
  the export was thought to be done.
- A worker that removes files looks whether a manifest names them by then: it may have stood still
  between listing and removing them. A manifest that comes later is looked after by the run that
  puts it.
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
    """Keeps manifests and files together."""

    store: Store
    runs: ExportRuns

    async def withdraw(self, scope: ExportScope, files: Sequence[File]) -> None:
        """Remove a manifest that means other files by these names, or that cannot be read."""
        body, manifest = await self.store.manifest(scope.manifest)
        if body is None:
            return
        named = {} if manifest is None else manifest.named()
        if manifest is None or any(named.get(file.path, file) != file for file in files):
            await self.store.delete([scope.manifest])

    async def repair(self, scope: ExportScope, crawl: str | None) -> None:
        """Look after what a worker may have left of a crawl, of a run that does not count.

        None: of all crawls.
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
        """Withdraw a manifest that is not true, unless it is gone, and export the day again."""
        # The run that counts may have withdrawn it meanwhile, to put other files.
        if await self.store.get(scope.manifest) == body:
            await self.store.delete([scope.manifest])
            await self._export_again(scope)

    async def take_back(self, scope: ExportScope, body: bytes) -> None:
        """Withdraw a manifest that came too late; what counts next, or a new run, puts another."""
        if await self.store.get(scope.manifest) == body:
            await self.store.delete([scope.manifest])
        await self.missing(scope)

    async def missing(self, scope: ExportScope) -> None:
        """Have a scope exported again that has no manifest, and that no run is at."""
        if await self.runs.current(scope) is None and await self.store.get(scope.manifest) is None:
            await self._export_again(scope)

    async def _export_again(self, scope: ExportScope) -> None:
        await self.runs.order(OrderKind.PLAN, scope, self.runs.ticket(0)[1])

    async def clear(self, scope: ExportScope, crawl: str | None, named: Sequence[File]) -> None:
        """Remove all files of a day, or of one crawl of it, but these; others' are left."""
        kept = {file.path for file in named}
        present = await self._present(scope.day, crawl or scope.crawl)
        surplus = [path for path in present if path not in kept]
        if not surplus:
            return
        await self.store.delete(surplus)
        body, manifest = await self.store.manifest(scope.manifest)
        if (
            body is not None
            and manifest is not None
            and not manifest.named().keys().isdisjoint(surplus)
        ):
            await self.replace(scope, body)

    async def _present(self, day: str, crawl: str | None) -> list[str]:
        """List the files of a day, or of one crawl of it."""
        found: list[str] = []
        crawls = (None,) if crawl is None else (crawl, f"{CRAWL_KEY}{crawl}")
        for table in await self._tables():
            for name in FORMATS:
                for one in crawls:
                    found += await self.store.list(folder_of(table, name, day, one))
        return [path for path in found if place_of(path) is not None]

    async def _tables(self) -> list[str]:
        """Name the tables that there are files of."""
        tables: list[str] = []
        for folder in await self.store.folders(""):
            if folder == ITEMS:
                for name in await self.store.folders(ITEMS):
                    tables += await self.store.folders(name)
            elif folder != MANIFESTS and not folder.startswith("_"):
                tables.append(folder)
        return [folder.rstrip("/") for folder in tables]
