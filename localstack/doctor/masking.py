"""Masking of reports: account ids, ARNs, keys and addresses never appear.

Checks return no text from AWS. As a second safeguard, this module masks every text of a report,
also names that the user has given.
"""

from __future__ import annotations

import re
from typing import Any

_PATTERNS = (
    (re.compile(r"arn:[\w-]*:[^\s\"',]*"), "arn:…"),
    (re.compile(r"\b(?:A[KS]IA|AIDA|AROA)[A-Z0-9]{12,}\b"), "…"),
    (re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"), "…@…"),
    (re.compile(r"\bhttps?://[^\s\"',]+"), "https://…"),
)
_ACCOUNT = re.compile(r"(?<!\d)\d{8}(\d{4})(?!\d)")


def account(number: str) -> str:
    """Return an account id with only its last four digits."""
    found = re.fullmatch(r"\d{8}(\d{4})", number)
    return f"********{found[1]}" if found else "(not an account id)"


def text(given: str) -> str:
    """Mask the parts of a text that could be secret."""
    for pattern, shown in _PATTERNS:
        given = pattern.sub(shown, given)
    return _ACCOUNT.sub(r"********\1", given)


def everything(given: Any) -> Any:
    """Mask every text in a report. Numbers and booleans are not changed."""
    match given:
        case str():
            return text(given)
        case dict():
            return {text(str(key)): everything(value) for key, value in given.items()}
        case list() | tuple():
            return [everything(value) for value in given]
        case _:
            return given
