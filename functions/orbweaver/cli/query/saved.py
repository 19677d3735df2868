"""Saved queries, which are the same in `orbweaver query`, in Athena and in the documentation.

They use only syntax that DuckDB and Athena (Trino) share. The first line of a file is its title.
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
    """A saved query: name, title and SQL."""

    name: str
    title: str
    sql: str


@cache
def saved() -> Mapping[str, Saved]:
    found = {}
    for file in sorted(files(__package__ or "").joinpath(FOLDER).iterdir(), key=lambda it: it.name):
        if file.name.endswith(SUFFIX):
            name = file.name.removesuffix(SUFFIX)
            sql = file.read_text(encoding="utf-8").strip()
            title = sql.partition("\n")[0].removeprefix(COMMENT)
            found[name] = Saved(name=name, title=title, sql=sql)
    return found
