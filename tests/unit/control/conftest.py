"""Fixtures: a `Control` over memory adapters, and a crawl that it has started."""

from __future__ import annotations

import pytest

from orbweaver.model.crawl import Crawl
from tests.unit.control_stage import PLAN, Stage


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
async def crawl(stage: Stage) -> Crawl:
    return await stage.control.start(PLAN)
