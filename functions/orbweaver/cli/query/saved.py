"""Saved queries, which are the same in `orbweaver query`, in Athena and in the documentation.

They use only syntax that DuckDB and Athena (Trino) share. The first line of a file is its title.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from orbweaver.model.value import value_class

FOLDER = "queries"
SUFFIX = ".sql"
COMMENT = "-- "


@value_class
class Saved:
    """A saved query: name, title and SQL."""

    name: str
    title: str
    sql: str


@cache
def saved() -> Mapping[str, Saved]:
    return {
        name: Saved(name=name, title=sql.partition("\n")[0].removeprefix(COMMENT), sql=sql)
        for name, sql in sql_files(__package__ or "", FOLDER)
    }


def sql_files(package: str, folder: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of each SQL file in a folder of a package, in alphabetical order."""
    for file in sorted(files(package).joinpath(folder).iterdir(), key=lambda it: it.name):
        if file.name.endswith(SUFFIX):
            yield file.name.removesuffix(SUFFIX), file.read_text(encoding="utf-8").strip()
