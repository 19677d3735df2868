"""Results of an audit, as all formats show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from orbweaver.cli.audit.catalog import Check, Severity
from orbweaver.model.value import value_class


class FindingStatus(StrEnum):
    """Status of a finding. Without an earlier run, each finding is `PRESENT`.

    `UNCOMPARED`: its check could not run on the earlier run. `UNJUDGED`: the earlier run has the
    finding, and this run could not judge the URL.
    """

    NEW = "new"
    REMAINING = "remaining"
    PRESENT = "present"
    UNCOMPARED = "uncompared"
    FIXED = "fixed"
    UNJUDGED = "unjudged"


# These findings are faults of the audited run.
FAULTS = (
    FindingStatus.NEW,
    FindingStatus.REMAINING,
    FindingStatus.PRESENT,
    FindingStatus.UNCOMPARED,
)


@value_class
class Finding:
    """A fault. `url` is the page to fix, `target` another URL that is involved.

    `line` is set for a page that is a file. Then `url` is its path.
    """

    url: str
    target: str | None
    detail: str | None
    status: FindingStatus
    line: int | None = None


@value_class
class CheckResult:
    """Result of a check: numbers of findings by status, and the first findings.

    `why_not` explains why the check did not run.
    """

    check: Check
    why_not: str | None = None
    counts: Mapping[FindingStatus, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    @property
    def faults(self) -> int:
        return sum(self.counts.get(status, 0) for status in FAULTS)


@value_class
class Unjudged:
    """URLs that could not be judged for a reason, and one of them."""

    reason: str
    means: str
    urls: int
    example: str | None


@value_class
class AuditReport:
    """An audit of a crawl. `since` is the earlier run, `outcomes` counts the URLs by outcome.

    `earlier_runs` are the exported earlier runs of the same name, newest first. `urls_before`
    counts the URLs that only earlier runs requested. `tool` is the command that made the report.
    """

    crawl: str
    since: str | None
    pages: int
    outcomes: Mapping[str, int]
    results: tuple[CheckResult, ...]
    unjudged: tuple[Unjudged, ...]
    earlier_runs: tuple[str, ...] = ()
    urls_before: int = 0
    tool: str = "orbweaver audit"

    @property
    def urls(self) -> int:
        return sum(self.outcomes.values())

    @property
    def age(self) -> str:
        """Describe the URLs that only earlier runs requested, or return ""."""
        if not self.urls_before:
            return ""
        number = "1 URL is" if self.urls_before == 1 else f"{self.urls_before:,} URLs are"
        return f"{number} as earlier runs found them: crawl with --window 0s to request all again"

    @property
    def run(self) -> tuple[CheckResult, ...]:
        return tuple(one for one in self.results if one.why_not is None)

    @property
    def not_run(self) -> tuple[CheckResult, ...]:
        return tuple(one for one in self.results if one.why_not is not None)

    def by_severity(self) -> dict[Severity, int]:
        """Return the number of faults by severity."""
        counts: Counter[Severity] = Counter()
        for one in self.results:
            counts[one.check.severity] += one.faults
        return {severity: counts[severity] for severity in Severity}

    def by_status(self) -> dict[FindingStatus, int]:
        counts: Counter[FindingStatus] = Counter()
        for one in self.results:
            counts.update(one.counts)
        return {status: counts[status] for status in FindingStatus if counts[status]}

    def fails(self, bar: str) -> bool:
        """Return True if there is a finding at or above `bar`, like `error` or `new:warning`."""
        new, _, word = bar.rpartition(":")
        severities = [*Severity][: [*Severity].index(Severity(word)) + 1]
        statuses = (FindingStatus.NEW,) if new else FAULTS
        return any(
            one.counts.get(status, 0) > 0
            for one in self.results
            if one.check.severity in severities
            for status in statuses
        )
