"""The report as one JSON object, as of the audit, with the number of earlier results."""

from __future__ import annotations

import json

from orbweaver.cli.audit.as_json import document_of
from orbweaver.cli.check_links.report import LinkReport


def render(report: LinkReport) -> str:
    return json.dumps({**document_of(report), "earlier": report.earlier}, indent=1)
