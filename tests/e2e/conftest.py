"""The stack that all tests of the session share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from localstack import stack
from orbweaver.cli.stacks import LOCAL_CONTEXT
from tests.e2e.stand import Stand

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """Deploy the stack to an emulator on a free port, as the command line would."""
    with stack.temporary(context=LOCAL_CONTEXT) as stood:
        yield Stand(stood, tmp_path_factory.mktemp("stand"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, so that no process is left waiting for it at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
