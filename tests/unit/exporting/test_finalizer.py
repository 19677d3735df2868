"""Item tables are registered after an export, and never block it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from orbweaver.exporting.finalizer import register_items
from orbweaver.exporting.glue_schema import query_name
from orbweaver.exporting.manifest import Manifest, decode_manifest
from orbweaver.model.errors import Permanent, Transient
from tests.memory import MemoryCatalogue, Moment, World
from tests.unit.cli.exports import BOOKS, CRAWL, DAY, USUAL, made

if TYPE_CHECKING:
    import pytest

NAME = query_name(BOOKS.name)


def manifest_of(files: dict[str, bytes]) -> Manifest:
    manifest = decode_manifest(files[f"manifests/dt={DAY}/crawl={CRAWL}.json"])
    assert manifest is not None
    return manifest


async def twice(call: Callable[[], Awaitable[None]]) -> None:
    try:
        await call()
    except Transient:
        await call()


async def test_item_tables_are_registered_with_columns() -> None:
    world = World()
    await register_items(manifest_of(made(USUAL)), MemoryCatalogue(world), twice)
    assert {name: table.columns for name, table in world.catalogue.items()} == {NAME: BOOKS.columns}


async def test_export_without_parquet_registers_no_table() -> None:
    world = World()
    manifest = manifest_of(made(USUAL, names=("jsonl", "csv")))
    await register_items(manifest, MemoryCatalogue(world), twice)
    assert world.catalogue == {}


async def test_failed_registration_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    calls = 0

    async def fail(effect: str, _moment: Moment) -> None:
        nonlocal calls
        calls += 1
        raise Transient(effect) if calls == 1 else Permanent("denied")

    world = World()
    catalogue = MemoryCatalogue(world, fail)
    await register_items(manifest_of(made(USUAL)), catalogue, twice)
    assert world.catalogue == {}
    [said] = [one for one in caplog.records if one.message == "catalogue.refused"]
    assert (said.__dict__["table"], said.__dict__["error"]) == (BOOKS.name, "denied")
    await register_items(manifest_of(made(USUAL)), MemoryCatalogue(world), twice)
    assert [*world.catalogue] == [NAME]
