"""The error class of this package, and sentences for errors of AWS's clients."""

from __future__ import annotations

import sys


class LocalStackError(Exception):
    """A requirement on this machine is not met. The message contains the remedy."""


def sentence_of(error: Exception) -> str | None:
    """Return a sentence for an unexpected error of AWS's clients, or None for other errors."""
    if "botocore" not in sys.modules:  # a store needs no client of AWS
        return None
    from botocore.exceptions import BotoCoreError, ClientError

    if isinstance(error, BotoCoreError | ClientError):
        return f"AWS did not do what was asked: {error}"
    return None
