"""Settings of pytest for all tests."""

from __future__ import annotations

import gc
import signal
from collections.abc import Generator

import pytest


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run slow tests first, so that no process waits for them at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
