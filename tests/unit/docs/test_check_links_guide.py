"""Formats and inputs of docs/check-links.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from orbweaver.cli import exit_codes
from orbweaver.cli.check_links.command import FORMATS

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs/check-links.md").read_text()


def test_guide_describes_formats_exit_codes_and_inputs() -> None:
    action: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
    codes = (exit_codes.OK, exit_codes.FAILED, exit_codes.USAGE, exit_codes.INTERRUPTED)
    for word in (*(f"`{one}`" for one in (*FORMATS, *action["inputs"])), *codes):
        assert f"| {word} | " in GUIDE
