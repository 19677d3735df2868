"""The SQL schema of exports: names and types of tables and columns, for all engines.

- A table of items, `items/<name>/<rule>`, is called `items_<name>_<rule>`; what no engine takes
  unquoted becomes an underscore. Two that come to one name: the second has a hash behind it.
- Besides its columns each table has `dt`, the day of the export that a row is in: a text, so that
  `dt = '2026-11-21'` means the same to all engines.
- Days are not registered but projected: Athena works their folders out of the query. Each day in
  question costs a listing, so a query should name its days. Folders below that of a day, one for
  each crawl, are read along and mean nothing to it: `crawl` is a column of the files.
- A table's columns only ever become more: files of earlier days have those that they had.

Source: docs.aws.amazon.com/athena/latest/ug/partition-projection-supported-types.html,
…/tables-location-format.html (all files below a location are read), …/data-types.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from orbweaver.model.columns import CHANGES, INVALID_ITEMS, PAGES, TEXTS, Column, Table, Type

# Those that every deployment has.
TABLES = (PAGES, TEXTS, INVALID_ITEMS, CHANGES)
DAY = "dt"
FORMAT = "parquet"
ITEMS = "items_"
# Before the first export that there can be.
FIRST_DAY = "2026-01-01"
UNSAFE = re.compile("[^a-z0-9_]")
HASH_CHARS = 8
# Where a table says which of ours it is.
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


def query_name(table: str) -> str:
    """Name a table as queries do."""
    return UNSAFE.sub("_", table.lower())


def second_name(table: str) -> str:
    """Name a table whose name for queries is another one's."""
    return f"{query_name(table)}_{sha256(table.encode()).hexdigest()[:HASH_CHARS]}"


def query_names(tables: Iterable[str]) -> dict[str, str]:
    """Name tables as queries do, each by its own: name to table; of two the first is not hashed."""
    names: dict[str, str] = {}
    for table in sorted(set(tables)):
        name = query_name(table)
        names[second_name(table) if name in names else name] = table
    return names


def database_name(stack: str) -> str:
    """Name the database of a stack."""
    return UNSAFE.sub("_", stack.lower())


# --- tables, as AWS Glue has them -----------------------------------------------------------------


def hive_type(column: Column) -> str:
    """Name a column's type as Hive does."""
    name = HIVE[column.type]
    return f"array<{name}>" if column.many else name


def glue_columns(columns: Iterable[Column]) -> list[dict[str, str]]:
    """Spell columns."""
    return [{"Name": column.name, "Type": hive_type(column)} for column in columns]


def glue_table(name: str, table: Table, root: str) -> dict[str, Any]:
    """Spell a table by its name for queries; `root` is where exports are: `s3://…/`."""
    folder = f"{root}{table.name}/{FORMAT}/"
    return {
        "Name": name,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {
            "EXTERNAL": "TRUE",
            "classification": FORMAT,
            OWNER: table.name,
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
    """Say what a table that stands is to become; None if it says all of that already.

    Columns that it has and we do not want any more stay: files of earlier days have them.
    """
    storage = standing.get("StorageDescriptor", {})
    types = {one["Name"]: one["Type"] for one in storage.get("Columns", ())}
    more = {one["Name"]: one["Type"] for one in wanted["StorageDescriptor"]["Columns"]}
    columns = [{"Name": name, "Type": kind} for name, kind in {**types, **more}.items()]
    if (types | more, _settled(standing)) == (types, _settled(wanted)):
        return None
    return {**wanted, "StorageDescriptor": {**wanted["StorageDescriptor"], "Columns": columns}}


def _settled(table: Mapping[str, Any]) -> tuple[Any, ...]:
    """What is ours of a table, beside its columns; a catalogue may add to the rest."""
    storage, parameters = table.get("StorageDescriptor", {}), table.get("Parameters", {})
    ours = {
        name: value
        for name, value in parameters.items()
        if name == OWNER or name.startswith(("projection.", "storage."))
    }
    return storage.get("Location"), storage.get("InputFormat"), ours
