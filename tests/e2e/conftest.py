"""The stack that all tests of the session share, with IAM enforced."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e import enforced

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.stand import Stand


@pytest.fixture(scope="session")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """Deploy the stack to an emulator on a free port, as the command line would."""
    with enforced.standing(tmp_path_factory.mktemp("stand")) as stood:
        yield stood
