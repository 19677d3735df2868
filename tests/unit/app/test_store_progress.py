"""Progress of a crawl while its messages are in flight."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from orbweaver.app import wiring
from orbweaver.model.crawl import State
from tests.unit.app.store_machine import PAGES, Machine
from tests.unit.stage import CRAWL, SmallWeb

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from orbweaver.control.crawl_control import Control
    from orbweaver.model.http_exchange import Request
    from tests.unit.stage import Answer


class WatchedWeb(SmallWeb):
    """Records at each request the reported and the committed numbers of ended URLs."""

    control: Control
    stored: Control

    def __init__(self, web: SmallWeb, machine: Machine) -> None:
        super().__init__(machine.clock)
        self.answers = web.answers
        self.told: list[tuple[int, int]] = []

    async def fetch(self, request: Request) -> Answer:
        told, stored = await self.control.status(CRAWL.id), await self.stored.status(CRAWL.id)
        self.told.append((told.counters.done, stored.counters.done))
        return await super().fetch(request)


async def test_progress_counts_each_page_before_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path)
    web = WatchedWeb(machine.web, machine)
    monkeypatch.setattr(wiring, "fetcher_of", lambda _ports: web)
    crawl = replace(CRAWL, delay_ms=1_000)
    await machine.start(crawl)
    ports = machine.open()
    web.control, web.stored = wiring.control_of(ports, ports.underway), wiring.control_of(ports)
    await machine.work(ports)
    assert len(web.told) == PAGES
    assert [told for told, _ in web.told] == list(range(PAGES))
    assert max(told - stored for told, stored in web.told) > 1
    assert not ports.underway.counts(CRAWL.id)
    status = await web.control.status(CRAWL.id)
    assert (status.crawl.state, status.counters.done) == (State.FINISHED, PAGES)
