"""Exit codes of commands, and the error for wrong usage."""

from __future__ import annotations

OK, FAILED, INTERRUPTED = 0, 1, 130


class UsageError(Exception):
    """The command line or a file is wrong. The message contains the fix."""
