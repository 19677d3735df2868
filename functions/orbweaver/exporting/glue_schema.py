"""Define the SQL schema of exports: names and types of tables and columns, for all engines.

Columns of a table are only added and never removed, because files of earlier days contain them.
Source: docs.aws.amazon.com/athena/latest/ug/partition-projection-supported-types.html,
…/tables-location-format.html (all files below a location are read), …/data-types.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from orbweaver.model.columns import (
    CHANGES,
    INVALID_ITEMS,
    LINKS,
    PAGES,
    TEXTS,
    Column,
    Table,
    Type,
)

if TYPE_CHECKING:
    from pathlib import Path

# Tables that every deployment has.
TABLES = (PAGES, TEXTS, LINKS, INVALID_ITEMS, CHANGES)
# Column of each table: the day of the export with the row. It is a text, so that `dt =
# '2026-11-21'` has the same meaning in all engines.
DAY = "dt"
FORMAT = "parquet"
ITEMS = "items_"
# A day before the first possible export.
FIRST_DAY = "2026-01-01"
# Characters that at least one engine does not accept in an unquoted name.
UNSAFE = re.compile("[^a-z0-9_]")
HASH_CHARS = 8
# Parameter of a Glue table that contains the name of the Orbweaver table.
OWNER = "orbweaver.table"

HIVE: Mapping[Type, str] = {
    Type.STRING: "string",
    Type.INTEGER: "bigint",
    Type.NUMBER: "double",
    Type.DECIMAL: "decimal(18,4)",
    Type.BOOLEAN: "boolean",
    Type.DATE: "date",
    Type.MOMENT: "timestamp",
}
INPUT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"
OUTPUT = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
SERDE = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"


# --- names --------------------------------------------------------------------------------------


def sql_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def sql_text(value: str | Path) -> str:
    return "'" + str(value).replace("'", "''") + "'"


def query_name(table: str) -> str:
    return UNSAFE.sub("_", table.lower())


def second_name(table: str) -> str:
    return f"{query_name(table)}_{sha256(table.encode()).hexdigest()[:HASH_CHARS]}"


def query_names(tables: Iterable[str]) -> dict[str, str]:
    """Return unique query names of tables, as name to table.

    The item table `items/<name>/<rule>` is called `items_<name>_<rule>`. If two tables get the same
    name, the second has a hash suffix.
    """
    names: dict[str, str] = {}
    # Sorted, so that always the same table of two with equal names gets the hash.
    for table in sorted(set(tables)):
        name = query_name(table)
        names[second_name(table) if name in names else name] = table
    return names


def database_name(stack: str) -> str:
    return UNSAFE.sub("_", stack.lower())


# --- tables for AWS Glue --------------------------------------------------------------------------


def hive_type(column: Column) -> str:
    name = HIVE[column.type]
    return f"array<{name}>" if column.many else name


def glue_columns(columns: Iterable[Column]) -> list[dict[str, str]]:
    return [{"Name": column.name, "Type": hive_type(column)} for column in columns]


def glue_table(name: str, table: Table, root: str) -> dict[str, Any]:
    """Return a Glue table. `name` is its name in queries, `root` is the exports' URL, `s3://…/`."""
    folder = f"{root}{table.name}/{FORMAT}/"
    return {
        "Name": name,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {
            "EXTERNAL": "TRUE",
            "classification": FORMAT,
            OWNER: table.name,
            # Days are not registered but projected: Athena derives their folders from the query.
            # Athena lists each day that the query allows, so a query should name its days. Athena
            # also reads the folders of crawls below a day and ignores their names: `crawl` is a
            # column of the files.
            "projection.enabled": "true",
            f"projection.{DAY}.type": "date",
            f"projection.{DAY}.format": "yyyy-MM-dd",
            f"projection.{DAY}.range": f"{FIRST_DAY},NOW",
            f"projection.{DAY}.interval": "1",
            f"projection.{DAY}.interval.unit": "DAYS",
            "storage.location.template": f"{folder}{DAY}=${{{DAY}}}/",
        },
        "PartitionKeys": [{"Name": DAY, "Type": "string"}],
        "StorageDescriptor": {
            "Location": folder,
            "Columns": glue_columns(table.columns),
            "InputFormat": INPUT,
            "OutputFormat": OUTPUT,
            "SerdeInfo": {
                "SerializationLibrary": SERDE,
                "Parameters": {"serialization.format": "1"},
            },
        },
    }


def grown(standing: Mapping[str, Any], wanted: dict[str, Any]) -> dict[str, Any] | None:
    """Return an existing table with the columns that the table `wanted` adds.

    Returns None if nothing changes.
    """
    storage = standing.get("StorageDescriptor", {})
    types = {one["Name"]: one["Type"] for one in storage.get("Columns", ())}
    more = {one["Name"]: one["Type"] for one in wanted["StorageDescriptor"]["Columns"]}
    columns = [{"Name": name, "Type": kind} for name, kind in {**types, **more}.items()]
    if (types | more, _own_parts(standing)) == (types, _own_parts(wanted)):
        return None
    return {**wanted, "StorageDescriptor": {**wanted["StorageDescriptor"], "Columns": columns}}


def _own_parts(table: Mapping[str, Any]) -> tuple[Any, ...]:
    storage, parameters = table.get("StorageDescriptor", {}), table.get("Parameters", {})
    ours = {
        name: value
        for name, value in parameters.items()
        if name == OWNER or name.startswith(("projection.", "storage."))
    }
    return storage.get("Location"), storage.get("InputFormat"), ours
