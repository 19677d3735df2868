"""Exit codes of commands, and errors whose message contains the fix."""

from __future__ import annotations

OK, FAILED, INTERRUPTED = 0, 1, 130


class UsageError(Exception):
    """The command line or an input file is invalid. The message contains the fix."""


class WriteError(Exception):
    """Files could not be written. The message contains the path and the reason."""
