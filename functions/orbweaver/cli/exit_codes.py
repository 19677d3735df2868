"""Exit codes of commands, and the error for what was typed and does not fit."""

from __future__ import annotations

OK, FAILED, INTERRUPTED = 0, 1, 130


class UsageError(Exception):
    """What was typed does not fit; the text says what would."""
