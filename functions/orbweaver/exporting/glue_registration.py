"""Registration of item tables for queries, once an export has any.

The other tables are part of a deployment. What cannot be registered is logged, and registered with
a later export: an export that stands is announced all the same.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from orbweaver.exporting.glue_schema import FORMAT
from orbweaver.exporting.manifest import Manifest
from orbweaver.model.columns import ITEMS, Table
from orbweaver.model.errors import PortError

if TYPE_CHECKING:
    from orbweaver.exporting.ports import Catalogue

    Tried = Callable[[Callable[[], Awaitable[None]]], Awaitable[None]]

LOGGER = logging.getLogger(__name__)


async def register_items(manifest: Manifest, catalogue: Catalogue, tried: Tried) -> None:
    """Register the tables of items that an export has files of for queries.

    `tried` is how a port is called: with the exporter's patience.
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
