"""The report as SARIF 2.1.0 (OASIS): a rule per check, a result per finding.

A finding's location is the page to fix. `baselineState` has the comparison with the earlier run.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from orbweaver import __version__
from orbweaver.cli.audit.catalog import Check, Severity
from orbweaver.cli.audit.report import AuditReport, CheckResult, Finding, FindingStatus
from orbweaver.model.url import canonicalize

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTICE: "note"}
STATES = {
    FindingStatus.NEW: "new",
    FindingStatus.REMAINING: "unchanged",
    FindingStatus.FIXED: "absent",
}


def render(report: AuditReport) -> str:
    rules = [one.check for one in report.results]
    notes: list[tuple[str | None, str]]
    notes = [(one.check.name, f"not run: {one.why_not}") for one in report.not_run]
    notes += [
        (None, f"{one.urls} not judged: {one.reason}: {one.means}") for one in report.unjudged
    ]
    run = {
        "tool": {
            "driver": {
                "name": report.tool,
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [_rule(check) for check in rules],
            }
        },
        "automationDetails": {"id": f"{report.tool.replace(' ', '-')}/{report.crawl}"},
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [_notification(*note) for note in notes],
            }
        ],
        "results": [
            _result(one, place, finding)
            for place, one in enumerate(report.results)
            for finding in one.findings
            if finding.status is not FindingStatus.UNJUDGED
        ],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


def _rule(check: Check) -> dict[str, Any]:
    return {
        "id": check.name,
        "shortDescription": {"text": check.sentence},
        "help": {"text": check.fix},
        "defaultConfiguration": {"level": LEVELS[check.severity]},
    }


def _notification(name: str | None, said: str) -> dict[str, Any]:
    rule = {} if name is None else {"associatedRule": {"id": name}}
    return {"level": "note", "message": {"text": said}, **rule}


def _result(one: CheckResult, place: int, finding: Finding) -> dict[str, Any]:
    check = one.check
    parts = [check.sentence, finding.target, finding.detail]
    identity = "\n".join([check.name, finding.url, finding.target or ""])
    result: dict[str, Any] = {
        "ruleId": check.name,
        "ruleIndex": place,
        "level": LEVELS[check.severity],
        "message": {"text": " ".join(part for part in parts if part)},
        "locations": _places(finding),
        "partialFingerprints": {"orbweaver/v1": sha256(identity.encode()).hexdigest()},
    }
    if related := _locations(finding.target):
        result["relatedLocations"] = related
    if (state := STATES.get(finding.status)) is not None:
        result["baselineState"] = state
    return result


def _places(finding: Finding) -> list[dict[str, Any]]:
    """Return the location of the page to fix: a URL, or a line of a file."""
    if finding.line is None:
        return _locations(finding.url)
    place = {"artifactLocation": {"uri": quote(finding.url)}, "region": {"startLine": finding.line}}
    return [{"physicalLocation": place}]


def _locations(url: str | None) -> list[dict[str, Any]]:
    """Return the location of a URL. A reference that is no URL has none."""
    try:
        uri = canonicalize(url or "")
    except ValueError:
        return []
    return [{"physicalLocation": {"artifactLocation": {"uri": uri}}}]
