"""Contract of the Glue catalogue: register tables, widen them, and keep their names apart."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from orbweaver.adapters.aws.glue import GlueCatalogue
from orbweaver.exporting.glue_schema import OWNER, glue_columns, second_name
from orbweaver.frontier.retrying import RetryPolicy
from orbweaver.model.columns import PAGES, Column, Type, item_table
from orbweaver.model.errors import Permanent
from tests.contract.faults import refused
from tests.contract.worlds import AWS_WORLDS, AwsWorld, MemoryWorld
from tests.memory import ManualClock, MemoryCatalogue

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from orbweaver.adapters.aws.clients import Aws
    from orbweaver.exporting.run_state import Catalogue
    from tests.contract.worlds import Opener

ROOT = "s3://bucket/exports/"
BOOKS = item_table(
    "books.example-1",
    "books",
    (
        Column(name="title"),
        Column(name="price", type=Type.DECIMAL),
        Column(name="tags", many=True),
    ),
)
NAME = "items_books_example_1_books"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """Catalogue with its visible state: name to owner and columns."""

    catalogue: Catalogue
    seen: Callable[[], Awaitable[dict[str, tuple[str, list[dict[str, str]]]]]]


@pytest.fixture(params=["memory", *AWS_WORLDS])
async def shelf(request: pytest.FixtureRequest, opener: Opener) -> AsyncIterator[Shelf]:
    async with opener(request.param) as world, shelved(world) as found:
        yield found


@asynccontextmanager
async def shelved(world: object) -> AsyncIterator[Shelf]:
    if isinstance(world, MemoryWorld):
        held = world.state.catalogue

        async def look() -> dict[str, tuple[str, list[dict[str, str]]]]:
            return {name: (table.name, glue_columns(table.columns)) for name, table in held.items()}

        yield Shelf(catalogue=MemoryCatalogue(world.state), seen=look)
        return
    assert isinstance(world, AwsWorld)
    database = f"db_{world.name}"
    client = await world.aws.client("glue")
    await client.create_database(DatabaseInput={"Name": database})

    async def ask() -> dict[str, tuple[str, list[dict[str, str]]]]:
        answer = await client.get_tables(DatabaseName=database)
        return {
            table["Name"]: (table["Parameters"][OWNER], _plain(table["StorageDescriptor"]))
            for table in answer["TableList"]
        }

    yield Shelf(catalogue=GlueCatalogue(world.aws, database=database, root=ROOT), seen=ask)


def _plain(storage: dict[str, Any]) -> list[dict[str, str]]:
    return [{"Name": one["Name"], "Type": one["Type"]} for one in storage["Columns"]]


async def test_registered_table_is_listed_with_its_columns(shelf: Shelf) -> None:
    for _ in range(2):
        await shelf.catalogue.register(BOOKS)
        assert await shelf.seen() == {NAME: (BOOKS.name, glue_columns(BOOKS.columns))}


async def test_remove_takes_tables_of_one_crawl_only(shelf: Shelf) -> None:
    longer = item_table("books.example-1-more", "books", BOOKS.columns[4:])
    for table in (BOOKS, item_table("books.example-1", "shelves", ()), longer, PAGES):
        await shelf.catalogue.register(table)
    assert await shelf.catalogue.remove("items/books.example-1/") == 2
    assert await shelf.catalogue.remove("items/books.example-1/") == 0
    assert {owner for owner, _ in (await shelf.seen()).values()} == {longer.name, "pages"}


async def test_columns_no_longer_extracted_stay(shelf: Shelf) -> None:
    await shelf.catalogue.register(BOOKS)
    changed = (Column(name="title"), Column(name="stock", type=Type.INTEGER))
    await shelf.catalogue.register(item_table("books.example-1", "books", changed))
    [(_, columns)] = (await shelf.seen()).values()
    assert columns == [*glue_columns(BOOKS.columns), {"Name": "stock", "Type": "bigint"}]


async def test_column_takes_its_last_type(shelf: Shelf) -> None:
    await shelf.catalogue.register(BOOKS)
    again = (Column(name="price", type=Type.NUMBER),)
    await shelf.catalogue.register(item_table("books.example-1", "books", again))
    [(_, columns)] = (await shelf.seen()).values()
    assert {"Name": "price", "Type": "double"} in columns
    assert len(columns) == len(BOOKS.columns)


async def test_second_table_of_same_name_gets_hash_suffix(shelf: Shelf) -> None:
    other = item_table("books_example.1", "books", ())
    for table in (BOOKS, other, BOOKS, other):
        await shelf.catalogue.register(table)
    seen = {name: owner for name, (owner, _) in (await shelf.seen()).items()}
    assert seen == {NAME: BOOKS.name, second_name(other.name): other.name}


class Contended:
    """Clients whose Glue refuses the first calls of an operation, as with a concurrent writer."""

    def __init__(self, clients: Aws, operation: str, refusals: int) -> None:
        self._clients = clients
        self._operation = operation
        self.refusals = refusals

    async def client(self, service: str) -> Any:
        """Return the service itself, with one operation that conflicts."""
        found = await self._clients.client(service)
        whole = getattr(found, self._operation)

        async def contended(**parameters: Any) -> Any:
            if self.refusals:
                self.refusals -= 1
                raise refused("ConcurrentModificationException")
            return await whole(**parameters)

        names = ("get_table", "create_table", "update_table")
        known = {name: getattr(found, name) for name in names}
        return SimpleNamespace(**{**known, self._operation: contended})


@pytest.mark.parametrize("kind", AWS_WORLDS)
@pytest.mark.parametrize("operation", ["create_table", "update_table"])
async def test_glue_conflict_is_retried(kind: str, operation: str, opener: Opener) -> None:
    async with opener(kind) as world, shelved(world) as shelf:
        assert isinstance(world, AwsWorld)
        if operation == "update_table":
            await shelf.catalogue.register(item_table("books.example-1", "books", ()))
        clients = Contended(world.aws, operation, refusals=2)
        catalogue = GlueCatalogue(cast("Aws", clients), database=f"db_{world.name}", root=ROOT)
        patience = RetryPolicy(clock=ManualClock(0), random=Random(1))
        await patience.call(lambda: catalogue.register(BOOKS))
        assert clients.refusals == 0
        assert await shelf.seen() == {NAME: (BOOKS.name, glue_columns(BOOKS.columns))}


@pytest.mark.parametrize("kind", AWS_WORLDS)
async def test_table_projects_days_to_folders(kind: str, opener: Opener) -> None:
    async with opener(kind) as world, shelved(world) as shelf:
        assert isinstance(world, AwsWorld)
        await shelf.catalogue.register(PAGES)
        client = await world.aws.client("glue")
        answer = await client.get_table(DatabaseName=f"db_{world.name}", Name="pages")
        table = answer["Table"]
        assert table["StorageDescriptor"]["Location"] == f"{ROOT}pages/parquet/"
        assert [key["Name"] for key in table["PartitionKeys"]] == ["dt"]
        said = table["Parameters"]
        assert said["storage.location.template"] == f"{ROOT}pages/parquet/dt=${{dt}}/"
        assert said["projection.enabled"] == "true"
        assert said["projection.dt.range"].endswith(",NOW")


@pytest.mark.parametrize("kind", AWS_WORLDS)
async def test_missing_database_registers_nothing(kind: str, opener: Opener) -> None:
    async with opener(kind) as world:
        assert isinstance(world, AwsWorld)
        catalogue = GlueCatalogue(world.aws, database="nowhere", root=ROOT)
        with pytest.raises(Permanent):
            await catalogue.register(BOOKS)
