"""Saved queries: the same in `orbweaver query`, in Athena and in the documentation.

They keep to what DuckDB and Athena (Trino) both read alike. A file's first line says what is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

FOLDER = "queries"
SUFFIX = ".sql"
COMMENT = "-- "


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A query by its name, and what it asks."""

    name: str
    title: str
    sql: str


@cache
def saved() -> Mapping[str, Saved]:
    """Read all of them, by name."""
    found = {}
    for file in sorted(files(__package__ or "").joinpath(FOLDER).iterdir(), key=lambda it: it.name):
        if file.name.endswith(SUFFIX):
            name = file.name.removesuffix(SUFFIX)
            sql = file.read_text(encoding="utf-8").strip()
            title = sql.partition("\n")[0].removeprefix(COMMENT)
            found[name] = Saved(name=name, title=title, sql=sql)
    return found
