"""The one error of this package, and sentences for errors of AWS's clients."""

from __future__ import annotations

import sys


class LocalStackError(Exception):
    """Something on this machine is not as needed; the message says what to do about it."""


def sentence_of(error: Exception) -> str | None:
    """Return a sentence for an error of AWS's clients that no caller expected; None for others."""
    if "botocore" not in sys.modules:  # a store needs no client of AWS
        return None
    from botocore.exceptions import BotoCoreError, ClientError

    if isinstance(error, BotoCoreError | ClientError):
        return f"AWS did not do what was asked: {error}"
    return None
