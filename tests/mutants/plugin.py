"""What pytest does besides in a copy: it takes some tests alone, in order, and within limits."""

from __future__ import annotations

import faulthandler
import json
import os
import resource
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

# The variables by which this process is asked: a file that names tests, one for what they took.
WANTED, TOOK, SECONDS_MAX = "MUTANTS_WANTED", "MUTANTS_TOOK", "MUTANTS_SECONDS_MAX"
# A change may make a loop endless; no test needs so much.
MEMORY_BYTES_MAX = 3 << 30
_took: defaultdict[str, float] = defaultdict(float)
_failed: set[str] = set()


def test_of(case: str) -> str:
    """Name the function of a case: cases of a test are tried together."""
    return case.partition("[")[0]


def pytest_configure() -> None:
    """Bound the process: after its time it ends, wherever it hangs."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    if seconds := os.environ.get(SECONDS_MAX):
        faulthandler.dump_traceback_later(float(seconds), exit=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests that are wanted, in the order in which they are named."""
    if wanted := os.environ.get(WANTED):
        places = {name: at for at, name in enumerate(Path(wanted).read_text().splitlines())}
        kept = [item for item in items if test_of(item.nodeid) in places]
        items[:] = sorted(kept, key=lambda item: places[test_of(item.nodeid)])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note what a test took, and whether it failed."""
    _took[test_of(report.nodeid)] += report.duration
    if report.failed:
        _failed.add(test_of(report.nodeid))


def pytest_sessionfinish() -> None:
    """Write down what those tests took that can notice anything."""
    if took := os.environ.get(TOOK):
        sound = {name: seconds for name, seconds in _took.items() if name not in _failed}
        Path(took).write_text(json.dumps(sound))
