"""The catalogue of tables in memory."""

from __future__ import annotations

from dataclasses import replace

from orbweaver.exporting.glue_schema import query_name, second_name
from orbweaver.model.columns import Table
from tests.memory.world import Gated


class MemoryCatalogue(Gated):
    """Tables by their names for queries."""

    async def register(self, table: Table) -> None:
        def put() -> None:
            held = self._world.catalogue
            name = query_name(table.name)
            if name in held and held[name].name != table.name:
                name = second_name(table.name)
            former = held[name].columns if name in held else ()
            columns = {column.name: column for column in (*former, *table.columns)}
            held[name] = replace(table, columns=tuple(columns.values()))

        await self._do("catalogue.register", put)

    async def remove(self, folder: str) -> int:
        def drop() -> int:
            held = self._world.catalogue
            gone = [name for name, table in held.items() if table.name.startswith(folder)]
            for name in gone:
                del held[name]
            return len(gone)

        return await self._do("catalogue.remove", drop)
