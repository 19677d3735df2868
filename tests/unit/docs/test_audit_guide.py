"""Checks of docs/audit.md."""

from __future__ import annotations

import re
from pathlib import Path

from orbweaver.cli.audit.catalog import Check, Need, Severity, checks
from orbweaver.cli.audit.command import BARS, FORMATS

GUIDE = (Path(__file__).parents[3] / "docs" / "audit.md").read_text()


def row_of(check: Check) -> str:
    needs = ", ".join(sorted(check.needs)) or (f"without {check.without}" if check.without else "")
    return f"| `{check.name}` | {check.sentence} | {check.fix} | {needs} |"


def test_guide_lists_checks_by_severity() -> None:
    parts = re.split(r"^##+ ", GUIDE, flags=re.MULTILINE)
    for severity in Severity:
        [part] = [one for one in parts if one.lower().startswith(f"{severity}s\n")]
        rows = [row_of(one) for one in checks().values() if one.severity is severity]
        assert part.strip().splitlines()[4:] == rows


def test_guide_describes_needs_formats_and_exit_codes() -> None:
    for need in Need:
        assert f"| {need} | " in GUIDE
    for word in (*FORMATS, *BARS):
        assert f"| `{word}` | " in GUIDE
