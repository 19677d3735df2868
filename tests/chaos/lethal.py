"""A host with one page that kills the worker that asks for it: who reads it, dies of it."""

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
    """The host; `armed` says whether it kills, `find` tells who is at a connection's other end."""

    def __init__(self, find: Find) -> None:
        self.url = ""
        self.armed = True
        self.kills = 0
        self._find = find

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer, or kill."""
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
    """Have the host for the length of a block."""
    lethal = Lethal(find)
    runner = web.ServerRunner(web.Server(lethal.handle, access_log=None), shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, 0).start()
        lethal.url = f"http://{HOST}:{runner.addresses[0][1]}"
        yield lethal
    finally:
        await runner.cleanup()
