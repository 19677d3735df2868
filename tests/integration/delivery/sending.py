"""Exports for an SFTP server, and a deliverer that sends them."""

from __future__ import annotations

import random
from typing import Any

from orbweaver.adapters.local.sftp import WINDOW_BYTES
from orbweaver.delivery.deliverer import Deliverer, Receiver
from orbweaver.exporting.formats import FORMATS
from orbweaver.exporting.manifest import File
from tests.integration.delivery.conftest import Way
from tests.memory import MemoryDeliveries, MemoryMetrics
from tests.unit.delivering import exported

FOREVER_MS = 10**15


def big(windows: float, seed: int = 1) -> bytes:
    """Build a body of this many SFTP windows."""
    return random.Random(seed).randbytes(round(windows * WINDOW_BYTES))


def deliverer(way: Way, **how: Any) -> Deliverer:
    return Deliverer(
        files=way.files,
        receivers={"sftp": Receiver(formats=FORMATS, courier=way.opener(**how))},
        queue=MemoryDeliveries(way.world),
        clock=way.clock,
        metrics=MemoryMetrics(),
    )


def one_file(way: Way, body: bytes) -> File:
    return exported(way.world.files, {"c": [body]}).files[0]
