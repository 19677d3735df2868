"""`audit`: check the exported pages and links of a crawl, and report what to fix on the site."""

from __future__ import annotations

import csv
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from orbweaver.cli import text
from orbweaver.cli.audit.catalog import Check, checks
from orbweaver.cli.audit.report import AuditReport
from orbweaver.cli.command import command, crawl_argument, option, repeated, stack_options
from orbweaver.cli.context import CliContext
from orbweaver.cli.exit_codes import FAILED, OK, UsageError, WriteError
from orbweaver.cli.query import tables
from orbweaver.cli.query.exported import (
    check_source,
    day_option,
    fetch_tables,
    find_exports,
    from_option,
)
from orbweaver.cli.query.tables import Export
from orbweaver.model.url import canonicalize

# Modules with the function `render`, and the number of findings that they show per check.
FORMATS: Mapping[str, tuple[str, int]] = {
    "text": ("plain", 5),
    "json": ("as_json", 1000),
    "sarif": ("sarif", 1000),
    "junit": ("junit", 100),
    "html": ("html", 100),
}
# A redirect map has a line with an old and a new URL. Its first line can name the columns.
_MAP_COLUMNS, _MAP_HEAD = 2, "old"
BARS = ("error", "warning", "new:error", "new:warning")


def audit(arguments: Namespace, around: CliContext) -> int:
    selected = _selected(arguments.only)
    if arguments.list:
        _list(selected, around)
        return OK
    if arguments.fail_on in BARS[2:] and arguments.since is None:
        raise UsageError(f"--fail-on {arguments.fail_on}: name the earlier run with --since")
    check_source(arguments)
    name, shown = FORMATS[arguments.format]
    render: Callable[[AuditReport], str] = import_module(f"orbweaver.cli.audit.{name}").render
    with TemporaryDirectory(prefix="orbweaver-") as folder:
        report = _audited(arguments, around, selected, Path(folder), arguments.limit or shown)
    write_report(render(report), arguments.out, around)
    if arguments.out is not None or arguments.format != "text":
        around.note(_summary(report))
    return FAILED if arguments.fail_on is not None and report.fails(arguments.fail_on) else OK


def _selected(only: Sequence[str]) -> list[Check]:
    known = checks()
    for name in only:
        if name not in known:
            raise UsageError(f"--only: there is no check {name!r}: see `orbweaver audit --list`")
    return [check for check in known.values() if not only or check.name in only]


def _list(selected: Sequence[Check], around: CliContext) -> None:
    rows = [(one.severity, one.name, one.sentence) for one in selected]
    around.write(*text.table(rows))


def _audited(
    arguments: Namespace, around: CliContext, selected: Sequence[Check], folder: Path, limit: int
) -> AuditReport:
    # Other formats and --list need no DuckDB.
    from orbweaver.cli.audit.exported import ExportAudit

    map_file = arguments.redirect_map
    redirects = {} if map_file is None else redirects_in(around.folder / map_file)
    exports, before = _exports(arguments, around, folder / "files")
    task = ExportAudit(
        exports=exports,
        which=arguments.which,
        since=arguments.since,
        before=before,
        checks=selected,
        limit=limit,
        redirects=redirects,
    )
    fetch_tables(arguments, around, task.sheets)
    return task.report(folder / "spill", lambda _done, _of: None)


def _exports(
    arguments: Namespace, around: CliContext, folder: Path
) -> tuple[list[Export], list[Export]]:
    """Return the exports, and the earlier exports if --since names a folder."""
    found = find_exports(arguments, around, folder)
    since = arguments.since
    if arguments.target or since is None or not (around.folder / since / "manifests").is_dir():
        return found, []
    return found, tables.exports_in(around.folder / since, Path(since), None)


def write_report(body: str, out: Path | None, around: CliContext) -> None:
    """Write a report to a file, or to the standard output. Raises WriteError."""
    if out is None:
        around.write(body)
        return
    path = around.folder / out
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body + "\n", encoding="utf-8")
    except OSError as error:
        raise WriteError(f"{out}: {error.strerror}") from error
    around.note(f"written to {out}")


def _summary(report: AuditReport) -> str:
    found = [text.plural(number, kind) for kind, number in report.by_severity().items()]
    skipped = f"{text.plural(len(report.not_run), 'check')} did not run"
    urls = sum(one.urls for one in report.unjudged)
    return ", ".join([*found, skipped, f"{text.plural(urls, 'URL')} could not be judged"])


def redirects_in(path: Path) -> dict[str, str]:
    """Return the canonical new URL of each old URL. Raises UsageError for an invalid line."""
    try:
        rows = [*csv.reader(path.read_text(encoding="utf-8-sig").splitlines())]
    except (OSError, ValueError, csv.Error) as error:
        raise UsageError(f"--redirect-map: {path}: {error}") from error
    found = {}
    for line, row in enumerate(rows, start=1):
        cells = [cell.strip() for cell in row]
        if not any(cells) or (line == 1 and cells[0].lower() == _MAP_HEAD):
            continue
        if len(cells) != _MAP_COLUMNS:
            raise UsageError(f"--redirect-map: {path}:{line}: write `old URL,new URL`")
        try:
            old, new = map(canonicalize, cells)
        except ValueError as error:
            raise UsageError(f"--redirect-map: {path}:{line}: {error}") from error
        found[old] = new
    if not found:
        raise UsageError(f"--redirect-map: {path} has no URLs")
    return found


COMMANDS = (
    command(
        "audit",
        audit,
        crawl_argument("id or name of an exported crawl (default: the newest)", nargs="?"),
        from_option,
        day_option,
        option(
            "--since RUN",
            "compare with an earlier run: its id, the name of the crawl, or a folder with exports",
        ),
        option(f"--fail-on {'|'.join(BARS)}", "exit code 1 if there is such a finding"),
        option(f"--format {'|'.join(FORMATS)}", "output format (text)", default="text"),
        option("--out FILE", "write the report to a file"),
        repeated("--only CHECK", "run only this check; may be repeated"),
        option("--list", "list the checks"),
        option("--limit N", "maximum number of findings that the report shows per check"),
        option("--redirect-map FILE", "CSV file with an old and a new URL per line"),
        parents=(stack_options,),
    ),
)
