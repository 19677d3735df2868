"""Settings of the deployed stack that the emulator ignores in a template."""

from __future__ import annotations

import pytest

from tests.e2e.stand import TABLES, Stand

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

LOOPING = ("WorkerFunction", "ExporterFunction")


def test_tables_expire_and_functions_may_loop(stand: Stand) -> None:
    """The emulator ignores both settings in a template."""
    with stand.client("dynamodb") as dynamodb:
        lives = [
            dynamodb.describe_time_to_live(TableName=stand.outputs[name])["TimeToLiveDescription"]
            for name in TABLES
        ]
    with stand.client("lambda") as functions:
        loops = [
            functions.get_function_recursion_config(FunctionName=stand.outputs[name])
            for name in LOOPING
        ]

    wanted = {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires_at"}
    assert lives == [wanted] * len(TABLES)
    assert [loop["RecursiveLoop"] for loop in loops] == ["Allow"] * len(LOOPING)
