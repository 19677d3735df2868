"""How many processes a crawl gets on a store, by the command line and in a program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import orbweaver
from orbweaver.library import blocking
from orbweaver.model.settings import ALONE_PAGES_MAX, CORES, workers_for

SMALL, LARGE = {"max_pages": ALONE_PAGES_MAX}, {"max_pages": ALONE_PAGES_MAX + 1}


@pytest.mark.parametrize(
    ("pages_max", "number"),
    [(1, 1), (ALONE_PAGES_MAX, 1), (ALONE_PAGES_MAX + 1, CORES), (None, CORES)],
)
def test_a_crawl_with_a_small_limit_has_one(pages_max: int | None, number: int) -> None:
    """It asks first for what one process has learned to be good."""
    assert workers_for(pages_max) == number


@pytest.mark.parametrize(
    ("options", "number"),
    [
        (SMALL, 1),
        ({"definition": {"limits": {"pages": ALONE_PAGES_MAX}}}, 1),
        (LARGE, CORES),
        ({}, CORES),
        ({**SMALL, "workers": 3}, 3),
        ({"extractors": {"one": len}}, 1),
    ],
)
def test_a_program_has_as_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], number: int
) -> None:
    """By the limit among its options or in its definition; what it says comes first."""
    taken = []

    class Refused(Exception):
        """The store is not opened."""

    def client(**given: Any) -> object:
        taken.append(given["workers"])
        raise Refused

    monkeypatch.setattr(blocking, "Client", client)
    with pytest.raises(Refused):
        orbweaver.crawl("https://shop.example/", store=tmp_path, **options)
    assert taken == [number]
