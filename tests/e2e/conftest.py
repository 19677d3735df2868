"""Fixtures: the stack that all tests of the session share, with IAM enforced, and a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e import enforced
from tests.e2e.stand import store_stand

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.stand import CommandStand, Stand


@pytest.fixture(scope="session")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """Deploy the stack to an emulator on a free port with the command line."""
    with enforced.standing(tmp_path_factory.mktemp("stand")) as stood:
        yield stood


@pytest.fixture(scope="session", params=["stack", "store"])
def anywhere(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CommandStand]:
    """Run a test on the stack and on the store."""
    if request.param == "stack":
        yield request.getfixturevalue("stand")
        return
    with store_stand(tmp_path_factory.mktemp("store")) as served:
        yield served
