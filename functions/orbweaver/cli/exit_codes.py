"""Exit codes of commands, and errors whose message contains the fix."""

from __future__ import annotations

OK, FAILED, INTERRUPTED = 0, 1, 130


class UsageError(Exception):
    """The command line or a file is wrong. The message contains the fix."""


class WriteError(Exception):
    """Files could not be written. The text contains place and reason."""
