"""The report as one JSON object."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from orbweaver.cli.audit.report import AuditReport, CheckResult


def render(report: AuditReport) -> str:
    return json.dumps(document_of(report), indent=1)


def document_of(report: AuditReport) -> dict[str, Any]:
    return {
        "crawl": report.crawl,
        "since": report.since,
        "earlier_runs": report.earlier_runs,
        "urls_before": report.urls_before,
        "pages": report.pages,
        "outcomes": dict(report.outcomes),
        "severities": report.by_severity(),
        "statuses": report.by_status(),
        "checks": [_check(one) for one in report.results],
        "unjudged": [asdict(one) for one in report.unjudged],
    }


def _check(one: CheckResult) -> dict[str, Any]:
    check = one.check
    return {
        "check": check.name,
        "severity": check.severity,
        "sentence": check.sentence,
        "fix": check.fix,
        "needs": sorted(check.needs),
        "not_run": one.why_not,
        "faults": one.faults,
        "counts": dict(one.counts),
        "findings": [asdict(finding) for finding in one.findings],
    }
