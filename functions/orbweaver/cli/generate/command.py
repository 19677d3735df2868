"""`generate`: write sitemap.xml or llms.txt from the exported pages of a crawl."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from orbweaver.cli import option_types, text
from orbweaver.cli.command import (
    STACK_JSON,
    actions,
    answer,
    combined_options,
    command,
    crawl_argument,
    option,
)
from orbweaver.cli.context import CliContext
from orbweaver.cli.exit_codes import FAILED, OK, UsageError, WriteError
from orbweaver.cli.query import tables
from orbweaver.cli.query.duckdb import QueryBounds, database
from orbweaver.cli.query.exported import (
    check_source,
    day_option,
    fetch_tables,
    find_exports,
    from_option,
)
from orbweaver.model.columns import PAGES
from orbweaver.model.url import canonicalize

if TYPE_CHECKING:
    from orbweaver.cli.generate.listing import PageListing, Unlisted

# DuckDB needs more memory than this limit, because it does not count all of it.
BOUNDS = QueryBounds(memory="400MB")
LLMS_PAGES_MAX = 1_000


def generate(arguments: Namespace, around: CliContext) -> int:
    check_source(arguments)
    base = _base(arguments.base)
    path = around.folder / arguments.out
    with _listing(arguments, around, base) as listing, _writing(arguments.out, path):
        if arguments.action == "sitemap":
            return _sitemap(listing, path, arguments, around)
        return _llms_txt(listing, path, arguments, around)


def _sitemap(listing: PageListing, path: Path, arguments: Namespace, around: CliContext) -> int:
    from orbweaver.cli.generate.sitemap import write_sitemap

    entries = listing.entries(dated=not arguments.no_lastmod)
    files = write_sitemap(entries, path, listing.base)
    urls, dated = sum(file.urls for file in files), sum(file.dated for file in files)
    said = [
        f"{arguments.out.with_name(file.path.name)}: "
        f"{text.plural(file.urls, 'URL') if file.urls else 'index'}, {text.size(file.bytes)}"
        for file in files
    ]
    said += [f"{text.plural(dated, 'URL')} with lastmod"] * bool(files)
    shown = {"urls": urls, "dated": dated}
    paths = [arguments.out.with_name(file.path.name) for file in files]
    return _report(arguments, around, paths, said, shown, listing.left_out())


def _llms_txt(listing: PageListing, path: Path, arguments: Namespace, around: CliContext) -> int:
    from orbweaver.cli.generate.listing import Unlisted
    from orbweaver.cli.generate.llms_txt import llms_txt

    number = 0

    def counted() -> Iterator[str]:
        nonlocal number
        for line in llms_txt(listing.first, listing.nearest(arguments.limit)):
            number += line.startswith("- ")
            yield line

    part = path.with_name(f".{path.name}.part")
    with part.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in counted())
    part.replace(path)
    left_out = dict(listing.left_out())
    if over := listing.count() - number:
        left_out[Unlisted.OVER_LIMIT] = over
    said = [f"{arguments.out}: {text.plural(number, 'page')}, {text.size(path.stat().st_size)}"]
    return _report(arguments, around, [arguments.out], said, {"urls": number}, left_out)


def _report(
    arguments: Namespace,
    around: CliContext,
    paths: Iterable[Path],
    said: Iterable[str],
    counts: Mapping[str, int],
    left_out: Mapping[Unlisted, int],
) -> int:
    files = [str(path) for path in paths]
    body = {"type": "result", "files": files, **counts, "left_out": dict(left_out)}
    rows = [(f"{number:,}", reason, reason.means) for reason, number in left_out.items()]
    lines = [*said, *["left out"] * bool(rows), *text.table(rows, right=[0], indent=2)]
    answer(arguments, around, body, *lines)
    if not files:
        around.note("no file is written: no page is left to list")
    return OK if files else FAILED


def _base(given: str | None) -> str | None:
    """Return the canonical URL of --base. Raises UsageError if it is no folder."""
    if given is None:
        return None
    try:
        base = canonicalize(given)
    except ValueError as error:
        raise UsageError(f"--base: {error}") from error
    if not base.endswith("/"):
        raise UsageError(f"--base: {base} is no folder: end it with /")
    return base


@contextmanager
def _listing(arguments: Namespace, around: CliContext, base: str | None) -> Iterator[PageListing]:
    # Other commands and --help need no DuckDB.
    from orbweaver.cli.audit.selection import exported_runs
    from orbweaver.cli.generate.listing import PageListing

    with TemporaryDirectory(prefix="orbweaver-") as temporary:
        folder = Path(temporary)
        exports = find_exports(arguments, around, folder / "files")
        sheets = {PAGES.name: tables.sheets_of(exports)[PAGES.name]}
        fetch_tables(arguments, around, sheets)
        with database(sheets, folder / "spill", BOUNDS) as opened:
            runs = exported_runs(opened, exports).find(arguments.which)
            yield PageListing(opened, runs, base)


@contextmanager
def _writing(out: Path, path: Path) -> Iterator[None]:
    """Create the folder of the file. Convert errors of the file system to WriteError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise WriteError(f"{out}: {error.strerror}") from error


_SHARED = combined_options(
    crawl_argument("id or name of an exported crawl (default: the newest)", nargs="?"),
    from_option,
    day_option,
    option(
        "--base URL",
        "folder of the site that will serve the file; pages elsewhere are left out"
        " (default: the root of the first page's host)",
    ),
)
COMMANDS = (
    command(
        "generate",
        generate,
        actions(
            STACK_JSON,
            **{
                "sitemap": (
                    "write a sitemap, with an index if it needs several files",
                    combined_options(
                        _SHARED,
                        option(
                            "--out FILE",
                            "file to write (sitemap.xml); .gz at its end compresses it",
                            default=Path("sitemap.xml"),
                        ),
                        option("--no-lastmod", "write no dates of modification"),
                    ),
                ),
                "llms-txt": (
                    "write llms.txt: the pages nearest to the first page, by section",
                    combined_options(
                        _SHARED,
                        option("--out FILE", "file to write (llms.txt)", default=Path("llms.txt")),
                        option(
                            "--limit N",
                            f"maximum number of pages ({LLMS_PAGES_MAX:,})",
                            default=LLMS_PAGES_MAX,
                            type=option_types.positive,
                        ),
                    ),
                ),
            },
        ),
        parents=(),
    ),
)
