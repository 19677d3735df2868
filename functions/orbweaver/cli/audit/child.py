"""Audits and backlinks for the console, which run in a child process (cli/query/child.py)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from orbweaver.cli.audit.as_json import document_of
from orbweaver.cli.audit.backlinks import backlinks_of
from orbweaver.cli.audit.exported import ExportAudit
from orbweaver.cli.query.tables import Export
from orbweaver.model.value import value_class

AUDIT_WALL_S, SCAN_WALL_S = 1800.0, 60.0


@value_class
class ChildAudit:
    """An audit. Its output has one JSON object per line: progress, and then the report."""

    audit: ExportAudit
    folder: Path
    noun: str = "audit"
    advice: str = "run `orbweaver audit`"
    wall_s: float = AUDIT_WALL_S

    def run(self, out: BinaryIO) -> None:
        def write(document: dict[str, Any]) -> None:
            out.write(json.dumps(document).encode() + b"\n")
            out.flush()

        report = self.audit.report(
            self.folder / "spill", lambda done, of: write({"done": done, "of": of})
        )
        write({"report": document_of(report)})


@value_class
class ChildBacklinks:
    """A search for the pages that link to a URL. Its output is a JSON object, or null."""

    url: str
    crawl: str
    exports: Sequence[Export]
    folder: Path
    noun: str = "search for links"
    advice: str = "run `orbweaver explain`"
    wall_s: float = SCAN_WALL_S

    def run(self, out: BinaryIO) -> None:
        found = backlinks_of(self.url, self.crawl, self.exports, self.folder / "spill")
        out.write(json.dumps(None if found is None else asdict(found)).encode())
