"""The console's scripts are of the types that they say (JSDoc); nothing is compiled."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2] / "console"
CHECKER = PROJECT / "node_modules" / ".bin" / "tsc"


@pytest.mark.skipif(not CHECKER.exists(), reason="`make setup` installs the type checker")
def test_scripts_are_of_the_types_that_they_say() -> None:
    """By TypeScript's checker, as strictly as it can."""
    done = subprocess.run(
        [CHECKER, "--project", PROJECT], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
