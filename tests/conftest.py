"""What all tests take for granted of their process."""

from __future__ import annotations

import gc
import signal
from collections.abc import Generator

import pytest


def pytest_configure() -> None:
    """Let Ctrl-C interrupt: whoever is started in the background ignores it, and so do its own."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without looking for garbage, and leave them out of every later look.

    They are half a million objects that stay: looking through them cost 6 s of collecting.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, so that no process is left waiting for it at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
