"""The report as text: each broken link with its pages, then the links that are not verified."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from orbweaver.cli import text
from orbweaver.cli.audit.plain import DETAIL_CHARS_MAX, URL_CHARS_MAX
from orbweaver.cli.audit.report import CheckResult, Finding
from orbweaver.cli.check_links.report import UNVERIFIED, LinkReport
from orbweaver.cli.check_links.verdict import LinkState

PAGES_SHOWN = 5
AGAIN = "--cache 0s requests all URLs again"


def render(report: LinkReport) -> str:
    return "\n".join(_lines(report))


def _lines(report: LinkReport) -> Iterator[str]:
    for result in report.results:
        if result.findings:
            yield from (*_of_check(result), "")
    if report.unjudged:
        yield "not verified, by reason"
        rows = [(f"{one.urls:,}", one.reason, one.means) for one in report.unjudged]
        yield from (*text.table(rows, right=[0], indent=2), "")
    yield summary(report)


def summary(report: LinkReport) -> str:
    """Return the numbers of pages and links, and of results of earlier checks."""
    number = {state: report.outcomes.get(state, 0) for state in LinkState}
    links = text.plural(report.urls, "link")
    counts = ", ".join(f"{number[state]:,} {state}" for state in LinkState)
    numbers = f"{report.crawl}: {text.plural(report.pages, 'page')}, {links}: {counts}"
    if not report.earlier:
        return numbers
    return f"{numbers}\n{text.plural(report.earlier, 'result')} of earlier checks: {AGAIN}"


def _of_check(result: CheckResult) -> Iterator[str]:
    check = result.check
    name = "not verified" if check is UNVERIFIED else check.name
    by_target: defaultdict[tuple[str, str], list[Finding]] = defaultdict(list)
    for one in result.findings:
        # A link within a page is a link of its own on each page.
        page = one.url if (one.target or "").startswith("#") else ""
        by_target[one.target or "", page].append(one)
    yield f"{name}: {text.plural(len(by_target), 'target')}. {check.sentence}"
    for (target, _), findings in by_target.items():
        detail = findings[0].detail
        said = f" ({text.cut(detail, DETAIL_CHARS_MAX)})" if detail else ""
        yield f"  {text.cut(target, URL_CHARS_MAX)}{said}"
        for one in findings[:PAGES_SHOWN]:
            yield f"    {place_of(one)}"
        if (more := len(findings) - PAGES_SHOWN) > 0:
            yield f"    … and {text.plural(more, 'more page')}"


def place_of(finding: Finding) -> str:
    page = text.cut(finding.url, URL_CHARS_MAX)
    return page if finding.line is None else f"{page}:{finding.line}"
