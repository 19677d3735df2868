"""Settings of pytest for all tests."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Generator
from types import FunctionType

import hypothesis
import pytest

# Functions of tests/costs.py and tests/fuzz that measure time, and the clock of CPU time.
TIMED = frozenset({"cpu_s", "growth", "process_time", "slope", "within"})
# A busy machine exceeds any deadline of one example.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


def pytest_configure() -> None:
    """Let Ctrl-C interrupt. Background processes and their children ignore it by default."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without garbage collection, and freeze their half a million objects.

    The garbage collector took 6 s to scan them.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark timed tests, and run slow tests first, so that no process waits for them at the end."""
    for item in items:
        if isinstance(item, pytest.Function) and not TIMED.isdisjoint(_names_in(item.function)):
            item.add_marker(pytest.mark.long)
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def _names_in(function: Callable[..., object]) -> tuple[str, ...]:
    return function.__code__.co_names if isinstance(function, FunctionType) else ()
