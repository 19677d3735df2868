"""Concurrent users of one stack: they start crawls, steer them, and receive their completion.

They act through `Control`, like the command line and the API.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import time
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from orbweaver.adapters.local.clock import SystemClock
from orbweaver.app import container
from orbweaver.cli import session
from orbweaver.cli.context import CliContext
from orbweaver.cli.local_machine import ThisMachine
from orbweaver.cli.stack import settings_from

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    import pytest

    from orbweaver.app.aws_ports import Ports
    from orbweaver.control.crawl_control import Control
    from orbweaver.control.crawl_spec import CrawlSpec
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.settings import Settings
    from tests.e2e.stand import Stand

POLL_S = 0.05
WAIT_S_MAX = 150.0
LISTEN_S = 1


class SlowClock(SystemClock):
    """A slow clock: a crawl started by it began in the past."""

    def __init__(self, behind_s: float) -> None:
        self._behind_ms = round(behind_s * 1000)

    def now_ms(self) -> int:
        return super().now_ms() - self._behind_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """An announcement, and the crawl's counts read on its arrival."""

    detail: Mapping[str, Any]
    counts: Mapping[str, int]
    heard_s: float


class Office:
    """Shared parts of the users: control of the stack, and a listener on its event bus."""

    def __init__(self, ports: Ports, control: Control, tardy: Control, queue_url: str) -> None:
        """Control by a correct clock; `tardy` controls by a slow one."""
        self.heard: list[Heard] = []
        self._control = control
        self._tardy = tardy
        self._ports = ports
        self._queue_url = queue_url

    async def start(self, plan: CrawlSpec, *, tardy: bool = False) -> Crawl:
        return await (self._tardy if tardy else self._control).start(plan)

    async def steer(self, action: str, crawl_id: str) -> None:
        await getattr(self._control, action)(crawl_id)

    async def counts(self, crawl_id: str) -> dict[str, int]:
        return dict((await self._control.status(crawl_id)).counters.total)

    async def ended(self, crawl_id: str) -> None:
        await until(lambda: self.has_ended(crawl_id), f"{crawl_id} is announced")

    def has_ended(self, crawl_id: str) -> bool:
        return any(heard.detail["crawl"] == crawl_id for heard in self.heard)

    async def listen(self) -> None:
        sqs = await self._ports.aws.client("sqs")
        while True:
            await self._take(sqs, LISTEN_S)

    async def _take(self, sqs: Any, wait_s: int) -> None:
        found = await sqs.receive_message(
            QueueUrl=self._queue_url, MaxNumberOfMessages=10, WaitTimeSeconds=wait_s
        )
        for message in found.get("Messages", ()):
            await sqs.delete_message(
                QueueUrl=self._queue_url, ReceiptHandle=message["ReceiptHandle"]
            )
            detail = json.loads(message["Body"])["detail"]
            counts = await self.counts(detail["crawl"])
            heard = Heard(detail=detail, counts=counts, heard_s=time.monotonic())
            self.heard.append(heard)


@asynccontextmanager
async def at_work(
    stand: Stand, queue_url: str, monkeypatch: pytest.MonkeyPatch, *, slow_s: float = 0.0
) -> AsyncIterator[Office]:
    """Connect to a stack and listen; meanwhile this process uses only that stack."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in stand.environment.items():
        monkeypatch.setenv(name, value)
    settings = settings_from(stand.outputs, ThisMachine(), stand.environment)
    async with AsyncExitStack() as opened:
        mine = await opened.enter_async_context(_session(settings, SystemClock()))
        other = await opened.enter_async_context(_session(settings, SlowClock(slow_s)))
        office = Office(cast("Ports", mine.ports), mine.control, other.control, queue_url)
        listening = asyncio.create_task(office.listen())
        try:
            yield office
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)


@asynccontextmanager
async def _session(settings: Settings, clock: SystemClock) -> AsyncIterator[session.Session]:
    @asynccontextmanager
    async def connect(settings: Settings, _: Mapping[str, str]) -> AsyncIterator[Ports]:
        async with container.connect(settings) as ports:
            ports.clock = clock
            yield ports

    around = CliContext(
        out=io.StringIO(),
        err=io.StringIO(),
        environment={},
        folder=Path(),
        machine=ThisMachine(),
        connect=connect,
        web=_no_web,
        clock=clock,
    )
    async with session.opened(around, settings, {}) as open_session:
        yield open_session


def _no_web() -> Any:
    raise AssertionError("nobody here looks at the web")


async def until(condition: Callable[[], bool], what: str, timeout_s: float = WAIT_S_MAX) -> None:
    """Poll a condition while other tasks run; fail after the timeout."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, f"not within {timeout_s} s: {what}"
        await asyncio.sleep(POLL_S)
