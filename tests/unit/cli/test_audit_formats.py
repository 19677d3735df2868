"""Formats of `audit`: SARIF, JUnit, HTML and JSON.

The structures are the required parts of SARIF 2.1.0 (section 3) and of the JUnit schema of the
Jenkins xUnit plugin, because the schemas themselves are not part of this repository.
"""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from orbweaver.cli.audit import as_json, html, junit, plain, sarif
from orbweaver.cli.audit.catalog import Severity, checks
from orbweaver.cli.audit.report import AuditReport, CheckResult, Finding, FindingStatus, Unjudged

if TYPE_CHECKING:
    from collections.abc import Mapping
    from xml.etree.ElementTree import Element

HOSTILE = 'https://a.example/"><script>\x00\x1b[2J'


def finding(
    url: str,
    status: FindingStatus = FindingStatus.NEW,
    target: str | None = None,
    detail: str | None = None,
) -> Finding:
    return Finding(url=url, status=status, target=target, detail=detail)


def result(name: str, *findings: Finding, why_not: str | None = None) -> CheckResult:
    counts = {one: sum(found.status is one for found in findings) for one in FindingStatus}
    return CheckResult(
        check=checks()[name],
        why_not=why_not,
        counts={status: number for status, number in counts.items() if number},
        findings=findings,
    )


REPORT = AuditReport(
    crawl="shop-2",
    since="shop-1",
    pages=8,
    outcomes={"failed": 2, "fetched": 8},
    results=(
        result(
            "broken-link",
            finding("https://a.example/1", target="https://a.example/2", detail="404"),
            finding("https://a.example/3", FindingStatus.REMAINING),
            finding("https://a.example/4", FindingStatus.FIXED),
            finding("https://a.example/5", FindingStatus.UNJUDGED),
        ),
        result("missing-alt", finding(HOSTILE, detail=HOSTILE, target="javascript:alert(1)")),
        result("slow-page", finding("https://a.example/6")),
        result("missing-title"),
        result("orphan-page", why_not="the crawl kept no links"),
    ),
    unjudged=(Unjudged(reason="timeout", means="late", urls=2, example="https://a.example/7"),),
)
EMPTY = AuditReport(crawl="shop-2", since=None, pages=0, outcomes={}, results=(), unjudged=())
RENDERED = {"text": plain, "json": as_json, "sarif": sarif, "junit": junit, "html": html}


@pytest.mark.parametrize("name", RENDERED)
@pytest.mark.parametrize("report", [REPORT, EMPTY], ids=["full", "empty"])
def test_format_renders_any_report_without_control_characters(
    name: str, report: AuditReport
) -> None:
    body = RENDERED[name].render(report)
    assert body.encode("utf-8")
    assert "\x1b" not in body
    assert "\x00" not in body


# --- SARIF ----------------------------------------------------------------------------------------

LEVELS, STATES = {"none", "note", "warning", "error"}, {"new", "unchanged", "updated", "absent"}


def text_of(message: Mapping[str, Any]) -> str:
    assert isinstance(message["text"], str)
    return str(message["text"])


def test_sarif_has_required_structure() -> None:
    log = json.loads(sarif.render(REPORT))
    assert set(log) == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"
    [run] = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "orbweaver audit"
    rules = [rule["id"] for rule in driver["rules"]]
    assert rules == [one.check.name for one in REPORT.results]
    for rule in driver["rules"]:
        assert text_of(rule["shortDescription"])
        assert text_of(rule["help"])
        assert rule["defaultConfiguration"]["level"] in LEVELS
    for one in run["results"]:
        assert rules[one["ruleIndex"]] == one["ruleId"]
        assert one["level"] in LEVELS
        assert text_of(one["message"])
        assert one.get("baselineState", "new") in STATES
        for place in [*one["locations"], *one.get("relatedLocations", [])]:
            assert isinstance(place["physicalLocation"]["artifactLocation"]["uri"], str)
        assert all(isinstance(value, str) for value in one["partialFingerprints"].values())
    [invocation] = run["invocations"]
    assert invocation["executionSuccessful"] is True
    said = [text_of(one["message"]) for one in invocation["toolExecutionNotifications"]]
    assert said == ["not run: the crawl kept no links", "2 not judged: timeout: late"]


