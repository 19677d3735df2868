"""pytest plugin for copies of the tree: it selects tests, in order, with limits."""

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

# Environment variables: a file with the names of tests, and a file for their times.
WANTED, TOOK, SECONDS_MAX = "MUTANTS_WANTED", "MUTANTS_TOOK", "MUTANTS_SECONDS_MAX"
# A change may make a loop endless. No test needs this much.
MEMORY_BYTES_MAX = 3 << 30
_took: defaultdict[str, float] = defaultdict(float)
_failed: set[str] = set()


def test_of(case: str) -> str:
    """Return the test function of a case: the cases of a test run together."""
    return case.partition("[")[0]


def pytest_configure() -> None:
    """Limit the memory of the process, and end it after its time."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    if seconds := os.environ.get(SECONDS_MAX):
        faulthandler.dump_traceback_later(float(seconds), exit=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if wanted := os.environ.get(WANTED):
        places = {name: at for at, name in enumerate(Path(wanted).read_text().splitlines())}
        kept = [item for item in items if test_of(item.nodeid) in places]
        items[:] = sorted(kept, key=lambda item: places[test_of(item.nodeid)])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _took[test_of(report.nodeid)] += report.duration
    if report.failed:
        _failed.add(test_of(report.nodeid))


def pytest_sessionfinish() -> None:
    if took := os.environ.get(TOOK):
        sound = {name: seconds for name, seconds in _took.items() if name not in _failed}
        Path(took).write_text(json.dumps(sound))
