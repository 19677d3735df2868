"""The HTML report of `audit` in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orbweaver.cli.audit import html
from tests import browser
from tests.unit.cli.test_audit_formats import EMPTY, REPORT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(browser.installed() is None, reason="no Chromium is installed"),
    pytest.mark.skipif(not browser.AXE.is_file(), reason="`make setup` installs axe-core"),
]


async def test_report_is_accessible_in_both_schemes_and_requests_nothing(tmp_path: Path) -> None:
    found: list[str] = []
    async with browser.opened() as tab:
        for name, report in (("full", REPORT), ("empty", EMPTY)):
            file = tmp_path / f"{name}.html"
            file.write_text(html.render(report), encoding="utf-8")
            await tab.go(file.as_uri())
            await tab.see("Audit of shop-2")
            for width in (390, 1280):
                for theme in ("light", "dark"):
                    await tab.look(width, 800, theme)
                    found += await tab.faults(f"{name} {width} {theme}")
                    wide = await tab.run("document.documentElement.scrollWidth > innerWidth")
                    found += [f"{name} {width} {theme}: wider than the screen"] * wide
        assert {url.partition(":")[0] for url in tab.requests()} == {"file"}
        assert tab.mistakes() == []
    assert found == []
