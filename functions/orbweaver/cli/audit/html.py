"""The report as one HTML file without scripts and without requests.

Colours follow the reader's scheme, and charts use them as classes. All text of the site is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files

from orbweaver.cli.audit.catalog import Severity
from orbweaver.cli.audit.report import (
    FAULTS,
    AuditReport,
    CheckResult,
    Finding,
    FindingStatus,
    Unjudged,
)
from orbweaver.cli.text import clean, plural
from orbweaver.model.value import value_class

CHECKS_SHOWN = 15
# Height of a bar, in pixels.
BAR = 16
# Labels and classes of the statuses.
STATUSES = {
    FindingStatus.NEW: "new",
    FindingStatus.REMAINING: "remaining",
    FindingStatus.UNCOMPARED: "not compared",
    FindingStatus.FIXED: "fixed",
    FindingStatus.UNJUDGED: "not judged",
}


def render(report: AuditReport) -> str:
    style = files(__package__ or "").joinpath("report.css").read_text(encoding="utf-8")
    title = f"Audit of {escape(report.crawl)}"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src'
        " 'unsafe-inline'\">\n"
        f"<title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f"<header><h1>{title}</h1>{_subtitle(report)}</header>\n<main>\n"
        f"{''.join(_sections(report))}</main>\n"
        "<footer><p>Written by <code>orbweaver audit</code>.</p></footer>\n</body>\n</html>"
    )


def _subtitle(report: AuditReport) -> str:
    since = f", compared with {escape(report.since)}" if report.since else ""
    urls, pages = plural(report.urls, "URL"), plural(report.pages, "readable page")
    age = f"<p>{report.age}</p>" if report.age else ""
    return f"<p>{urls}, {pages}{since}</p>{age}"


def _sections(report: AuditReport) -> Iterator[str]:
    found = [one for one in report.results if one.counts]
    yield _summary(report)
    if shown := sorted(found, key=lambda one: -one.faults)[:CHECKS_SHOWN]:
        yield _figure(
            "faults", f"Findings of the {plural(len(shown), 'most frequent check')}", shown
        )
    outcomes = [
        Bar(label=name, parts=[(number, f"outcome-{name}")])
        for name, number in report.outcomes.items()
    ]
    yield _section("outcomes", "URLs by outcome", bars("outcome", "URLs by outcome", outcomes))
    if found:
        yield _overview(report, found)
        yield from map(_of_check, found)
    if report.unjudged:
        yield _unjudged(report.unjudged)
    if report.not_run:
        rows = [
            (f"<code>{one.check.name}</code>", escape(one.why_not or "")) for one in report.not_run
        ]
        table = _table("not-run", ("Check", "Reason"), rows)
        yield _section("not-run", "Checks that did not run", table)
    if passed := [one for one in report.run if not one.counts]:
        items = "".join(
            f"<li><code>{one.check.name}</code> {escape(one.check.sentence)}</li>" for one in passed
        )
        yield _section("passed", "Checks that found nothing", f'<ul class="passed">{items}</ul>')


def _summary(report: AuditReport) -> str:
    tiles = [(number, f"{kind}s", str(kind)) for kind, number in report.by_severity().items()]
    if report.since:
        counts = report.by_status()
        tiles += [
            (counts.get(one, 0), STATUSES[one], str(one))
            for one in (FindingStatus.NEW, FindingStatus.FIXED)
        ]
    cells = "".join(
        f'<div class="tile {kind}"><dt>{name}</dt><dd>{number:,}</dd></div>'
        for number, name, kind in tiles
    )
    return f'<section aria-label="Summary"><dl class="tiles">{cells}</dl></section>\n'


def _figure(name: str, title: str, results: Sequence[CheckResult]) -> str:
    chart = [
        Bar(
            label=one.check.name,
            parts=[
                (one.counts.get(status, 0), f"{one.check.severity} {status}") for status in FAULTS
            ],
        )
        for one in results
    ]
    compared = any(FindingStatus.NEW in one.counts for one in results)
    note = "<p>Striped parts are new.</p>" if compared else ""
    shown = bars(f"{name}-chart", title, chart)
    return _section(name, title, f"{PATTERN}{shown}{note}")


# Stripes over the colour of a severity, so that new findings do not differ by colour alone.
PATTERN = (
    '<svg width="0" height="0" aria-hidden="true" class="defs"><defs>'
    + "".join(
        f'<pattern id="new-{kind}" width="6" height="6" patternUnits="userSpaceOnUse"'
        f' patternTransform="rotate(45)"><rect class="{kind}" width="6" height="6"/>'
        '<rect class="stripe" width="2" height="6"/></pattern>'
        for kind in Severity
    )
    + "</defs></svg>"
)


def _overview(report: AuditReport, found: Sequence[CheckResult]) -> str:
    rows = []
    for one in found:
        cells = [_badge(one), f'<a href="#{one.check.name}">{one.check.name}</a>']
        cells += [escape(one.check.sentence), f"{one.faults:,}"]
        if report.since:
            cells += [
                f"{one.counts.get(kind, 0):,}" for kind in (FindingStatus.NEW, FindingStatus.FIXED)
            ]
        rows.append(cells)
    heads = ["Severity", "Check", "Fault", "Findings", *(["New", "Fixed"] * bool(report.since))]
    table = _table("checks", heads, rows, numbers=range(3, len(heads)))
    return _section("checks", "Checks with findings", table)


def _of_check(one: CheckResult) -> str:
    check, total = one.check, sum(one.counts.values())
    compared = any(finding.status in STATUSES for finding in one.findings)
    targets = any(finding.target for finding in one.findings)
    columns = (
        ("Status", compared),
        ("Page to fix", True),
        ("Other URL", targets),
        ("Detail", True),
    )
    heads = [name for name, shown in columns if shown]
    rows = [
        [cell for cell, (_, shown) in zip(_cells(finding), columns, strict=True) if shown]
        for finding in one.findings
    ]
    more = total - len(one.findings)
    note = f"<p>{more:,} more findings are not shown.</p>" if more > 0 else ""
    return (
        f'<section aria-labelledby="{check.name}"><h2 id="{check.name}">{_badge(one)}'
        f" {check.name} <span>{one.faults:,}</span></h2>"
        f"<p>{escape(check.sentence)} <strong>{escape(check.fix)}</strong></p>"
        f"<details{' open' if check.severity is Severity.ERROR else ''}><summary>"
        f"{plural(len(one.findings), 'finding')} of {check.name}</summary>"
        f"{_table(check.name, heads, rows)}{note}</details></section>\n"
    )


def _cells(finding: Finding) -> list[str]:
    status = STATUSES.get(finding.status, "")
    return [
        f'<span class="status {finding.status}">{status}</span>',
        _link(finding.url),
        _link(finding.target or ""),
        escape(clean(finding.detail or "")),
    ]


def _link(url: str) -> str:
    """Return a link to a web URL. Other references of the site are shown as text."""
    shown = escape(clean(url))
    if not url.startswith(("http://", "https://")):
        return shown
    return f'<a href="{shown}" rel="noopener noreferrer nofollow">{shown}</a>'


def _unjudged(unjudged: Iterable[Unjudged]) -> str:
    rows = [
        (
            f"<code>{escape(one.reason)}</code>",
            escape(one.means),
            f"{one.urls:,}",
            _link(one.example or ""),
        )
        for one in unjudged
    ]
    note = "<p>These URLs are no findings: the crawl cannot tell whether they are faulty.</p>"
    table = _table("unjudged", ("Reason", "Meaning", "URLs", "Example"), rows, numbers=range(2, 3))
    return _section("unjudged", "Could not be judged", note + table)


def _badge(one: CheckResult) -> str:
    return f'<span class="badge {one.check.severity}">{one.check.severity}</span>'


def _section(name: str, title: str, body: str) -> str:
    return (
        f'<section aria-labelledby="{name}"><h2 id="{name}">{escape(title)}</h2>{body}</section>\n'
    )


def _table(
    name: str, heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: range = range(0)
) -> str:
    """Return the table of a section. The columns `numbers` contain numbers. Cells are HTML."""
    kinds = [' class="number"' * (place in numbers) for place in range(len(heads))]
    head = "".join(
        f'<th scope="col"{kind}>{title}</th>' for title, kind in zip(heads, kinds, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(f"<td{kind}>{cell}</td>" for cell, kind in zip(row, kinds, strict=True))
        + "</tr>\n"
        for row in rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>"
    return _scrolling(name, table)


def _scrolling(name: str, body: str) -> str:
    """Return a part of a section that scrolls sideways on narrow screens, also by keyboard."""
    return f'<div class="scroll" tabindex="0" role="group" aria-labelledby="{name}">{body}</div>'


# --- charts ---------------------------------------------------------------------------------------


@value_class
class _Layout:
    """Sizes of a chart, in pixels. Without a column of labels, each label is above its bar."""

    name: str
    width: int
    row: int
    label: int = 0
    value: int = 80


# The stylesheet shows one of them.
LAYOUTS = (
    _Layout(name="wide", width=720, row=26, label=190),
    _Layout(name="narrow", width=320, row=42),
)


@value_class
class Bar:
    """A bar: its label and its parts as number and class."""

    label: str
    parts: Sequence[tuple[int, str]]

    @property
    def total(self) -> int:
        return sum(number for number, _ in self.parts)


def bars(name: str, title: str, chart: Sequence[Bar]) -> str:
    """Return a chart of horizontal bars for wide and one for narrow screens.

    `name` is a unique id, `title` describes the chart.
    """
    return "".join(_chart(f"{name}-{layout.name}", title, chart, layout) for layout in LAYOUTS)


def _chart(name: str, title: str, chart: Sequence[Bar], layout: _Layout) -> str:
    longest = max([bar.total for bar in chart] or [1]) or 1
    scale = (layout.width - layout.label - layout.value) / longest
    rows = "".join(_row(bar, place * layout.row, scale, layout) for place, bar in enumerate(chart))
    said = "; ".join(f"{bar.label}: {bar.total:,}" for bar in chart)
    return (
        f'<svg class="{layout.name}" viewBox="0 0 {layout.width} {len(chart) * layout.row}"'
        f' role="img" aria-labelledby="{name}-title {name}-text">'
        f'<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-text">{escape(said)}</desc>{rows}</svg>'
    )


def _row(bar: Bar, top: int, scale: float, layout: _Layout) -> str:
    middle, left, shapes = top + layout.row - 13.0, float(layout.label), []
    for number, kind in bar.parts:
        if number:
            # A part of few findings is visible, too.
            width = max(number * scale, 2.0)
            shapes.append(
                f'<rect class="{kind}" x="{left:.1f}" y="{middle - BAR / 2}" width="{width:.1f}"'
                f' height="{BAR}" rx="2"/>'
            )
            left += width + 1
    at = (layout.label - 10, middle) if layout.label else (0, top + 10.0)
    return (
        f'<text class="label" x="{at[0]}" y="{at[1]}">{escape(bar.label)}</text>'
        f'{"".join(shapes)}<text class="value" x="{left + 6:.1f}" y="{middle}">{bar.total:,}</text>'
    )
