"""Test vectors of other projects; CONTRIBUTING.md names their sources."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

VARIABLE = "ORBWEAVER_CORPORA"
BESIDE = Path(__file__).parents[2] / "shared" / "corpora"


def corpus(*parts: str) -> Path:
    """Return the path of a file or folder of vectors; skip the test if it is missing."""
    path = Path(os.environ.get(VARIABLE) or BESIDE, *parts)
    if not path.exists():
        pytest.skip(f"no test vectors {'/'.join(parts)}: set {VARIABLE} (CONTRIBUTING.md)")
    return path
