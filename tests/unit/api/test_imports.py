"""What a function imports is what its cold start waits for."""

from __future__ import annotations

import subprocess
import sys

import pytest

ROUTING = "aws_lambda_powertools.event_handler"


@pytest.mark.parametrize(
    ("module", "imported"),
    [("handlers.worker", []), ("handlers.exporter", []), ("orbweaver.api.app", [ROUTING])],
)
def test_only_the_api_routes(module: str, imported: list[str]) -> None:
    """The worker waits for nothing of the API, and nobody for pydantic."""
    asked = [ROUTING, "orbweaver.api.app", "pydantic"]
    program = f"import sys, {module}; print(*[n for n in {asked!r} if n in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [*imported, *(["orbweaver.api.app"] if imported else [])]