def test_sarif_states_compare_with_earlier_run() -> None:
    [run] = json.loads(sarif.render(REPORT))["runs"]
    states = [one["baselineState"] for one in run["results"] if one["ruleId"] == "broken-link"]
    assert states == ["new", "unchanged", "absent"]
    prints = [one["partialFingerprints"]["orbweaver/v1"] for one in run["results"]]
    assert len({*prints}) == len(prints)


# --- JUnit ----------------------------------------------------------------------------------------

# Attributes by element: required ones, and optional ones.
SUITE = ({"name", "tests", "failures", "errors"}, {"skipped"})
JUNIT = {
    "testsuites": SUITE,
    "testsuite": SUITE,
    "properties": (set(), set()),
    "property": ({"name", "value"}, set()),
    "testcase": ({"name", "classname"}, set()),
    "failure": ({"type", "message"}, set()),
    "skipped": ({"message"}, set()),
    "system-out": (set(), set()),
}


def check_element(element: Element) -> None:
    required, optional = JUNIT[element.tag]
    assert required <= {*element.keys()} <= required | optional
    for child in element:
        check_element(child)


def test_junit_has_required_structure() -> None:
    root = ET.fromstring(junit.render(REPORT))  # noqa: S314 - our own output
    check_element(root)
    [suite] = root
    assert [child.tag for child in suite] == ["properties", *["testcase"] * 5]
    cases = {case.get("name"): [child.tag for child in case] for case in suite.iter("testcase")}
    assert cases == {
        "broken-link": ["failure"],
        "missing-alt": ["failure"],
        "slow-page": ["system-out"],  # a notice does not fail
        "missing-title": [],
        "orphan-page": ["skipped"],
    }
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("5", "2", "1")
    [failure] = [one for one in suite.iter("failure") if "URL" in (one.get("message") or "")]
    assert "https://a.example/4" not in (failure.text or "")


# --- HTML -----------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """Collects the start tags of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_html_is_one_file_without_scripts_or_requests() -> None:
    tags = Tags(html.render(REPORT)).tags
    names = {tag for tag, _ in tags}
    assert {"header", "main", "footer", "h1", "h2", "table", "svg"} <= names
    assert not names & {"script", "link", "img", "iframe", "object"}
    assert not [attributes for _, attributes in tags if "src" in attributes]
    references = {attributes["href"] for tag, attributes in tags if tag == "a"}
    assert all(one and one.startswith(("#", "https://a.example/")) for one in references)
    ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
    assert len(ids) == len({*ids})
    assert {(one or "").removeprefix("#") for one in references if one and one[0] == "#"} <= {*ids}
    assert all(attributes.get("scope") for tag, attributes in tags if tag == "th")


def test_report_counts_only_faults_of_this_run() -> None:
    assert REPORT.by_severity() == {Severity.ERROR: 2, Severity.WARNING: 1, Severity.NOTICE: 1}
    assert REPORT.by_status()[FindingStatus.FIXED] == 1
    assert json.loads(as_json.render(REPORT))["severities"] == {
        "error": 2,
        "warning": 1,
        "notice": 1,
    }


# --- --fail-on ------------------------------------------------------------------------------------

FAILS = (
    ("error", "missing-title", FindingStatus.PRESENT, True),
    ("error", "missing-title", FindingStatus.REMAINING, True),
    ("error", "missing-title", FindingStatus.UNCOMPARED, True),
    ("error", "missing-title", FindingStatus.FIXED, False),
    ("error", "missing-title", FindingStatus.UNJUDGED, False),
    ("error", "missing-alt", FindingStatus.PRESENT, False),
    ("warning", "missing-title", FindingStatus.PRESENT, True),
    ("warning", "missing-alt", FindingStatus.PRESENT, True),
    ("warning", "slow-page", FindingStatus.PRESENT, False),
    ("new:error", "missing-title", FindingStatus.NEW, True),
    ("new:error", "missing-title", FindingStatus.REMAINING, False),
    ("new:error", "missing-title", FindingStatus.UNCOMPARED, False),
    ("new:error", "missing-alt", FindingStatus.NEW, False),
    ("new:warning", "missing-alt", FindingStatus.NEW, True),
)


@pytest.mark.parametrize(("bar", "check", "status", "fails"), FAILS)
def test_report_fails_at_bar(bar: str, check: str, status: FindingStatus, *, fails: bool) -> None:
    one = result(check, finding("https://a.example/", status))
    report = AuditReport(crawl="a", since=None, pages=1, outcomes={}, results=(one,), unjudged=())
    assert report.fails(bar) is fails
