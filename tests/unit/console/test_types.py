"""Type check of the console's scripts, by JSDoc and without a compiler."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2] / "console"
CHECKER = PROJECT / "node_modules" / ".bin" / "tsc"


@pytest.mark.skipif(not CHECKER.exists(), reason="`make setup` installs the type checker")
def test_scripts_pass_type_checker() -> None:
    done = subprocess.run(
        [CHECKER, "--project", PROJECT], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
