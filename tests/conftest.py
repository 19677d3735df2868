"""What all tests take for granted of their process."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Let Ctrl-C interrupt: whoever is started in the background ignores it, and so do its own."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
