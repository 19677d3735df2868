"""Run the services of a store: schedules, webhooks and the HTTP API.

On AWS these are EventBridge Scheduler, EventBridge with its retries, and API Gateway.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import secrets
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from orbweaver.adapters.sqlite.messages import QueueName
from orbweaver.api.fence import CLOSED, LOOPBACK, LoopbackFence
from orbweaver.app.wiring import api_of, notifying, starting
from orbweaver.control.schedule import Scheduled, ScheduleError, recurrence_of
from orbweaver.control.webhook import NotDelivered
from orbweaver.model.errors import ControlError, PortError
from orbweaver.model.events import COMPLETED

if TYPE_CHECKING:
    from pathlib import Path

    from aiohttp import web

    from orbweaver.adapters.sqlite.messages import ReceivedMessage
    from orbweaver.api.app import Api
    from orbweaver.app.store_ports import StorePorts

_log = logging.getLogger(__name__)

LOOK_S = 1.0
# If no process served the store when a schedule was due, the schedule fires late: once, and only
# within this time.
LATE_MS = 60 * 60_000
# A failed webhook is posted again after each of these numbers of seconds. Then it becomes a dead
# letter, as on AWS.
WEBHOOK_WAITS_S = (60, 300)
EVENTS_AT_ONCE, HIDDEN_S = 10, 120.0
BODY_BYTES_MAX = 6 * 1024 * 1024
TOKEN_FILE = "serve.token"  # noqa: S105 - its name
# Permissions that a file with a secret must not have: access by its group or other users.
OTHERS = stat.S_IRWXG | stat.S_IRWXO


class ScheduleClock:
    """Fires schedules when they are due, once per due time even with several processes."""

    def __init__(self, ports: StorePorts) -> None:
        self._ports = ports

    async def poll(self) -> None:
        ports = self._ports
        now_ms = ports.clock.now_ms()
        for scheduled in await ports.schedules.list():
            if scheduled.paused:
                continue
            fired_ms = ports.schedules.fired_ms(scheduled.name)
            if fired_ms is None:
                ports.schedules.fired(scheduled.name, now_ms)
                continue
            due_ms = _last_due(scheduled, max(fired_ms, now_ms - LATE_MS), now_ms)
            if due_ms is None:
                continue
            try:
                with starting(ports) as starter:
                    # The run's id derives from name and time, so two processes start the same run.
                    await starter.fire(_firing(scheduled, due_ms))
            except (ScheduleError, ControlError, ValueError) as error:
                _log.exception("schedule.failed", extra={"schedule": scheduled.name})
                await ports.queue.dead_letter(scheduled.input, str(error))
            ports.schedules.fired(scheduled.name, due_ms)


def _last_due(scheduled: Scheduled, since_ms: int, now_ms: int) -> int | None:
    recurrence = recurrence_of(scheduled)
    due_ms = None
    while recurrence is not None:
        coming = recurrence.firings_after(since_ms, scheduled.first_ms, 1)
        if not coming or coming[0] > now_ms:
            break
        due_ms = since_ms = coming[0]
    return due_ms


def _firing(scheduled: Scheduled, due_ms: int) -> dict[str, Any]:
    due = datetime.fromtimestamp(due_ms / 1000, UTC).isoformat()
    told: dict[str, Any] = json.loads(scheduled.input)
    return {**told, "due": due}


class WebhookPoster:
    """Posts the ends of crawls to their webhooks, one after the other."""

    def __init__(self, ports: StorePorts) -> None:
        self._ports = ports
        self._inbox = ports.inbox(QueueName.EVENTS)

    async def poll(self) -> None:
        for message in await self._inbox.receive(EVENTS_AT_ONCE, HIDDEN_S):
            event = json.loads(message.body)
            wait_s: int | None = None
            if event["detail-type"] == COMPLETED and event["detail"]["webhook"]:
                wait_s = await self._post(event, message)
            if wait_s is None:
                await self._inbox.delete([message])
            else:
                await self._inbox.show([message], wait_s)

    async def _post(self, event: dict[str, Any], message: ReceivedMessage) -> int | None:
        """Post an event. Return the seconds until the next attempt, or None if there is none."""
        try:
            async with notifying(self._ports) as notifier:
                await notifier.notify(event)
        except NotDelivered as error:
            if message.receives <= len(WEBHOOK_WAITS_S):
                return WEBHOOK_WAITS_S[message.receives - 1]
            await self._ports.queue.dead_letter(message.body, str(error))
        return None


@asynccontextmanager
async def polling(*looks: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Call each function every second while the block runs."""

    async def go_on(look: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await look()
            except PortError as error:
                _log.warning("store.out_of_reach", extra={"error": str(error)})
            await asyncio.sleep(LOOK_S)

    tasks = [asyncio.create_task(go_on(look)) for look in looks]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task


def read_or_create_token(folder: Path) -> str:
    """Return the API token in the store's file, and create it on first use."""
    # Only the store's user can read the file. The token is valid as long as the file exists.
    path = folder / TOKEN_FILE
    with contextlib.suppress(FileNotFoundError):
        found = path.lstat()
        private = stat.S_ISREG(found.st_mode) and not found.st_mode & OTHERS
        if private and found.st_uid == os.getuid() and (token := path.read_text().strip()):
            return token
        path.unlink()
    token = secrets.token_urlsafe(32)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"{token}\n")
    return token


