"""Shutdown of a worker: answered pages are stored, and the rest is requeued at once."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import replace
from typing import Any

import pytest

from orbweaver.app import container as app_container
from orbweaver.frontier.messages import Pack, decode
from orbweaver.model.http_exchange import Failure, Request, Response
from orbweaver.model.settings import Settings
from orbweaver.worker.shutdown import ShutdownSignal
from tests.memory import ManualClock, Moment, World
from tests.unit.containers import FakeMessages, ports_over
from tests.unit.stage import CRAWL, NOW_MS, SITE, Stage, answer, html, outcomes

POLITE = replace(CRAWL, delay_ms=1_000)
A, B, C = (f"{SITE}/{name}" for name in "abc")


def told_at(stage: Stage, url: str) -> None:
    """Shut the worker down while it waits for the answer to a URL."""
    whole = stage.web.fetch

    async def fetch(request: Request) -> Response | Failure:
        if request.url == url:
            stage.worker.end()
            await asyncio.Event().wait()
        return await whole(request)

    stage.web.fetch = fetch  # type: ignore[method-assign]


def queued(stage: Stage) -> list[tuple[Pack, int]]:
    found = [(decode(mail.body), mail.delay_s) for mail in stage.world.sent]
    return [(pack, delay_s) for pack, delay_s in found if isinstance(pack, Pack)]


async def test_shutdown_keeps_answered_page_and_requeues_rest() -> None:
    stage = Stage().serve({A: html()})
    pack = stage.begin(POLITE, A, B, C)
    told_at(stage, B)
    assert await stage.deliver(pack) == []
    assert outcomes(stage.world) == {A: "fetched.ok"}
    assert [(_urls(sent), delay_s) for sent, delay_s in queued(stage)] == [([B, C], 0)]
    assert stage.web.urls == [A]


async def test_shutdown_sends_unstarted_pack_again() -> None:
    stage = Stage()
    pack = stage.begin(POLITE, A, B)
    stage.worker.end()
    assert await stage.deliver(pack) == []
    assert stage.web.urls == []
    assert stage.world.journals == {}
    assert [sent for sent, _ in queued(stage)] == [replace(pack, requeues=1)]


async def test_rest_finishes_running_request_and_requeues_rest() -> None:
    stage = Stage().serve({A: html()})
    stage.web.before = lambda _request: stage.worker.drain()
    assert await stage.deliver(stage.begin(POLITE, A, B, C)) == []
    assert outcomes(stage.world) == {A: "fetched.ok"}
    assert [(_urls(sent), delay_s) for sent, delay_s in queued(stage)] == [([B, C], 0)]
    assert stage.web.urls == [A]


async def test_suspect_is_not_struck_by_shutdown() -> None:
    stage = Stage()
    pack = stage.begin(POLITE, A)
    told_at(stage, A)
    for _ in range(5):
        assert await stage.deliver(pack, receives=2) == []
        assert stage.world.strikes.get(pack.id, 0) == 0
        stage.restart()
    assert stage.world.buried == []


async def test_shutdown_still_records_block_of_host() -> None:
    """Other workers must see the 429."""
    stage = Stage()

    async def gate(effect: str, moment: Moment) -> None:
        if effect == "hosts.block" and moment is Moment.BEFORE:
            stage.worker.end()
            await asyncio.sleep(0)

    stage.web.put(A, answer(429, retry_after="600"))
    pack = stage.begin(POLITE, A)
    stage.restart(gate)
    assert await stage.deliver(pack) == []
    (host,) = stage.world.hosts.values()
    assert host.blocked_until_ms >= NOW_MS + 600_000
    assert [_urls(sent) for sent, _ in queued(stage)] == [[A]]


async def test_cancellation_is_not_taken_for_shutdown() -> None:
    ending = ShutdownSignal()
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()
        await asyncio.Event().wait()

    async def worker() -> None:
        await ending.run_until_end(work())

    task = asyncio.create_task(worker())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def _urls(pack: Pack) -> list[str]:
    return [target.url for target in pack.targets]


def test_sigterm_ends_idle_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Settings, "from_environment", lambda: Stage().settings)
    container = app_container.Container()
    with pytest.raises(SystemExit):
        container.told_to_end(signal.SIGTERM, None)
    container._runner.close()


def test_sigterm_during_invocation_ends_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    class Told:
        def end(self) -> None:
            told.append("end")

        def flush(self) -> None:
            pass

        async def run(self, *_: Any) -> tuple[str, ...]:
            container.told_to_end(signal.SIGTERM, None)
            container.told_to_end(signal.SIGTERM, None)
            await asyncio.sleep(0)
            return ()

    monkeypatch.setattr(Settings, "from_environment", lambda: Stage().settings)
    container = app_container.Container()
    container._worker = Told()  # type: ignore[assignment]
    monkeypatch.setattr(app_container, "connect", _connected)
    assert container.process_batch([], 60_000) == ()
    assert told == ["end", "end"]
    container._runner.close()


def _connected(settings: Any, meter: Any) -> Any:
    class Open:
        async def __aenter__(self) -> Any:
            return ports_over(
                World(),
                settings=settings,
                meter=meter,
                clock=ManualClock(NOW_MS),
                messages=FakeMessages(),
            )

        async def __aexit__(self, *_: object) -> None:
            return None

    return Open()


async def test_work_is_cut_short_in_start_order() -> None:
    """The simulation needs a deterministic order."""
    ending, cut = ShutdownSignal(), []

    async def work(number: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cut.append(number)

    running = [asyncio.ensure_future(ending.run_until_end(work(number))) for number in range(50)]
    for _ in range(3):
        await asyncio.sleep(0)
    ending.announce()
    assert await asyncio.gather(*running) == [True] * 50
    assert cut == list(range(50))
