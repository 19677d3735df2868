"""The error class of this package, and texts for errors of AWS's clients."""

from __future__ import annotations

import sys


class LocalStackError(Exception):
    """A requirement on this machine is not met. The message contains the remedy."""


def sentence_of(error: Exception) -> str | None:
    """Return a text for errors of AWS's clients, or None for other errors."""
    if "botocore" not in sys.modules:  # Commands on a local store do not import AWS's clients.
        return None
    from botocore.exceptions import BotoCoreError, ClientError

    if isinstance(error, BotoCoreError | ClientError):
        return f"AWS did not do what was asked: {error}"
    return None
