"""The store of a command: what works on it, and what killed processes held."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orbweaver.adapters.sqlite.messages import Outgoing, QueueDepth, QueueName, SqliteMessages
from orbweaver.adapters.sqlite.processes import FOLDER, StoreProcesses
from orbweaver.app.store_ports import StorePorts
from orbweaver.cli.store import StorePlace
from orbweaver.model.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

HOLD_S = 360


def test_a_store_is_idle_once_no_process_works_on_it(tmp_path: Path) -> None:
    """A living process is at work; this command may be one itself."""
    ports = StorePorts(Settings(), tmp_path)
    with ports.ending:
        place = StorePlace(ports=ports)
        assert place.reclaimed()
        with StoreProcesses(tmp_path).taking_part():
            assert not place.reclaimed()
        assert place.reclaimed()
        assert not StorePlace(ports=ports, works=True).reclaimed()


def test_what_a_killed_process_held_is_due_again(tmp_path: Path) -> None:
    """Its messages wait for no hold to end; those of a living one stay held."""
    ports = StorePorts(Settings(), tmp_path)
    with ports.ending, StoreProcesses(tmp_path).taking_part() as alive:
        messages = SqliteMessages(ports.store, clock=ports.clock)
        messages.send(QueueName.CRAWL, [Outgoing(body="a"), Outgoing(body="b")])
        for process in (alive, "1-dead"):
            messages.holder = process
            assert messages.take(QueueName.CRAWL, 1, HOLD_S)
        (tmp_path / FOLDER / "1-dead").touch()
        assert not StorePlace(ports=ports).reclaimed()
        assert messages.depth(QueueName.CRAWL) == QueueDepth(waiting=1, held=1)
