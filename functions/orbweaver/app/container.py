"""Open ports and build components once per Lambda container.

A container keeps one event loop and all open clients. `asyncio.run` would close the loop between
two invocations.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

from orbweaver.adapters.aws.clients import Aws, Watcher
from orbweaver.adapters.aws.usage_meter import UsageMeter
from orbweaver.app.aws_ports import Ports, meter_of
from orbweaver.app.wiring import (
    api_of,
    delivering,
    keep_made,
    notifying,
    starting,
    worker_of,
)
from orbweaver.model.settings import Settings, function_name, in_lambda

if TYPE_CHECKING:
    from orbweaver.delivery.deliverer import ReceivedOrder
    from orbweaver.exporting.exporter import Exporter
    from orbweaver.worker.batch import Worker
    from orbweaver.worker.pack import Delivery

T = TypeVar("T")


class Answerer(Protocol):
    """Answers requests of API Gateway."""

    async def answer(self, event: Mapping[str, Any]) -> dict[str, Any]: ...


Answering: TypeAlias = Callable[[Ports], Answerer]
Job: TypeAlias = Literal["work", "answer", "export", "fire", "notify", "deliver"]

# AWS clients that the first invocation of a job nearly always needs.
CLIENTS: dict[Job, tuple[str, ...]] = {
    "work": ("dynamodb", "sqs", "s3"),
    "answer": ("dynamodb", "sqs"),
    "export": ("dynamodb", "sqs", "s3"),
    "fire": ("dynamodb", "sqs"),
    "notify": ("dynamodb", "secretsmanager"),
    "deliver": ("sqs", "s3"),
}


@asynccontextmanager
async def connect(settings: Settings, meter: UsageMeter | None = None) -> AsyncIterator[Ports]:
    """Open the ports of the stack that `settings` name, with AWS credentials of the environment."""
    meter = meter or meter_of(settings)
    watchers: list[Watcher] = [meter]
    tested = bool(settings.function.permissions_file)
    if tested:
        from orbweaver.adapters.aws.permissions import Recorder

        watchers.append(Recorder(settings.function.permissions_file, function_name()))
    async with Aws(None, *watchers, validates=tested) as aws:
        ports = Ports(settings, aws, meter)
        try:
            yield ports
        finally:
            await ports.aclose()


class Container:
    """One Lambda execution environment: an event loop and the clients that are open in it."""

    def __init__(self) -> None:
        self._settings = Settings.from_environment()
        self._runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        self._ports: Ports | None = None
        self._worker: Worker | None = None
        self._answerer: Answerer | None = None
        self._exporter: Exporter | None = None
        self._invoked = False
        self._meter = meter_of(self._settings)
        _log_as_json(self._meter)

    def prepare(self, job: Job, answering: Answering = api_of) -> None:
        """Open the clients of a job and build its components before the first invocation."""

        async def made() -> None:
            ports = await self._opened()
            await ports.aws.open(*CLIENTS[job])
            match job:
                case "work":
                    self._working(ports)
                case "answer":
                    self._answering(ports, answering)
                case "export":
                    self._exporting(ports)
                case "fire":
                    with starting(ports):  # created per invocation; this loads its imports
                        pass
                case "notify":
                    async with notifying(ports):
                        pass
                case "deliver":
                    with delivering(ports):
                        pass

        self._runner.run(made())

    def told_to_end(self, _signal: int, _frame: object) -> None:
        """Requeue the worker's current work, or end the process if there is none (on SIGTERM)."""
        # Lambda sends SIGTERM only to functions with an extension, and this stack has none.
        # Emulators and containers send it to any function (docs/protocol.md).
        if self._worker is None or not self._invoked:
            raise SystemExit(0)
        self._runner.get_loop().call_soon_threadsafe(self._worker.end)

    def record_init(self, seconds: float) -> None:
        self._meter.record_init(seconds)

    def process_batch(self, deliveries: Sequence[Delivery], remaining_ms: int) -> tuple[str, ...]:
        async def run(ports: Ports) -> tuple[str, ...]:
            worker = self._working(ports)
            try:
                return await worker.run(deliveries, ports.clock.now_ms() + remaining_ms)
            finally:
                worker.flush()

        return self._run(run, [delivery.body for delivery in deliveries])

    def _working(self, ports: Ports) -> Worker:
        if self._worker is None:
            self._worker = worker_of(ports)
        return self._worker

    def export(self, event: dict[str, Any], identity: str, remaining_ms: int) -> dict[str, Any]:
        """Start the export that an event requests, or carry out the export orders in it."""
        from orbweaver.app.wiring_exporting import exports_counted
        from orbweaver.model.metrics import Metric

        async def run(ports: Ports) -> dict[str, Any]:
            exporter = self._exporting(ports)
            with exports_counted(ports) as metrics:
                if "Records" not in event:
                    return {"days": list(await exporter.begin(event, identity))}
                deadline_ms = ports.clock.now_ms() + remaining_ms
                for record in event["Records"]:
                    if await exporter.handle(record["body"], deadline_ms) is not None:
                        metrics.add(Metric.EXPORTS_SEALED, 1)
            return {}

        return self._run(run)

    def _exporting(self, ports: Ports) -> Exporter:
        from orbweaver.app.wiring_exporting import exporter_of

        if self._exporter is None:
            self._exporter = exporter_of(ports)
        return self._exporter

    def fire(self, event: dict[str, Any]) -> dict[str, str]:
        async def run(ports: Ports) -> dict[str, str]:
            with starting(ports) as starter:
                return await starter.fire(event)

        return self._run(run)

    def notify(self, event: dict[str, Any]) -> dict[str, str]:
        async def run(ports: Ports) -> dict[str, str]:
            async with notifying(ports) as notifier:
                return await notifier.notify(event)

        return self._run(run)

    def deliver(self, taken: ReceivedOrder, remaining_ms: int) -> tuple[str, ...]:
        """Deliver an export. Return the message's id if that fails."""

        async def run(ports: Ports) -> tuple[str, ...]:
            with delivering(ports) as deliverer:
                return await deliverer.run(taken, ports.clock.now_ms() + remaining_ms)

        return self._run(run)

    def answer(self, event: dict[str, Any], answering: Answering = api_of) -> dict[str, Any]:
        async def run(ports: Ports) -> dict[str, Any]:
            return await self._answering(ports, answering).answer(event)

        return self._run(run)

    def _answering(self, ports: Ports, make: Answering) -> Answerer:
        if self._answerer is None:
            self._answerer = make(ports)
        return self._answerer

    def _run(self, act: Callable[[Ports], Coroutine[Any, Any, T]], bodies: Sequence[str] = ()) -> T:
        async def invoked() -> T:
            with self._meter.invocation(bodies):
                return await act(await self._opened())

        self._invoked = True
        try:
            return self._runner.run(invoked())
        finally:
            self._invoked = False

    async def _opened(self) -> Ports:
        if self._ports is None:
            opening = connect(self._settings, self._meter)
            self._ports = await self._stack.enter_async_context(opening)
        return self._ports


@cache
def container() -> Container:
    return Container()


def prepare(job: Job, answering: Answering = api_of) -> None:
    """Prepare the container for a job at import time, if this process runs in Lambda."""
    # Lambda's init phase has a whole CPU. An invocation of 1,024 MB has little more than half of
    # one.
    if in_lambda():
        container().prepare(job, answering)
        if job == "work":
            signal.signal(signal.SIGTERM, container().told_to_end)
        keep_made()
        # Lambda bills the init phase, which begins with this process (`Init Duration` in its log).
        container().record_init(process_age_s())
    gc.enable()


def process_age_s(stat: Path = Path("/proc/self/stat")) -> float:
    """Return the age of this process in seconds by the system's clock, or 0 if it is unknown."""
    try:
        # Field 22, in ticks. Split after the name in parentheses, which may contain any character.
        started = int(stat.read_text().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - started)


def _log_as_json(meter: UsageMeter) -> None:
    from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter

    from orbweaver.adapters.aws.usage_meter import MeteredStream

    logger = logging.getLogger("orbweaver")
    if not logger.handlers:
        handler = logging.StreamHandler(MeteredStream(sys.stderr, meter))
        handler.setFormatter(LambdaPowertoolsFormatter())
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False
