"""Number of worker processes of a crawl on a store, from the command line and from a program."""

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
def test_crawl_with_small_limit_has_one_worker(pages_max: int | None, number: int) -> None:
    """One process orders links better than several processes."""
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
def test_program_has_same_workers_as_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], number: int
) -> None:
    taken = []

    class Refused(Exception):
        """Raised instead of opening the store."""

    def client(**given: Any) -> object:
        taken.append(given["workers"])
        raise Refused

    monkeypatch.setattr(blocking, "Client", client)
    with pytest.raises(Refused):
        orbweaver.crawl("https://shop.example/", store=tmp_path, **options)
    assert taken == [number]
