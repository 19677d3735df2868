"""Proxy between the workers and the emulator: forwards calls, or injects the planned faults."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from typing import TYPE_CHECKING

import aiohttp
from aiohttp import web

from tests.chaos import processes, wire
from tests.chaos.faults import Fault, Moment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from localstack.processes import Identity
    from tests.chaos.faults import Doom, Plan
    from tests.chaos.processes import Find

HOST = "127.0.0.1"
HOLD_S = 6.0  # The workers' clients give up after 5 s.
RECORDED_MAX = 20_000
BODY_BYTES_MAX = 8 * 1024 * 1024
# Headers of one connection (RFC 9110, 7.6.1), or wrong for a changed body.
NOT_HANDED_ON = frozenset(
    {"connection", "content-length", "expect", "host", "keep-alive", "transfer-encoding"}
    | {"x-amz-crc32"}
)


class Proxy:
    """Forwards calls of the workers; it injects faults if `armed`."""

    def __init__(self, plan: Plan, target: str, find: Find) -> None:
        self.url = ""
        self.armed = False
        self.kills: Counter[Moment] = Counter()
        self.calls: Counter[str] = Counter()
        self.faults: Counter[Fault] = Counter()
        self.sent: list[tuple[str, str]] = []  # Queue and body, in the order of sending.
        self._plan = plan
        self._target = target
        self._find = find
        self._ends: set[asyncio.Task[None]] = set()
        self._session: aiohttp.ClientSession | None = None

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        service, operation = wire.operation_of(request.headers.get("X-Amz-Target"))
        if request.headers.get("Expect", "").lower() == "100-continue" and request.transport:
            # S3 clients wait for it, and an aiohttp server with a raw handler does not send it.
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await request.read()
        self.calls[f"{service}.{operation}"] += 1
        if len(self.sent) < RECORDED_MAX:
            self.sent += wire.messages(operation, body)
        if not self.armed:
            return await self._forward(request, body)
        doom = self._plan.doom()
        if doom is not None:
            return await self._end(doom, request, body)
        fault = self._plan.draw(service, operation)
        return await self._answer(fault, service, operation, request, body)

    async def _answer(
        self,
        fault: Fault | None,
        service: str,
        operation: str,
        request: web.BaseRequest,
        body: bytes,
    ) -> web.StreamResponse:
        match fault:
            case None:
                return await self._forward(request, body)
            case Fault.THROTTLE:
                return self._refuse(fault, wire.throttled(service, self._plan.chance(operation)))
            case Fault.ERROR:
                return self._refuse(fault, wire.failed(service))
            case Fault.PARTIAL:
                return await self._part(request, operation, body)
            case Fault.TWICE:
                self.faults[fault] += 1
                await self._forward(request, body)
                return await self._forward(request, body)
            case Fault.LOST | Fault.HELD:
                self.faults[fault] += 1
                await self._forward(request, body)
                if fault is Fault.HELD:
                    await asyncio.sleep(HOLD_S)
                if request.transport is not None:
                    request.transport.abort()
                return web.Response(status=wire.SERVER_ERROR)  # No client receives it.

    async def _end(self, doom: Doom, request: web.BaseRequest, body: bytes) -> web.Response:
        """Kill the calling worker: before the call is done, after it, or later."""
        transport = request.transport
        worker = self._find(transport) if transport else None
        match doom.moment:
            case Moment.BEFORE:
                self.kills[doom.moment] += processes.kill(worker)
                return web.Response(status=wire.SERVER_ERROR)  # No client receives it.
            case Moment.AFTER:
                answer = await self._forward(request, body)
                self.kills[doom.moment] += processes.kill(worker)
                return answer
            case Moment.LATER:
                task = asyncio.create_task(self._end_later(worker, doom.delay_s))
                self._ends.add(task)
                task.add_done_callback(self._ends.discard)
                return await self._forward(request, body)

    async def _end_later(self, worker: Identity | None, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        self.kills[Moment.LATER] += processes.kill(worker)

    def _refuse(self, fault: Fault, reply: wire.Reply) -> web.Response:
        self.faults[fault] += 1
        return web.Response(status=reply.status, body=reply.body, headers=reply.headers)

    async def _part(self, request: web.BaseRequest, operation: str, body: bytes) -> web.Response:
        part = wire.part(operation, body, self._plan.chance(operation))
        if part is None:
            return await self._forward(request, body)
        answer = await self._forward(request, part.request)
        if answer.status == web.HTTPOk.status_code and isinstance(answer.body, bytes):
            self.faults[Fault.PARTIAL] += 1
            answer.body = part.complete(answer.body)
        return answer

    async def _forward(self, request: web.BaseRequest, body: bytes) -> web.Response:
        if self._session is None:
            raise RuntimeError("the proxy does not listen")
        headers = [
            (name, value)
            for name, value in request.headers.items()
            if name.lower() not in NOT_HANDED_ON
        ]
        async with self._session.request(
            request.method,
            self._target + request.raw_path,
            headers=headers,
            data=body,
            allow_redirects=False,
        ) as answer:
            kept = [
                (name, value)
                for name, value in answer.headers.items()
                if name.lower() not in NOT_HANDED_ON
            ]
            return web.Response(status=answer.status, headers=kept, body=await answer.read())


@contextlib.asynccontextmanager
async def standing(plan: Plan, target: str, find: Find) -> AsyncIterator[Proxy]:
    """Run a proxy before an endpoint during a block, disarmed at first.

    `find` returns the worker at the other end of a connection.
    """
    proxy = Proxy(plan, target, find)
    server = web.Server(proxy.handle, access_log=None, keepalive_timeout=60)
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:
        proxy._session = session
        try:
            await web.TCPSite(runner, HOST, 0, backlog=1024).start()
            proxy.url = f"http://{HOST}:{runner.addresses[0][1]}"
            yield proxy
        finally:
            await runner.cleanup()
