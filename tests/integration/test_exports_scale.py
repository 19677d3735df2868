"""The scale test of a day's export on a small day: same processes, files and readers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.exports_scale.__main__ import run
from tests.exports_scale.reading import ITEMS

pytestmark = [pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(400)]
LIMIT_MB = 256


def test_day_export_stays_within_memory_limit(tmp_path: Path) -> None:
    result = run(tmp_path, rows=20_000, limit_mb=LIMIT_MB, part_rows_max=8_000)
    measured = result["measured"]
    assert measured["rows"] == {"pages": 20_000, ITEMS: 19_000, "invalid_items": 1_000}
    assert measured["files"] == 3 * 3 * 3
    assert measured["peak_rss_mb"] < LIMIT_MB


def test_bodies_and_texts_stay_within_memory_limit(tmp_path: Path) -> None:
    result = run(tmp_path, rows=2_000, limit_mb=LIMIT_MB, part_rows_max=1_500, bodies=True)
    assert result["read"]["warc"] == 2_000
    assert result["measured"]["rows"]["texts"] == 2_000
    assert set(result["measured"]["bytes"]) == {"csv", "jsonl", "parquet", "warc"}


def test_memory_limit_is_enforced() -> None:
    code = (
        "from tests.exports_scale.exporting import limit_data; limit_data(128);"
        "held = [bytearray(2**20) for _ in range(128)]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "MemoryError" in done.stderr.splitlines()[-1]
