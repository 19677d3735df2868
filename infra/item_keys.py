"""Context keys of item extraction: docs/extraction.md."""

from __future__ import annotations

from dataclasses import dataclass

from infra.account_keys import AccountKeys
from infra.custom import MODULE
from infra.keys import number, text


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemKeys(AccountKeys):
    """Settings of item extraction."""

    extractor: str = text(
        "",
        "a Python file with your own functions for `[[items]]`: docs/extraction.md",
        pattern=r"(/?[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*\.py)?",
        takes="the path of a .py file; in cdk.json relative to its folder",
    )
    invalid_items_percent: int = number(
        0, 0, 99, "alarm above this percentage of invalid items: docs/extraction.md; 0: no alarm"
    )

    def of_items(self) -> dict[str, str]:
        """Return the worker's environment settings for extractors."""
        return {"extractor": MODULE} if self.extractor else {}
