"""The report as text: a summary, the checks with findings, and the URLs and checks left out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from orbweaver.cli import text
from orbweaver.cli.audit.report import AuditReport, CheckResult, Finding, FindingStatus

URL_CHARS_MAX, DETAIL_CHARS_MAX = 200, 120
# Words before a finding of a comparison.
MARKS = {
    FindingStatus.NEW: "new  ",
    FindingStatus.FIXED: "fixed  ",
    FindingStatus.UNJUDGED: "not judged  ",
}


def render(report: AuditReport) -> str:
    return "\n".join(_lines(report))


def _lines(report: AuditReport) -> Iterator[str]:
    since = f", compared with {report.since}" if report.since else ""
    urls, pages = text.plural(report.urls, "URL"), text.plural(report.pages, "readable page")
    yield f"{report.crawl}: {urls}, {pages}{since}"
    if report.age:
        yield report.age
    yield ", ".join(text.plural(number, kind) for kind, number in report.by_severity().items())
    if report.since:
        yield ", ".join(f"{number:,} {status}" for status, number in report.by_status().items())
    for one in report.results:
        if one.counts:
            yield from ("", *_of_check(one))
    if report.unjudged:
        yield from ("", "could not be judged; these are no faults of the site")
        rows = [(f"{one.urls:,}", one.reason, one.means) for one in report.unjudged]
        yield from text.table(rows, right=[0], indent=2)
    if report.not_run:
        yield from ("", "checks that did not run")
        by_reason: defaultdict[str, list[str]] = defaultdict(list)
        for result in report.not_run:
            by_reason[result.why_not or ""].append(result.check.name)
        for reason, checks in by_reason.items():
            yield from (f"  {reason}", f"    {', '.join(checks)}")
    clean = sum(not one.counts for one in report.run)
    yield from ("", f"{text.plural(clean, 'check')} found nothing")


def _of_check(one: CheckResult) -> Iterator[str]:
    check = one.check
    yield f"{check.severity} {check.name}: {one.faults:,}"
    yield f"  {check.sentence} {check.fix}"
    for finding in one.findings:
        yield f"    {line_of(finding)}"
    if (more := sum(one.counts.values()) - len(one.findings)) > 0:
        yield f"    … {more:,} more (--limit)"


def line_of(finding: Finding) -> str:
    """Return a finding in one line, without control characters."""
    mark = MARKS.get(finding.status, "")
    target = f" -> {text.cut(finding.target, URL_CHARS_MAX)}" if finding.target else ""
    detail = f" ({text.cut(finding.detail, DETAIL_CHARS_MAX)})" if finding.detail else ""
    page = text.cut(finding.url, URL_CHARS_MAX)
    line = "" if finding.line is None else f":{finding.line}"
    return f"{mark}{page}{line}{target}{detail}"
