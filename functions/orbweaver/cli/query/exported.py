"""Options that name exports, and the exports and tables that they name."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from orbweaver.cli.command import option
from orbweaver.cli.context import CliContext
from orbweaver.cli.exit_codes import UsageError
from orbweaver.cli.query import tables
from orbweaver.cli.query.tables import Export, Sheet
from orbweaver.cli.session import chosen

OUT = Path("out")
from_option = option(
    "--from DIR", f"folder with exports, or with folders of exports ({OUT})", dest="source"
)
day_option = option("--day YYYY-MM-DD", "only this day")


def check_source(arguments: Namespace) -> None:
    """Raise UsageError if the options name both a folder and a stack."""
    if arguments.target and arguments.source:
        raise UsageError("--from: a folder is no stack: omit --target")


def find_exports(arguments: Namespace, around: CliContext, folder: Path) -> list[Export]:
    """Return the exports in a folder (--from), or of a stack (--target).

    `folder` is for fetched files of a stack.
    """
    if not arguments.target:
        source = arguments.source or OUT
        return tables.exports_in(around.folder / source, source, arguments.day)

    async def listed() -> list[Export]:
        async with chosen(arguments, around) as session:
            return await tables.exports_of(session.ports.files, folder, arguments.day)

    return asyncio.run(listed())


def fetch_tables(arguments: Namespace, around: CliContext, sheets: Mapping[str, Sheet]) -> None:
    """Fetch the files of a stack's tables. Files of a folder need no fetch."""
    if not arguments.target:
        return

    async def fetch() -> None:
        async with chosen(arguments, around) as session:
            await tables.fetch(session.ports.files, sheets.values(), around.note)

    asyncio.run(fetch())
