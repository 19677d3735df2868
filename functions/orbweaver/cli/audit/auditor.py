"""Run the checks on the tables of a run, and compare the findings with an earlier run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from orbweaver.cli.audit.catalog import Check, Need, script
from orbweaver.cli.audit.judgement import JUDGED, LIMITS, meaning_of
from orbweaver.cli.audit.report import (
    AuditReport,
    CheckResult,
    Finding,
    FindingStatus,
    Unjudged,
)
from orbweaver.cli.audit.selection import AuditedRuns
from orbweaver.cli.query.duckdb import Database
from orbweaver.model.outcome import Reason

SETUP = """
CREATE TEMP MACRO host_of(u) AS regexp_extract(u, '^[a-z]+://([^/?#]+)', 1);
CREATE TEMP MACRO base_of(u) AS regexp_extract(u, '^[^?]*');
CREATE TEMP MACRO linked_from(said, page) AS concat_ws(', ', said, 'linked from ' || page);
CREATE TYPE link_kind AS ENUM (
  'a', 'area', 'canonical', 'redirect', 'refresh', 'hreflang', 'next', 'prev', 'amphtml',
  'alternate', 'img', 'source', 'script', 'stylesheet', 'iframe', 'form', 'media', 'icon');
CREATE TEMP TABLE redirect_map (old VARCHAR, new VARCHAR)
"""
FINDINGS = (
    'CREATE OR REPLACE TEMP TABLE {} ("check" VARCHAR, place BIGINT, url VARCHAR, target VARCHAR,'
    " detail VARCHAR)"
)
# Hashes need less memory than URLs.
_LEFT_OUT = "SELECT count(DISTINCT hash(url)), min(url) FROM left_out"
_NOT_REQUESTED = """
SELECT count(DISTINCT hash(target_url)), min(target_url)
FROM run_link
WHERE kind IN ('img', 'source', 'media', 'icon', 'script', 'stylesheet', 'iframe')
  AND target_url NOT IN (SELECT url FROM page)
