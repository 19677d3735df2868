"""Audit a run of exports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from orbweaver.cli.audit.auditor import Auditor
from orbweaver.cli.audit.catalog import Check
from orbweaver.cli.audit.report import AuditReport
from orbweaver.cli.audit.selection import exported_runs
from orbweaver.cli.query import tables
from orbweaver.cli.query.duckdb import QueryBounds, database
from orbweaver.cli.query.tables import Export, Sheet
from orbweaver.model.value import value_class

# DuckDB needs more memory than this limit, because it does not count all of it.
BOUNDS = QueryBounds(memory="550MB")
TABLES = ("pages", "links", "texts")


@value_class
class ExportAudit:
    """An audit of a run of exports, and its comparison with an earlier run."""

    exports: Sequence[Export]
    # Id of the run, or name of the crawl (its newest run). None: the newest run.
    which: str | None
    # Id of the earlier run, or name of the crawl (its previous run).
    since: str | None
    # Exports whose newest run is the earlier run, instead of `since`.
    before: Sequence[Export] = ()
    checks: Sequence[Check]
    # Maximum number of findings per check and status.
    limit: int
    redirects: Mapping[str, str] = field(default_factory=dict)

    @property
    def sheets(self) -> dict[str, Sheet]:
        """The tables that checks read."""
        found = tables.sheets_of([*self.before, *self.exports])
        return {name: found[name] for name in TABLES if name in found}

    def report(self, folder: Path, progress: Callable[[int, int], None]) -> AuditReport:
        """Run the audit. `folder` is for data that does not fit into memory.

        `progress` receives the number of finished checks and of all checks. Raises UsageError.
        """
        sheets = self.sheets
        with database(sheets, folder, BOUNDS) as opened:
            runs = exported_runs(opened, self.exports)
            found = runs.find(self.which)
            earlier = None
            if self.before:
                earlier = exported_runs(opened, self.before).find(None)
            elif self.since is not None:
                earlier = runs.find(self.since, before=found.id)
            auditor = Auditor(
                database=opened,
                checks=self.checks,
                tables=frozenset(name for name, sheet in sheets.items() if sheet.rows),
                redirects=self.redirects,
                progress=progress,
            )
            return auditor.audit(found, earlier, self.limit)
