"""Imports of the API's Lambda, which add to its cold start."""

from __future__ import annotations

import subprocess
import sys

import pytest

ROUTING = "aws_lambda_powertools.event_handler"


@pytest.mark.parametrize(
    ("module", "imported"),
    [("handlers.worker", []), ("handlers.exporter", []), ("orbweaver.api.app", [ROUTING])],
)
def test_only_api_imports_router_and_no_lambda_pydantic(module: str, imported: list[str]) -> None:
    asked = [ROUTING, "orbweaver.api.app", "pydantic"]
    program = f"import sys, {module}; print(*[n for n in {asked!r} if n in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [*imported, *(["orbweaver.api.app"] if imported else [])]
