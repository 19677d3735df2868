"""Select the runs to audit from the tables of exports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from orbweaver.cli.exit_codes import UsageError
from orbweaver.cli.query.duckdb import Database
from orbweaver.cli.query.tables import Export
from orbweaver.model.value import value_class

# Maximum number of runs in a message.
SHOWN = 5
# Runs in the order of their first request. A run without a first page, and a run of `--refetch` or
# `retry`, continue an earlier one.
_RUNS = """
SELECT crawl,
       bool_or(depth = 0 AND outcome IN ('fetched', 'unchanged', 'redirected'))
         AND NOT regexp_matches(crawl, '-[0-9]+-retry[0-9]+$') AS whole
FROM pages
GROUP BY crawl
ORDER BY min(fetched_at), crawl
"""


@value_class
class AuditedRuns:
    """A run, and the earlier runs of its name that it continues.

    `earlier` are all earlier runs of its name, newest first.
    """

    id: str
    ids: tuple[str, ...]
    earlier: tuple[str, ...] = ()


@value_class
class ExportedRuns:
    """The runs of exports: their ids, oldest first, whether they are whole, and their names."""

    whole: Mapping[str, bool]
    names: Mapping[str, str]

    def find(self, word: str | None, before: str | None = None) -> AuditedRuns:
        """Find a run by its id, or the newest run of a name, or the newest run.

        `before` is a later run. Raises UsageError if there is none.
        """
        runs = [*self.whole]
        runs = runs if before is None else runs[: runs.index(before)]
        found = [one for one in runs if word in (None, one, self.names.get(one))]
        if not found:
            earlier = "" if before is None else f" before {before}"
            there = ", ".join(runs[::-1][:SHOWN]) or "none"
            raise UsageError(
                f"the exports contain no pages of {word or 'a crawl'}{earlier}: runs: {there}"
            )
        newest = found[-1]
        older = [*self.whole][: [*self.whole].index(newest)]
        same = [one for one in older[::-1] if self.names.get(one) == self.names.get(newest)]
        ids = [newest]
        for earlier in same:
            if self.whole[ids[-1]]:
                break
            ids.append(earlier)
        return AuditedRuns(id=newest, ids=tuple(ids), earlier=tuple(same))


def exported_runs(database: Database, exports: Sequence[Export]) -> ExportedRuns:
    """Return the runs of some of the exports whose tables the database contains."""
    names = {
        crawl: sums.name for export in exports for crawl, sums in export.manifest.crawls.items()
    }
    rows = database.execute(_RUNS).rows
    whole = {crawl: bool(is_whole) for crawl, is_whole in rows if crawl in names}
    return ExportedRuns(whole=whole, names=names)


def of_same_name(exports: Sequence[Export], crawl: str) -> list[Export]:
    """Return the exports of all runs of a run's name, without the files of other runs.

    If the exports do not contain the run, the result is empty.
    """
    names = {one: sums.name for each in exports for one, sums in each.manifest.crawls.items()}
    runs = {one for one, name in names.items() if crawl in names and name == names[crawl]}
    found = []
    for one in exports:
        if not runs.isdisjoint(one.manifest.crawls):
            files = tuple(file for file in one.manifest.files if file.crawl in runs)
            found.append(replace(one, manifest=replace(one.manifest, files=files)))
    return found