def api_fence(names: Iterable[str], token: str | None) -> LoopbackFence:
    """Create the access check of a store's API, which accepts these host names (api/fence.py)."""
    return LoopbackFence(
        hosts=frozenset((*LOOPBACK, *names)),
        token=token,
        service="this API",
        remedy=f"send the token in the store's file {TOKEN_FILE}, as Authorization: Bearer TOKEN",
    )


def http_api(ports: StorePorts, fence: LoopbackFence) -> web.Application:
    """Create the HTTP API of a store, with the access check before every route."""
    from aiohttp import web

    from orbweaver.api.problems import CONTENT_TYPE, Refused, problem_of

    api = api_of(ports, signed=False)

    def refused(status: int, detail: str) -> web.Response:
        body = asdict(problem_of(Refused(status, detail)))
        return web.json_response(body, status=status, content_type=CONTENT_TYPE)

    @web.middleware
    async def guard(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        refusal = fence.refusal(request.headers)
        if refusal is not None:
            reply: web.StreamResponse = refused(refusal.status, refusal.text)
        else:
            reply = await handler(request)
        reply.headers.update(CLOSED)
        return reply

    async def answer(request: web.Request) -> web.Response:
        try:
            return await answer_request(api, request, request.path)
        except web.HTTPRequestEntityTooLarge:
            return refused(413, f"the body is larger than {BODY_BYTES_MAX:,} bytes")

    app = web.Application(client_max_size=BODY_BYTES_MAX, middlewares=[guard])
    app.router.add_route("*", "/{path:.*}", answer)
    return app


async def answer_request(api: Api, request: web.Request, path: str) -> web.Response:
    from aiohttp import web

    given = await api.answer(await _event_of(request, path))
    headers = {**(given.get("headers") or {})}
    for header, values in (given.get("multiValueHeaders") or {}).items():
        headers[header] = ", ".join(values)
    return web.Response(status=given["statusCode"], headers=headers, body=given["body"].encode())


async def _event_of(request: web.Request, path: str) -> dict[str, Any]:
    """Convert a request into an event of API Gateway's proxy integration (version 1.0)."""
    query: dict[str, list[str]] = {}
    for name, value in request.query.items():
        query.setdefault(name, []).append(value)
    headers: dict[str, list[str]] = {}
    for name, value in request.headers.items():
        headers.setdefault(name, []).append(value)
    return {
        "httpMethod": request.method,
        "path": path,
        "queryStringParameters": {name: values[-1] for name, values in query.items()},
        "multiValueQueryStringParameters": query,
        "headers": {name: values[-1] for name, values in headers.items()},
        "multiValueHeaders": headers,
        "body": (await request.read()).decode(errors="surrogateescape"),
        "isBase64Encoded": False,
        "requestContext": {"requestId": str(uuid4()), "stage": "", "path": path},
    }
