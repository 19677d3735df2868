"""Sealing a run: from units that are done to an export that stands.

Order of effects

    1  put the manifest, if it is not the one that stands already
    2  remove the day's files that it does not name: those of earlier runs
    3  audit: every file that it names is there and is the one that it means
    4  make tables of items known; announce the export
    5  remove the run; look whether the manifest still stands

- Where the audit finds another file, a worker has put it by an older order. The manifest goes, and
  the units that it belongs to are worked on once more.
- Where the run does not count any more after the manifest was put, that may have taken the place of
  a later one: it goes, and the day is exported again, unless a later run is at it.
- Where the run does not count any more after the audit, another worker has finalized it, or a later
  run has begun, which withdraws the manifest before it puts anything else. If the audit failed,
  too, the manifest goes and the day is exported again.
- Two that seal at once put the same manifest. One that finds units that are not done has been
  overtaken by an audit, and orders them again.
- Step 5 looks because a copy of an old order may have begun on a unit while the run was removed.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from orbweaver.exporting.file_store import Store
from orbweaver.exporting.glue_schema import FORMAT
from orbweaver.exporting.manifest import File, Manifest, encode_manifest, place_of
from orbweaver.exporting.ports import Catalogue, ExportEvents
from orbweaver.exporting.repair import Repairer
from orbweaver.exporting.run_state import ExportOrder, Unit, UnitProgress, manifest_of
from orbweaver.exporting.runs import ExportRuns
from orbweaver.model.columns import CHANGES, ITEMS, Table
from orbweaver.model.errors import PortError

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finalizer:
    """Puts manifests."""

    store: Store
    runs: ExportRuns
    repairer: Repairer
    events: ExportEvents | None
    catalogue: Catalogue | None

    async def seal(self, order: ExportOrder) -> Manifest | None:
        """Seal a run whose units are done; its manifest, if it stands."""
        scope, run = order.scope, order.run
        if not await self._counts(order):
            await self.repairer.repair(scope, None)
            return None
        plan = await self.runs.plan(scope, run)
        if plan is None:  # a worker that finalized it died in the end
            await self._remove(order)
            return None
        states = await self.runs.all_progress(scope, run, plan.units)
        left = [(unit, progress.ticket) for unit, progress in states if not progress.done]
        if left:
            await self.runs.order_units(scope, run, left)
            return None
        manifest = manifest_of(scope, states)
        if not await self._stands(order, states, manifest):
            return None
        await self._tell(manifest)
        await self._remove(order)
        return manifest

    async def _counts(self, order: ExportOrder) -> bool:
        """Whether a run still counts; what is left of one that does not is removed.

        Its request may have come twice, and its plan been kept anew as the run was removed.
        """
        if await self.runs.current(order.scope) == order.run:
            return True
        await self.runs.clean_up(order.scope, order.run)
        return False

    async def _tell(self, manifest: Manifest) -> None:
        """Make tables of items known, and announce the export."""
        catalogue, events = self.catalogue, self.events
        if catalogue is not None:
            await register_items(manifest, catalogue, self.store.tried)
        if events is not None:
            key = self.store.key(manifest.path)
            await self.store.tried(lambda: events.exported(manifest, key))

    async def _stands(
        self, order: ExportOrder, states: Sequence[tuple[Unit, UnitProgress]], manifest: Manifest
    ) -> bool:
        """Put a manifest and look at what stands; whether it is what the run has come to."""
        scope, body = order.scope, encode_manifest(manifest)
        standing = await self.store.get(scope.manifest)
        if not await self._counts(order):
            return False
        if standing != body:
            await self.store.put(scope.manifest, body)
            if not await self._counts(order):
                await self.repairer.take_back(scope, body)
                return False
        await self.repairer.clear(scope, None, manifest.files)
        damaged = await self.store.damaged(manifest.files)
        if not await self._counts(order):
            if damaged:
                await self.repairer.replace(scope, body)
            return False
        if damaged:
            await self._again(order, states, damaged)
        return not damaged

    async def _remove(self, order: ExportOrder) -> None:
        await self.runs.remove(order.scope, order.run)
        await self.repairer.missing(order.scope)

    async def _again(
        self,
        order: ExportOrder,
        states: Sequence[tuple[Unit, UnitProgress]],
        damaged: Sequence[File],
    ) -> None:
        """Withdraw the manifest, and have the units of files that are not theirs worked on anew."""
        scope, run = order.scope, order.run
        await self.store.delete([scope.manifest])
        hit = {_owner(file) for file in damaged}
        again = [
            (unit, progress.ticket)
            for unit, progress in states
            if (unit.crawl, unit.group if unit.groups else None) in hit
        ]
        for unit, ticket in again:
            await self.runs.again(scope, run, unit, ticket)
        await self.runs.order_units(scope, run, again)


def _owner(file: File) -> tuple[str, int | None]:
    """Say which unit a file is of."""
    place = place_of(file.path)
    group = None if place is None or file.table == CHANGES.name else place.group
    return file.crawl, group


async def register_items(
    manifest: Manifest,
    catalogue: Catalogue,
    tried: Callable[[Callable[[], Awaitable[None]]], Awaitable[None]],
) -> None:
    """Register the tables of items that an export has files of; `tried` calls ports patiently.

    Other tables are part of a deployment. What is refused is logged, and registered with a later
    export: one that stands is announced all the same.
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
