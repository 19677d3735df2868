"""Checks and commands of docs/audit.md."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from orbweaver.cli.arguments import parse
from orbweaver.cli.audit.catalog import Check, Need, Severity, checks
from orbweaver.cli.audit.command import BARS, FORMATS

GUIDE = (Path(__file__).parents[3] / "docs" / "audit.md").read_text()
COMMAND = re.compile(r"^orbweaver audit.*|`(orbweaver audit [^`]+)`", re.MULTILINE)


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


def test_audit_commands_parse() -> None:
    found = [one.group(1) or one.group(0) for one in COMMAND.finditer(GUIDE)]
    assert len(found) > 8
    for command in found:
        words = shlex.split(command, comments=True)
        assert parse(words[1:]).command == "audit"
