"""The mark of a killed emulator: the time since when its state is lost."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MARK = "lost.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """State in memory that was lost when an emulator was killed. It began at `since_s`."""

    since_s: float

    def describe(self, port: int) -> str:
        """Describe the loss, and how to avoid it next time."""
        since = datetime.fromtimestamp(self.since_s, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return (
            f"the emulator on port {port} was killed, or the machine went down: what its tables"
            f" and queues got since {since} is lost, crawls that had finished too (files in its"
            " bucket and exported files are not). To keep records, export a crawl when it has"
            " ended (`orbweaver export --crawl ID`), and stop the emulator with"
            " `orbweaver local down`, which writes its state"
        )


def of(directory: Path) -> Lost | None:
    try:
        return Lost(since_s=json.loads((directory / MARK).read_text())["since_s"])
    except (OSError, ValueError, KeyError):
        return None


def of_all(instances: Path) -> dict[int, Lost]:
    ports = sorted(int(file.parent.name) for file in instances.glob(f"*/{MARK}"))
    return {port: told for port in ports if (told := of(instances / str(port)))}


def mark(directory: Path, since_s: float) -> None:
    """Mark an instance's state as lost since a time. An earlier mark stays."""
    before = of(directory)
    since_s = since_s if before is None else before.since_s
    (directory / MARK).write_text(json.dumps({"since_s": since_s}))


def unmark(directory: Path) -> None:
    (directory / MARK).unlink(missing_ok=True)
