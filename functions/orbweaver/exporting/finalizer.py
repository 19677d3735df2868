"""Seal a run: publish the export when all units are done.

Two workers that seal at the same time write the same manifest. If a later run has replaced this
run, the manifest of this run must not remain. `Repairer` repairs the files that workers of a
replaced run wrote or removed just before they noticed, or before they died.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from orbweaver.exporting.file_store import Store
from orbweaver.exporting.formats import FORMATS
from orbweaver.exporting.glue_schema import FORMAT
from orbweaver.exporting.manifest import (
    MANIFESTS,
    File,
    Manifest,
    encode_manifest,
    folder_of,
    place_of,
)
from orbweaver.exporting.run_state import (
    Catalogue,
    ExportEvents,
    ExportOrder,
    ExportScope,
    OrderKind,
    Unit,
    UnitProgress,
    manifest_of,
)
from orbweaver.exporting.runs import ExportRuns
from orbweaver.model.columns import CHANGES, ITEMS, Table
from orbweaver.model.errors import PortError
from orbweaver.model.value import value_class

LOGGER = logging.getLogger(__name__)


@value_class
class Finalizer:
    """Publishes the manifest of a run whose units are done."""

    store: Store
    runs: ExportRuns
    repairer: Repairer
    events: ExportEvents | None
    catalogue: Catalogue | None

    async def seal(self, order: ExportOrder) -> Manifest | None:
        """Publish the manifest of a run whose units are done.

        Returns it, or None if it was not published.
        """
        scope, run = order.scope, order.run
        if not await self._is_current(order):
            await self.repairer.repair(scope, None)
            return None
        plan = await self.runs.plan(scope, run)
        if plan is None:  # a worker died after it had published the run
            await self._remove(order)
            return None
        states = await self.runs.all_progress(scope, run, plan.units)
        left = [(unit, progress.ticket) for unit, progress in states if not progress.done]
        # Another worker found damaged files meanwhile, and had their units exported again.
        if left:
            await self.runs.order_units(scope, run, left)
            return None
        manifest = manifest_of(scope, states)
        if not await self._publish(order, states, manifest):
            return None
        await self._announce(manifest)
        await self._remove(order)
        return manifest

    async def _is_current(self, order: ExportOrder) -> bool:
        """Whether a run is current.

        If a later run has replaced it, its remaining files are removed.
        """
        # A repeated request may have stored the plan again while the run was removed.
        if await self.runs.current(order.scope) == order.run:
            return True
        await self.runs.clean_up(order.scope, order.run)
        return False

    async def _announce(self, manifest: Manifest) -> None:
        catalogue, events = self.catalogue, self.events
        if catalogue is not None:
            await register_items(manifest, catalogue, self.store.call)
        if events is not None:
            key = self.store.key(manifest.path)
            await self.store.call(lambda: events.exported(manifest, key))

    async def _publish(
        self, order: ExportOrder, states: Sequence[tuple[Unit, UnitProgress]], manifest: Manifest
    ) -> bool:
        """Write a manifest and check the files that it names.

        Returns whether the export is correct.
        """
        scope, body = order.scope, encode_manifest(manifest)
        standing = await self.store.get(scope.manifest)
        if not await self._is_current(order):
            return False
        if standing != body:
            await self.store.put(scope.manifest, body)
            # A later run began meanwhile, so this manifest may have replaced the manifest of that
            # run.
            if not await self._is_current(order):
                await self.repairer.take_back(scope, body)
                return False
        await self.repairer.clear(scope, None, manifest.files)
        damaged = await self.store.damaged(manifest.files)
        # Another worker published this run, or a later run began. A later run withdraws the
        # manifest before it writes other files.
        if not await self._is_current(order):
            if damaged:
                await self.repairer.replace(scope, body)
            return False
        # A worker with an older message wrote other contents into these files.
        if damaged:
            await self._export_again(order, states, damaged)
        return not damaged

    async def _remove(self, order: ExportOrder) -> None:
        await self.runs.remove(order.scope, order.run)
        # A copy of an old message may have started a unit while the run was removed.
        await self.repairer.missing(order.scope)

    async def _export_again(
        self,
        order: ExportOrder,
        states: Sequence[tuple[Unit, UnitProgress]],
        damaged: Sequence[File],
    ) -> None:
        scope, run = order.scope, order.run
        await self.store.delete([scope.manifest])
        hit = {_owner(file) for file in damaged}
        again = [
            (unit, progress.ticket)
            for unit, progress in states
            if (unit.crawl, unit.group if unit.groups else None) in hit
        ]
        for unit, ticket in again:
            await self.runs.reset_unit(scope, run, unit, ticket)
        await self.runs.order_units(scope, run, again)


def _owner(file: File) -> tuple[str, int | None]:
    place = place_of(file.path)
    group = None if place is None or file.table == CHANGES.name else place.group
    return file.crawl, group


async def register_items(
    manifest: Manifest,
    catalogue: Catalogue,
    tried: Callable[[Callable[[], Awaitable[None]]], Awaitable[None]],
) -> None:
    """Register the item tables of an export. `tried` calls a function with retries.

    Tables that are not item tables are part of a deployment. If the catalogue refuses a table, that
    is logged, and the next export registers the table. The export is announced in any case.
    """
    names = {
        file.table
        for file in manifest.files
        if file.format == FORMAT and file.table.startswith(ITEMS)
    }
    for name in sorted(names):
        table = Table(name=name, columns=tuple(manifest.columns[name]))
        fields = {"table": name, "day": manifest.day}
        try:
            await tried(partial(catalogue.register, table))
        except PortError as error:
            LOGGER.warning("catalogue.refused", extra={**fields, "error": str(error)})
        else:
            LOGGER.info("catalogue.registered", extra=fields)


# --- files of outdated runs ----------------------------------------------------------------------


@value_class
class Repairer:
    """Repairs exports whose files differ from the published manifest."""

    store: Store
    runs: ExportRuns

    async def withdraw(self, scope: ExportScope, files: Sequence[File]) -> None:
        """Remove the manifest if it names other contents for these files, or is unreadable.

        Call it before a file is written, so that readers never see a manifest with wrong contents.
        Call it again afterwards, because another worker can write the manifest meanwhile.
        """
        body, manifest = await self.store.manifest(scope.manifest)
        if body is None:
            return
        named = {} if manifest is None else manifest.named()
        if manifest is None or any(named.get(file.path, file) != file for file in files):
            await self.store.delete([scope.manifest])

    async def repair(self, scope: ExportScope, crawl: str | None) -> None:
        """Repair files that a worker of a replaced run may have damaged.

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
        """Remove the wrong manifest `body` and export the day again.

        Does nothing if another manifest or none is stored.
        """
        # The current run may have removed the manifest meanwhile, to write other files.
        if await self.store.get(scope.manifest) == body:
            await self.store.delete([scope.manifest])
            await self._export_again(scope)

    async def take_back(self, scope: ExportScope, body: bytes) -> None:
        """Remove the manifest `body`, which was written after a later run had begun.

        The current run writes its own manifest. If no run is in progress, a new one is started.
        """
        if await self.store.get(scope.manifest) == body:
            await self.store.delete([scope.manifest])
        await self.missing(scope)

    async def missing(self, scope: ExportScope) -> None:
        """Export a day or crawl again if it has no manifest and no run is in progress.

        In this state, a worker removed the manifest after the export was complete.
        """
        if await self.runs.current(scope) is None and await self.store.get(scope.manifest) is None:
            await self._export_again(scope)

    async def _export_again(self, scope: ExportScope) -> None:
        await self.runs.order(OrderKind.PLAN, scope, self.runs.ticket(0)[1])

    async def clear(self, scope: ExportScope, crawl: str | None, named: Sequence[File]) -> None:
        """Remove all export files of a day, or of one crawl, except the files `named`."""
        kept = {file.path for file in named}
        present = await self._existing_files(scope.day, crawl or scope.crawl)
        surplus = [path for path in present if path not in kept]
        if not surplus:
            return
        await self.store.delete(surplus)
        # This worker may have been suspended between listing and removing. So the manifest of a
        # later run may name removed files.
        body, manifest = await self.store.manifest(scope.manifest)
        if (
            body is not None
            and manifest is not None
            and not manifest.named().keys().isdisjoint(surplus)
        ):
            await self.replace(scope, body)

    async def _existing_files(self, day: str, crawl: str | None) -> list[str]:
        found: list[str] = []
        for table in await self._tables():
            for name in FORMATS:
                found += await self.store.list(folder_of(table, name, day, crawl))
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
