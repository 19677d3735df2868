"""How many processes a crawl gets on a store."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbweaver.cli.command import ALONE_PAGES_MAX, CORES
from orbweaver.cli.commands.crawl import workers_for
from tests.unit.stage import CRAWL


@pytest.mark.parametrize(
    ("pages_max", "number"), [(1, 1), (ALONE_PAGES_MAX, 1), (ALONE_PAGES_MAX + 1, CORES)]
)
def test_a_crawl_with_a_small_limit_has_one(pages_max: int, number: int) -> None:
    """It asks first for what one process has learned to be good."""
    assert workers_for(replace(CRAWL, pages_max=pages_max)) == number
