"""A worker that is told to end: what was answered is kept, and the rest is requeued at once."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.app import container as app_container
from orbweaver.frontier.messages import Pack, decode
from orbweaver.model.settings import Settings
from orbweaver.worker.ending import Ending
from tests.memory import ManualClock, Moment, World
from tests.unit.containers import FakeMessages, ports_over
from tests.unit.stage import CRAWL, NOW_MS, SITE, Stage, answer, html, outcomes

if TYPE_CHECKING:
    from orbweaver.model.http_exchange import Failure, Request, Response

POLITE = replace(CRAWL, delay_ms=1_000)
A, B, C = (f"{SITE}/{name}" for name in "abc")


def told_at(stage: Stage, url: str) -> None:
    """Have the worker told to end while it waits for the answer to a URL."""
    whole = stage.web.fetch

    async def fetch(request: Request) -> Response | Failure:
        if request.url == url:
            stage.worker.end()
            await asyncio.Event().wait()
        return await whole(request)

    stage.web.fetch = fetch  # type: ignore[method-assign]


def queued(stage: Stage) -> list[tuple[Pack, int]]:
    """List the packs on the queue, and for how long they are held back."""
    found = [(decode(mail.body), mail.delay_s) for mail in stage.world.sent]
    return [(pack, delay_s) for pack, delay_s in found if isinstance(pack, Pack)]


async def test_what_was_answered_is_kept_and_the_rest_is_requeued() -> None:
    """The first page is recorded, the others return at once, and no message is left."""
    stage = Stage()
    stage.web.put(A, html())
    pack = stage.begin(POLITE, A, B, C)
    told_at(stage, B)
    assert await stage.deliver(pack) == []
    assert outcomes(stage.world) == {A: "fetched.ok"}
    assert [(_urls(sent), delay_s) for sent, delay_s in queued(stage)] == [([B, C], 0)]
    assert stage.web.urls == [A]


async def test_a_pack_that_was_not_begun_is_sent_again_as_it_is() -> None:
    """Nothing is written for it, and it counts as received by no worker that died."""
    stage = Stage()
    pack = stage.begin(POLITE, A, B)
    stage.worker.end()
    assert await stage.deliver(pack) == []
    assert stage.web.urls == []
    assert stage.world.journals == {}
    assert [sent for sent, _ in queued(stage)] == [replace(pack, put_offs=1)]


async def test_what_is_asked_for_is_finished_where_there_is_time() -> None:
    """The page whose answer is under way is recorded, the rest returns at once."""
    stage = Stage()
    stage.web.put(A, html())
    whole = stage.web.fetch

    async def fetch(request: Request) -> Response | Failure:
        stage.worker.rest()
        await asyncio.sleep(0)
        return await whole(request)

    stage.web.fetch = fetch  # type: ignore[method-assign]
    pack = stage.begin(POLITE, A, B, C)
    assert await stage.deliver(pack) == []
    assert outcomes(stage.world) == {A: "fetched.ok"}
    assert [(_urls(sent), delay_s) for sent, delay_s in queued(stage)] == [([B, C], 0)]
    assert stage.web.urls == [A]


async def test_a_suspect_is_not_struck_for_an_announced_end() -> None:
    """Its worker was told to end while it was tried: that says nothing of the page."""
    stage = Stage()
    pack = stage.begin(POLITE, A)
    told_at(stage, A)
    for _ in range(5):
        assert await stage.deliver(pack, receives=2) == []
        assert stage.world.strikes.get(pack.id, 0) == 0
        stage.restart()
    assert stage.world.buried == []


async def test_a_host_that_asks_to_be_left_alone_is_noted_first() -> None:
    """The worker is told to end just as it notes a 429: other workers know of it all the same."""
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


async def test_an_end_from_outside_is_not_taken_for_an_announced_one() -> None:
    """What is cancelled by its caller is cancelled, whether an end was announced or not."""
    ending = Ending()
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()
        await asyncio.Event().wait()

    async def worker() -> None:
        await ending.cut_short(work())

    task = asyncio.create_task(worker())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def _urls(pack: Pack) -> list[str]:
    return [target.url for target in pack.targets]


def test_sigterm_ends_an_idle_container(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two invocations nothing is in work."""
    monkeypatch.setattr(Settings, "from_environment", lambda: Stage().settings)
    container = app_container.Container()
    with pytest.raises(SystemExit):
        container.told_to_end(signal.SIGTERM, None)
    container._runner.close()


def test_sigterm_in_an_invocation_tells_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch is answered, with what the worker requeued acknowledged."""
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
    assert container.work([], 60_000) == ()
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


async def test_work_is_cut_short_in_the_order_in_which_it_began() -> None:
    """So the same seed of the simulation comes to the same, whatever the addresses of tasks."""
    ending, cut = Ending(), []

    async def work(number: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cut.append(number)

    running = [asyncio.ensure_future(ending.cut_short(work(number))) for number in range(50)]
    for _ in range(3):
        await asyncio.sleep(0)
    ending.tell()
    assert await asyncio.gather(*running) == [True] * 50
    assert cut == list(range(50))
