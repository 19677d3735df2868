"""The error class of this package, and texts for errors of clients of AWS."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class LocalStackError(Exception):
    """A requirement on this machine is not met. The message contains a remedy."""


@contextlib.contextmanager
def aws_errors(deed: str) -> Iterator[None]:
    """Convert errors of clients of AWS to LocalStackError with the text "Cannot `deed`"."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise LocalStackError(f"Cannot {deed}: {error}") from error


def sentence_of(error: Exception) -> str | None:
    """Return a text for an error of an AWS client. None: it is another kind of error."""
    if "botocore" not in sys.modules:  # no client of AWS was imported
        return None
    from botocore.exceptions import BotoCoreError, ClientError

    if isinstance(error, BotoCoreError | ClientError):
        return f"AWS did not do what was asked: {error}"
    return None
