"""A host with one page that kills the worker that requests it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from aiohttp import web

from tests.chaos import processes
from tests.sites.graph import page, robots

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.chaos.processes import Find

HOST = "127.0.0.1"
PATH = "/lethal"


class Lethal:
    """The host; it kills if `armed`, and `find` returns the worker of a connection."""

    def __init__(self, find: Find) -> None:
        self.url = ""
        self.armed = True
        self.kills = 0
        self._find = find

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.raw_path == "/robots.txt":
            answer = robots("User-agent: *\n")
            return web.Response(status=answer.status, headers=answer.headers, body=answer.body)
        transport = request.transport
        if self.armed and transport is not None:
            self.kills += processes.kill(self._find(transport))
        answer = page("Harmless now")
        return web.Response(status=answer.status, headers=answer.headers, body=answer.body)


@contextlib.asynccontextmanager
async def standing(find: Find) -> AsyncIterator[Lethal]:
    lethal = Lethal(find)
    runner = web.ServerRunner(web.Server(lethal.handle, access_log=None), shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, 0).start()
        lethal.url = f"http://{HOST}:{runner.addresses[0][1]}"
        yield lethal
    finally:
        await runner.cleanup()
