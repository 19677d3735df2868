"""Fixtures: a console over its own store, local or hosted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.console.hosting import Hosting, hosted
from tests.unit.console.stage import Stage, opened

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with opened(tmp_path) as stage:
        yield stage


@pytest.fixture
async def hosting(tmp_path: Path) -> AsyncIterator[Hosting]:
    async with hosted(tmp_path) as hosting:
        yield hosting
