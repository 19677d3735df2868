"""Browser shared by a module's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from orbweaver.rendering.renderer import Renderer
from orbweaver.rendering.task import RenderLimits
from tests.rendering.stage import PROGRAM


@pytest.fixture
async def renderer(tmp_path: Path) -> AsyncIterator[Renderer]:
    """Start a browser for one test, with its folder inside the test's."""
    limits = RenderLimits(total_s=30, reading_s=20)
    async with Renderer(PROGRAM, limits, parent=str(tmp_path)) as made:
        yield made
