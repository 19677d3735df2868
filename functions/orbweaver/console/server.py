"""The local console's server: static files, the HTTP API below `/api`, and further routes.

Every request first passes the access control (console/fence.py). If the store or stack cannot be
reached, the status is 503. The application then shows the last data with their age.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from aiohttp import web

from orbweaver.api.fence import LOOPBACK, LoopbackFence
from orbweaver.api.problems import CONTENT_TYPE, PROBLEMS, Problem, Refused, headers_of, problem_of
from orbweaver.app.store_service import answer_request
from orbweaver.app.wiring import api_of
from orbweaver.console import fence
from orbweaver.console.actions import TYPES, Actions, Question, TableFile, pieces_of
from orbweaver.console.bodies import (
    AUDIT,
    NO_NAMES,
    PAGE,
    PAIR,
    SECTION,
    TEXT_CHARS_MAX,
    TEXTS,
    ZONE,
    Fits,
    document_of,
    is_document,
    is_source,
    query_of,
)
from orbweaver.console.files import static_files
from orbweaver.console.global_status import GlobalStatus
from orbweaver.console.run_comparer import RunComparer
from orbweaver.console.stored import stored_app
from orbweaver.frontier.retrying import closing
from orbweaver.model.errors import PortError

if TYPE_CHECKING:
    from orbweaver.api.app import Api

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Act = Callable[..., Awaitable[dict[str, Any]]]
SQL_CHARS_MAX = 100_000
# A download is aborted if the browser reads nothing for this long.
STALLED_S = 60.0
BROKEN_OFF: tuple[type[Exception], ...] = (*PROBLEMS, PortError, TimeoutError)
BODY_BYTES_MAX = 4_000_000
API = "/api"


class PlaceTaken(Exception):
    """The server cannot listen at the host and port. The message contains the reason."""


@asynccontextmanager
async def serving(actions: Actions, token: str, host: str, port: int) -> AsyncIterator[str]:
    """Serve the console and yield its address without the token. Raises PlaceTaken."""
    # Stored pages use the next port, or any free port if the next one is taken.
    with ExitStack() as sockets:
        own = sockets.enter_context(_bound(host, port))
        try:
            beside = sockets.enter_context(_bound(host, port + 1 if port else 0))
        except PlaceTaken:
            beside = sockets.enter_context(_bound(host, 0))
        own_port, stored_port = (one.getsockname()[1] for one in (own, beside))
        guard = fence.fence_at(own_port, token)
        api = api_of(actions.ports, signed=False)
        app = ConsoleServer(api, actions, guard, stored_port).app()
        stored = stored_app(actions.tickets, stored_port, own_port)
        async with AsyncExitStack() as runners:
            for application, place in ((app, own), (stored, beside)):
                runner = web.AppRunner(application, access_log=None)
                await runner.setup()
                runners.push_async_callback(runner.cleanup)
                await web.SockSite(runner, place).start()
            name = f"[{host}]" if ":" in host else host
            yield f"http://{name}:{own_port}/"


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise PlaceTaken(f"{host}:{port} cannot be taken: {error.strerror}") from error


class ConsoleServer:
    """Answers the browser's requests for files, API routes and the console's own routes."""

    def __init__(self, api: Api, actions: Actions, guard: LoopbackFence, stored_port: int) -> None:
        self._api = api
        self._actions = actions
        self._comparing = RunComparer(ports=actions.ports, control=actions.control)
        self._standing = GlobalStatus(
            ports=actions.ports, control=actions.control, where=actions.where
        )
        self._fence = guard
        self._stored_port = stored_port
        self._files = static_files()

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard], client_max_size=BODY_BYTES_MAX)
        for path in self._files:
            app.router.add_get(path, self._file)
        app.router.add_route("*", f"{API}/{{path:.*}}", self._asked)
        # The local console has no sign-in, because the token is in the address.
        app.router.add_get("/sign-in.json", _signing_in)
        app.router.add_get("/download/{ticket}", self._download)
        app.router.add_get("/console/about", self._about)
        app.router.add_get("/console/live", self._live)
        app.router.add_get("/console/crawls/{id}", self._pulse)
        app.router.add_get("/console/dead-letters", _getting(self._actions.dead_letters))
        app.router.add_get("/console/sections", _getting(self._comparing.sections, SECTION))
        app.router.add_get("/console/changes", _getting(self._comparing.changes, PAIR))
        app.router.add_get("/console/text-changes", _getting(self._comparing.text_changes, TEXTS))
        app.router.add_get("/console/audit", _getting(self._actions.audit, AUDIT))
        app.router.add_get("/console/backlinks", _getting(self._actions.backlinks, PAGE))
        app.router.add_get("/console/stack", _getting(self._standing.read, ZONE))
        app.router.add_get("/console/schedules", _getting(self._standing.schedules))
        app.router.add_get("/console/tables", _getting(self._actions.tables.tables))
        for path, (act, names, needed) in self._posts().items():
            app.router.add_post(path, _posting(act, names, needed))
        return app

    def _posts(self) -> Mapping[str, tuple[Act, Mapping[str, Fits], tuple[str, ...]]]:
        actions, standing = self._actions, self._standing
        document = {"document": is_document}
        page = {"url": _is_text, "crawl": _is_text}
        letters = {"cause": _is_text, "until_ms": _is_moment}
        return {
            "/console/dead-letters/redrive": (
                actions.redrive,
                {"cause": _is_text, "host": _is_text},
                (),
            ),
            "/console/dead-letters/purge": (actions.purge, letters, tuple(letters)),
            "/console/definition": (actions.definition, {"toml": is_source, **document}, ()),
            "/console/trial": (
                actions.trial,
                {"crawl": _is_text, "toml": is_source, "url": _is_text},
                ("crawl", "toml"),
            ),
            "/console/preview": (actions.preview, document, tuple(document)),
            "/console/schedules": (standing.recur, document, tuple(document)),
            "/console/schedules/pause": (
                standing.pause,
                {"name": _is_text, "paused": _is_switch},
                ("name", "paused"),
            ),
            "/console/schedules/remove": (standing.stop_recurring, {"name": _is_text}, ("name",)),
            "/console/stack/workers": (standing.switch, {"on": _is_switch}, ("on",)),
            "/console/frame": (actions.frame, page, tuple(page)),
            "/console/picture": (actions.picture, page, tuple(page)),
            "/console/table": (
                actions.table,
                {"crawl": _is_text, "rule": _is_text, "form": _is_form},
                ("crawl",),
            ),
            "/console/query": (actions.tables.ask, {"sql": _is_sql}, ("sql",)),
            "/console/query/file": (actions.query_file, {"sql": _is_sql}, ("sql",)),
        }

    # --- access control -------------------------------------------------------------------------

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        needs_token = request.path.startswith((f"{API}/", "/console/"))
        refusal = self._fence.refusal(request.headers, needs_token=needs_token)
        if refusal is not None:
            reply: web.StreamResponse = _told("Refused", refusal.text, refusal.status)
        else:
            reply = await self._handled(request, handler)
        if not reply.prepared:
            reply.headers.update(self._headers(request))
        return reply

    async def _handled(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPException as error:
            return web.Response(status=error.status, text=f"{error.reason}\n")
        except PROBLEMS as error:
            return _problem(problem_of(error))
        except PortError as error:
            return _told("Unavailable", str(error), 503)

    def _headers(self, request: web.Request) -> dict[str, str]:
        # Stored pages have the same host name but another port, so their origin differs.
        name = request.headers.get("Host", "").rpartition(":")[0]
        name = name if name in LOOPBACK else LOOPBACK[0]
        return fence.headers_of(frames=f"http://{name}:{self._stored_port}")

    # --- routes ---------------------------------------------------------------------------------

    async def _file(self, request: web.Request) -> web.Response:
        body, kind = self._files[request.path]
        return web.Response(body=body, headers={"Content-Type": kind})

    async def _asked(self, request: web.Request) -> web.Response:
        path = request.path.removeprefix(API)
        reply = await answer_request(self._api, request, path)
        self._actions.runs.discard_reading(request.method, path)
        return reply

    async def _download(self, request: web.Request) -> web.StreamResponse:
        wanted = self._actions.tickets.redeem(request.match_info["ticket"])
        match wanted:
            case TableFile():
                name, kind = wanted.name, TYPES[wanted.form]
                pieces = pieces_of(self._actions.control, wanted)
            case Question(sql=sql):
                name, kind, pieces = "query.csv", TYPES["csv"], self._actions.tables.csv(sql)
            case _:
                raise web.HTTPNotFound
        reply = web.StreamResponse(
            headers={
                **self._headers(request),
                "Content-Type": kind,
                "Content-Disposition": f'attachment; filename="{name}"',
            }
        )
        async with closing(pieces) as found:
            try:
                await self._pour(found, reply, request)
            except BROKEN_OFF:
                if not reply.prepared:
                    raise
                # The response has started. Aborting it shows the browser that it is incomplete.
                if request.transport is not None:
                    request.transport.abort()
        return reply

    @staticmethod
    async def _pour(
        pieces: AsyncIterator[bytes], reply: web.StreamResponse, request: web.Request
    ) -> None:
        async for piece in pieces:
            if not reply.prepared:  # before that, an error can be sent
                await reply.prepare(request)
            async with asyncio.timeout(STALLED_S):
                await reply.write(piece)
        await reply.write_eof()

    async def _about(self, _request: web.Request) -> web.Response:
        return _json({**await self._actions.about(), "stored_port": self._stored_port})

    async def _live(self, request: web.Request) -> web.Response:
        return _json(await self._actions.runs.live(request.query.getall("id", [])))

    async def _pulse(self, request: web.Request) -> web.Response:
        return _json(await self._actions.runs.progress(request.match_info["id"]))


async def _signing_in(_request: web.Request) -> web.Response:
    return web.Response(text="null", content_type="application/json")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= TEXT_CHARS_MAX


def _is_sql(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= SQL_CHARS_MAX


def _is_switch(value: Any) -> bool:
    return isinstance(value, bool)


def _is_form(value: Any) -> bool:
    return isinstance(value, str) and value in TYPES


def _is_moment(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _getting(act: Act, names: Mapping[str, bool] = NO_NAMES) -> Handler:
    async def get(request: web.Request) -> web.Response:
        return _json(await act(**query_of(dict(request.query), names)))

    return get


def _posting(act: Act, names: Mapping[str, Fits], needed: tuple[str, ...]) -> Handler:
    async def post(request: web.Request) -> web.Response:
        given = document_of(await request.read(), names)
        for name in needed:
            if name not in given:
                raise Refused(400, f"{name} is missing")
        return _json(await act(**given))

    return post


def _json(body: Mapping[str, Any]) -> web.Response:
    # JSON has no type for the dates of TOML.
    return web.Response(text=json.dumps(body, default=str), content_type="application/json")


def _told(title: str, detail: str, status: int) -> web.Response:
    return _problem(Problem(type="about:blank", title=title, detail=detail, status=status))


def _problem(problem: Problem) -> web.Response:
    return web.Response(
        status=problem.status or 500,
        text=json.dumps(asdict(problem)),
        headers={"Content-Type": CONTENT_TYPE, **headers_of(problem)},
    )
