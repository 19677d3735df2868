"""The one error of this package."""

from __future__ import annotations


class LocalStackError(Exception):
    """Something on this machine is not as needed; the message says what to do about it."""
