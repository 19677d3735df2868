"""The benchmark of pages that need scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.client_rendering import cost, main, needing, read

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

EMPTY = b"<title>a</title><div id=root></div><script type=module src=/a.js></script>"
FULL = b"<p>" + b"words " * 100 + b"<script src=/a.js></script>"


def test_folder_report_names_pages_needing_scripts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "empty.html").write_bytes(EMPTY)
    (tmp_path / "full.htm").write_bytes(FULL)
    (tmp_path / "other.js").write_bytes(EMPTY)
    (tmp_path / "none").mkdir()
    main([str(tmp_path), str(tmp_path / "none"), "--turns", "1"])
    measured, named, nothing = capsys.readouterr().out.splitlines()
    assert measured.startswith(f"{tmp_path}: 1 of 2 pages need scripts; ")
    assert named == f"  {tmp_path / 'deep' / 'empty.html'}"
    assert nothing == f"{tmp_path / 'none'}: no HTML"


def test_cost_of_detection_is_measured(tmp_path: Path) -> None:
    (tmp_path / "full.html").write_bytes(FULL)
    pages = read(tmp_path)
    assert needing(pages) == []
    found = cost([*pages.values()] * 50, turns=3)
    assert min(found.without_us, found.with_us) > 0
    assert found.ratio > 0