"""
_INCOMPLETE = """
SELECT 1 FROM page WHERE reason IN (SELECT unnest(?)) OR contains(cut, 'link')
UNION ALL (SELECT 1 FROM left_out LIMIT 1)
LIMIT 1
"""
_UNMAPPED = """
SELECT count(*), min(old) FROM redirect_map LEFT JOIN page ON old = url WHERE url IS NULL OR ours
"""
Row: TypeAlias = tuple[Any, ...]


@dataclass(kw_only=True)
class Auditor:
    """Checks on the tables of one open database."""

    database: Database
    checks: Sequence[Check]
    # Names of tables with rows: `links`, `texts`.
    tables: frozenset[str]
    redirects: Mapping[str, str] = field(default_factory=dict)
    # Receives the number of finished checks and of all checks, of both runs.
    progress: Callable[[int, int], None]
    _finished: int = field(default=0, init=False)
    _all: int = field(default=0, init=False)
    # Needs that the prepared run does not meet, and why.
    _unmet: dict[Need, str] = field(default_factory=dict, init=False)

    def audit(self, runs: AuditedRuns, earlier: AuditedRuns | None, limit: int) -> AuditReport:
        """Audit a run. `limit` is the maximum number of findings per check and status."""
        self._all = len(self.checks) * (1 if earlier is None else 2)
        self._do(SETUP)
        if self.redirects:
            columns = [[*self.redirects], [*self.redirects.values()]]
            self._do("INSERT INTO redirect_map SELECT unnest(?), unnest(?)", columns)
        self._do(FINDINGS.format("earlier"))
        before = {} if earlier is None else self._run_checks(earlier, "earlier")
        missing = self._run_checks(runs, "finding")
        for name, value in (
            ("compared", earlier is not None),
            ("complete", Need.COMPLETE not in self._unmet),
            ("checks", [one.name for one in self.checks if missing[one.name] is None]),
            ("earlier_checks", [name for name, why in before.items() if why is None]),
        ):
            self._set(name, value)
        self._do(script("comparison"))
        counts, findings = self._counts(), self._findings(limit)
        return AuditReport(
            crawl=runs.id,
            since=None if earlier is None else earlier.id,
            earlier_runs=runs.earlier,
            urls_before=self._number("SELECT count(*) FROM page WHERE crawl <> ?", [runs.id]),
            pages=self._number("SELECT count(*) FROM page WHERE readable"),
            outcomes=dict(self._do("SELECT outcome, count(*) FROM page GROUP BY 1 ORDER BY 1")),
            results=tuple(
                CheckResult(
                    check=one,
                    why_not=missing[one.name],
                    counts=counts[one.name],
                    findings=tuple(findings[one.name]),
                )
                for one in self.checks
                if one.without is None or missing[one.name] is None
            ),
            unjudged=tuple(self._unjudged()),
        )

    def _run_checks(self, runs: AuditedRuns, table: str) -> dict[str, str | None]:
        """Write the findings into a table. Return why checks could not run, by name."""
        self._prepare(runs)
        self._do(FINDINGS.format(table))
        why = {}
        for check in self.checks:
            unmet = [self._unmet[need] for need in Need if need in check.needs & {*self._unmet}]
            if check.without is not None and check.without not in self._unmet:
                unmet = [f"the crawl has {check.without}"]
            why[check.name] = unmet[0] if unmet else None
            if not unmet:
                numbered = f"SELECT ?, row_number() OVER (), url, target, detail FROM ({check.sql})"  # noqa: S608 - our own file
                self._do(f"INSERT INTO {table} {numbered}", [check.name])
            self._finished += 1
            self.progress(self._finished, self._all)
        return why

    def _prepare(self, runs: AuditedRuns) -> None:
        """Create the tables that checks read, and find out which needs are not met."""
        self._set("runs", list(runs.ids))
        self._set("judged", sorted(JUDGED))
        self._do(script("pages"))
        self._unmet = {}
        if not self._has_rows("links"):
            said = "the crawl kept no links: crawl again with --links --window 0s"
            self._unmet |= dict.fromkeys((Need.LINKS, Need.SITEMAPS, Need.COMPLETE), said)
        else:
            self._do(script("links"))
            self._unmet |= self._unmet_by_links()
        if not self._has_rows("texts"):
            self._unmet[Need.TEXTS] = "the crawl kept no texts: crawl again with --text --window 0s"
        else:
            self._do(script("texts"))
        if not self.redirects:
            self._unmet[Need.REDIRECT_MAP] = "give --redirect-map FILE"

    def _unmet_by_links(self) -> dict[Need, str]:
        unmet = {}
        if not self._number("SELECT count(*) FROM sitemap_entry"):
            unmet[Need.SITEMAPS] = "the crawl read no sitemap"
        elif self._number("SELECT count(*) FROM page WHERE reason = 'sitemap' AND cut IS NOT NULL"):
            unmet[Need.SITEMAPS] = "a sitemap was not read completely"
        if self._do(_INCOMPLETE, [sorted(LIMITS)]):
            unmet[Need.COMPLETE] = "limits or rules of the crawl left out pages or links"
        return unmet

    # --- results --------------------------------------------------------------------------------

    def _counts(self) -> dict[str, dict[FindingStatus, int]]:
        counts: defaultdict[str, dict[FindingStatus, int]] = defaultdict(dict)
        for name, status, number in self._do(
            'SELECT "check", status, count(*) FROM result GROUP BY ALL'
        ):
            counts[name][FindingStatus(status)] = number
        return counts

    def _findings(self, limit: int) -> dict[str, list[Finding]]:
        found: defaultdict[str, list[Finding]] = defaultdict(list)
        statuses = [*FindingStatus]
        rows = self._do(
            'SELECT "check", status, url, target, detail FROM result QUALIFY row_number() OVER'
            ' (PARTITION BY "check", status ORDER BY place) <= ? ORDER BY "check", place',
            [limit],
        )
        for name, status, url, target, detail in sorted(
            rows, key=lambda row: statuses.index(row[1])
        ):
            found[name].append(
                Finding(url=url, target=target, detail=detail, status=FindingStatus(status))
            )
        return found

    def _unjudged(self) -> Iterable[Unjudged]:
        """Yield the URLs that could not be judged, by reason."""
        rows = self._do(
            "SELECT reason, count(*), min(url) FROM page WHERE ours GROUP BY 1 ORDER BY 2 DESC, 1"
        )
        for reason, urls, example in rows:
            yield Unjudged(reason=reason, means=meaning_of(reason), urls=urls, example=example)
        for reason, means, sql in self._further():
            [(urls, example)] = self._do(sql)
            if urls:
                yield Unjudged(reason=reason, means=means, urls=urls, example=example)

    def _further(self) -> Iterable[tuple[str, str, str]]:
        """Yield queries for URLs without a record, and for pages without content."""
        pages = "SELECT count(*), min(url) FROM page WHERE"
        said = "its content comes from scripts: crawl again with --render"
        yield "needs_rendering", said, f"{pages} unrendered"
        said = "read in part, because it was too large or too slow to read"
        yield Reason.COSTLY, said, f"{pages} contains(cut, 'unread=') AND NOT ours"
        if Need.LINKS not in self._unmet:
            said = "found, and not requested because of a limit or a rule of the crawl"
            yield "left_out", said, _LEFT_OUT
            said = "an image, a script, a stylesheet or a frame that the crawl did not request"
            yield "not_requested", said, _NOT_REQUESTED
        said = "an old URL of the redirect map that the crawl did not request: crawl with --seeds"
        yield "redirect_map", said, _UNMAPPED

    # --- SQL ------------------------------------------------------------------------------------

    def _has_rows(self, table: str) -> bool:
        if table not in self.tables:
            return False
        sql = f"SELECT 1 FROM {table} WHERE crawl IN (SELECT unnest(getvariable('runs'))) LIMIT 1"  # noqa: S608 - a constant
        return bool(self._do(sql))

    def _number(self, sql: str, values: Sequence[Any] = ()) -> int:
        return int(self._do(sql, values)[0][0])

    def _set(self, name: str, value: object) -> None:
        self._do(f"SET VARIABLE {name} = ?", [value])

    def _do(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        return list(self.database.execute(sql, values).rows)
