"""Numbers in the table of docs/grow.md agree with the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from infra.frontier import VISIBILITY_TIMEOUTS
from orbweaver.app import store_runner, store_service
from orbweaver.app.store_ports import StorePorts
from orbweaver.app.store_runner import store_settings
from orbweaver.model.errors import Permanent
from orbweaver.model.settings import Settings
from orbweaver.worker.batch import RETRY_S

GUIDE = Path(__file__).parents[3] / "docs/grow.md"
STORE, STACK = store_settings({}), Settings()
ROWS = {
    "workers": (store_runner.BATCHES,),
    "a worker that dies: its messages come back": (store_runner.TEND_S,),
    "a single URL whose workers die goes to the dead letters after": (
        STORE.worker.strikes_max,
        STACK.worker.strikes_max,
    ),
    "a message that fails is tried": (
        STORE.worker.receive_max,
        store_runner.RETRY_S,
        STACK.worker.receive_max,
        RETRY_S[1],
        RETRY_S[2] / 60,
    ),
    "longest wait to store the bodies of one batch in one file": (
        STORE.worker.segment_wait_s,
        STACK.worker.segment_wait_s,
    ),
    "schedules": (store_service.LATE_MS / 60_000,),
    "webhooks": store_service.WEBHOOK_WAITS_S,
}


@pytest.mark.parametrize("name", ROWS)
def test_row_numbers_equal_code_constants(name: str) -> None:
    row = next(line for line in GUIDE.read_text().splitlines() if line.startswith(f"| {name} |"))
    numbers = re.findall(r"(?<![\w.])\d+(?:\.\d+)?", row.removeprefix(f"| {name} |"))
    assert [float(number) for number in numbers] == [float(number) for number in ROWS[name]]


async def test_store_lacks_catalogue_and_bucket_delivery(tmp_path: Path) -> None:
    ports = StorePorts(STORE, tmp_path)
    try:
        assert ports.catalogue is None
        with pytest.raises(Permanent, match="stack on AWS"):
            await ports.bucket_courier()
    finally:
        await ports.aclose()
    assert STORE.fetching.allowed.networks
    assert not STACK.fetching.allowed.networks
    assert VISIBILITY_TIMEOUTS > 1
