"""The report as JUnit XML: a test case per check.

Errors and warnings are failures. Notices are output of a test that passes. A check that did not run
is skipped.
"""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from orbweaver.cli.audit.catalog import Severity
from orbweaver.cli.audit.plain import line_of
from orbweaver.cli.audit.report import FAULTS, AuditReport, CheckResult
from orbweaver.cli.text import plural

# Characters that XML 1.0 does not allow, also not as references.
FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(report: AuditReport) -> str:
    failures = sum(map(_is_failure, report.results))
    tests, skipped = str(len(report.results)), str(len(report.not_run))
    counts = {"tests": tests, "failures": str(failures), "errors": "0"}
    root = Element("testsuites", {"name": report.tool, **counts})
    suite = SubElement(root, "testsuite", {"name": report.crawl, "skipped": skipped, **counts})
    properties = SubElement(suite, "properties")
    for one in report.unjudged:
        SubElement(properties, "property", name=f"unjudged.{one.reason}", value=str(one.urls))
    for result in report.results:
        _add(suite, result)
    indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode")


def _is_failure(one: CheckResult) -> bool:
    return one.faults > 0 and one.check.severity is not Severity.NOTICE


def _add(suite: Element, one: CheckResult) -> None:
    check = one.check
    case = SubElement(suite, "testcase", name=check.name, classname=f"audit.{check.severity}")
    if one.why_not is not None:
        SubElement(case, "skipped", message=one.why_not)
        return
    if not one.faults:
        return
    lines = [line_of(finding) for finding in one.findings if finding.status in FAULTS]
    said = f"{check.sentence} {check.fix}"
    body = FORBIDDEN.sub("\ufffd", "\n".join([said, *lines]))
    if _is_failure(one):
        message = f"{plural(one.faults, 'finding')}: {check.sentence}"
        SubElement(case, "failure", type=check.severity, message=message).text = body
    else:
        SubElement(case, "system-out").text = body
