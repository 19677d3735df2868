"""The result of a check as a report of the audit, so that it has the same formats."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from orbweaver.cli.audit.catalog import Check, Severity
from orbweaver.cli.audit.report import (
    AuditReport,
    CheckResult,
    Finding,
    FindingStatus,
    Unjudged,
)
from orbweaver.cli.check_links.links import Anchors, Link, LinkIndex
from orbweaver.cli.check_links.verdict import LinkState, Verdict, means
from orbweaver.model.value import value_class

TOOL = "orbweaver check-links"
INVALID = "The reference is not a valid URL."
# Line of a link in a file: name of the page, target with fragment.
Line = Callable[[str, str], int | None]


def _check(name: str, severity: Severity, sentence: str, fix: str) -> Check:
    return Check(
        name=name,
        severity=severity,
        sentence=sentence,
        fix=fix,
        needs=frozenset(),
        without=None,
        sql="",
    )


BROKEN = _check(
    "broken-link",
    Severity.ERROR,
    "A link leads to a URL or file that does not exist.",
    "Correct or remove the link, or restore the target.",
)
FRAGMENT = _check(
    "missing-fragment",
    Severity.ERROR,
    "The target of a link has no part with this name.",
    "Correct the part behind #, or add the id to the target.",
)
UNVERIFIED = _check(
    "unverified-link",
    Severity.NOTICE,
    "The target of a link could not be checked.",
    "Check it by hand, or exclude it.",
)


CHECKS = (BROKEN, FRAGMENT, UNVERIFIED)


@value_class
class LinkReport(AuditReport):
    """The report of a check. `earlier` is the number of URLs with a result of an earlier check."""

    earlier: int = 0


@dataclass(slots=True, kw_only=True)
class Results:
    """Verdicts by URL, and the fragments that a page does not have, by its last URL.

    `earlier` is the number of URLs with a result of an earlier check.
    """

    index: LinkIndex
    earlier: int = 0
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    missing: dict[str, frozenset[str]] = field(default_factory=dict)
    # Missing fragments of links within a page: name of the page and fragment.
    within: list[tuple[str, str]] = field(default_factory=list)

    def wanted_fragments(self) -> dict[str, list[str]]:
        """Return the fragments to look for, by the last URL of their links."""
        wanted: defaultdict[str, list[str]] = defaultdict(list)
        for link in self.index.found:
            verdict = self.verdicts[link.target]
            if link.fragment is not None and verdict.state is LinkState.FINE:
                wanted[verdict.url].append(link.fragment)
        return wanted

    def add_anchors(self, page: str, url: str, anchors: Anchors, wanted: Iterable[str]) -> None:
        """Compare the anchors of a page with its own links and with the wanted fragments."""
        if missing := anchors.missing(wanted):
            self.missing[url] = frozenset(missing)
        for fragment in anchors.missing(anchors.references):
            if not self.index.excludes(f"{url}#{fragment}"):
                self.within.append((page, fragment))


def report_of(
    results: Results,
    subject: str,
    *,
    shown: Callable[[str], str] = str,
    line: Line = lambda _, __: None,
) -> LinkReport:
    """Return the report. `shown` converts a target for people, `line` finds links in files."""
    index = results.index
    by_check: defaultdict[str, list[Finding]] = defaultdict(list)
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    reported: set[tuple[str, str]] = set()
    counted: set[str] = set()
    outcomes: Counter[str] = Counter()
    for reference, pages in index.invalid.items():
        outcomes[LinkState.BROKEN] += 1
        by_check[BROKEN.name] += [
            _finding(page, reference, INVALID, line(page, reference)) for page in pages
        ]
    for link, pages in index.found.items():
        state, check, target, detail = _judged(results, link)
        if check is None:
            outcomes[state] += 1
            continue
        if check is UNVERIFIED:
            reasons[results.verdicts[target].reason].append(target)
        if target not in counted:
            counted.add(target)
            outcomes[state] += 1
        for page in pages:
            if (target, page) not in reported:
                reported.add((target, page))
                place = line(page, str(link))
                by_check[check.name].append(_finding(page, shown(target), detail, place))
    for page, fragment in results.within:
        outcomes[LinkState.BROKEN] += 1
        target = f"#{fragment}"
        by_check[FRAGMENT.name].append(_finding(page, target, None, line(page, target)))
    return LinkReport(
        tool=TOOL,
        crawl=subject,
        since=None,
        pages=index.pages,
        outcomes=dict(outcomes),
        results=tuple(_result(check, by_check[check.name]) for check in CHECKS),
        unjudged=(*_unjudged(reasons), *_unread(index)),
        earlier=results.earlier,
    )


def _judged(results: Results, link: Link) -> tuple[LinkState, Check | None, str, str | None]:
    """Return the state of a link, the check that reports it, the reported target and a detail."""
    verdict = results.verdicts[link.target]
    # If the target does not exist, its fragments do not matter.
    target, detail = link.target, verdict.detail or None
    match verdict.state:
        case LinkState.FINE if link.fragment in results.missing.get(verdict.url, ()):
            return LinkState.BROKEN, FRAGMENT, str(link), None
        case LinkState.FINE:
            return LinkState.FINE, None, target, None
        case LinkState.UNVERIFIED:
            return LinkState.UNVERIFIED, UNVERIFIED, target, detail
        case LinkState.BROKEN:
            return LinkState.BROKEN, BROKEN, target, detail


def _finding(page: str, target: str, detail: str | None, line: int | None) -> Finding:
    status = FindingStatus.PRESENT
    return Finding(url=page, target=target, detail=detail, status=status, line=line)


def _result(check: Check, findings: Iterable[Finding]) -> CheckResult:
    found = tuple(findings)
    counts = {FindingStatus.PRESENT: len(found)} if found else {}
    return CheckResult(check=check, counts=counts, findings=found)


def _unjudged(reasons: Mapping[str, list[str]]) -> Iterator[Unjudged]:
    for reason, urls in sorted(reasons.items(), key=lambda one: (-len(one[1]), one[0])):
        yield Unjudged(reason=str(reason), means=means(reason), urls=len({*urls}), example=urls[0])


def _unread(index: LinkIndex) -> Iterator[Unjudged]:
    for reason, number in index.unread.items():
        if number:
            yield Unjudged(reason=reason, means=means(reason), urls=number, example=None)
