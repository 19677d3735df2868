"""Fixtures: an API without crawls, and one with a running crawl."""

from __future__ import annotations

import pytest

from tests.unit.api.stage import CRAWL, Stage


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def begun() -> Stage:
    stage = Stage()
    stage.begin(CRAWL)
    return stage
