"""The hosted console: the same application as a function of a stack, behind a gateway.

- The application's files and the sign-in address are public. Everything else needs a user
  (console/users.py): the gateway verifies the token, and the function checks the user's groups.
- No cookie or other ambient credential is used, so another site's page cannot make requests.
- Operations that need a separate process, another origin, or wider permissions are missing
  (`ELSEWHERE`). The console on a user's machine has them.
- The function's memory ends with its container, so the browser page stores the history.

Source: docs.aws.amazon.com/apigateway/latest/developerguide/, pages
http-api-develop-integrations-lambda (payload format 2.0) and http-api-jwt-authorizer.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import parse_qsl

import orbweaver
from orbweaver.api.problems import CONTENT_TYPE, PROBLEMS, Refused, headers_of, problem_of
from orbweaver.app.wiring import api_of, control_of, undertaker_of
from orbweaver.console import fence
from orbweaver.console.bodies import (
    PAIR,
    SECTION,
    TEXTS,
    ZONE,
    document_of,
    is_document,
    is_source,
    query_of,
)
from orbweaver.console.files import static_files
from orbweaver.console.global_status import GlobalStatus
from orbweaver.console.runs import CrawlWatcher, MeteredReadings, WatchedRuns
from orbweaver.console.users import ConsoleUser, SignIn, user_of
from orbweaver.control.progress.reader import StatusReader
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from orbweaver.api.app import Api
    from orbweaver.app.aws_ports import Ports
    from orbweaver.console.run_comparer import RunComparer
    from orbweaver.frontier.queues import Depths
    from orbweaver.model.crawl import Crawl
    from orbweaver.model.ports import Clock

    Answer: TypeAlias = Mapping[str, Any]


POLL_MS = 1_500
API, OWN, SIGN_IN = "/api/", "/console/", "/sign-in.json"
# Browsers must use TLS for half a year. The gateway supports nothing else.
TLS_ALONE = {"Strict-Transport-Security": "max-age=15768000"}
# Browsers reuse a static file for this time without a request.
FILES_KEPT = "public, max-age=300"
# Routes that only the local console has.
ELSEWHERE = (
    *("preview", "trial", "frame", "picture", "table", "query", "tables", "schedules"),
    *("audit", "backlinks"),
)
# Comparing two runs of this size takes about 10 s, as a report of one run does (api/crawls.py).
# Larger runs are refused: in a partial comparison, unread pages would look removed.
URLS_READ_MAX = 10_000
# Maximum number of dead letters to read. One request to SQS reads ten.
LETTERS_MAX = 1_000
NOT_HERE = "the hosted console has not this: `orbweaver console` on a machine of your own has"
NO_OPERATION = "there is no such operation"


@value_class
class HostedPlace:
    """The hosted console's own stack, as the routes see it."""

    stack: str
    read_depths: Callable[[], Awaitable[Depths]]
    billed: bool = True

    @property
    def title(self) -> str:
        return f"the stack {self.stack}"

    async def idle_workers(self, crawl: Crawl | None = None) -> str | None:  # noqa: ARG002 - the port's
        """Return None: the hosted console does not read whether workers are switched on."""
        return None

    async def depths(self) -> Depths | None:
        return await self.read_depths()

    async def workers(self) -> Mapping[str, str] | None:
        """Return None: users of the hosted console cannot switch workers."""
        return None

    async def alarms(self) -> list[dict[str, Any]] | None:
        """Return None: the hosted console does not read alarms."""
        return None

    async def switch(self, *, on: bool) -> Mapping[str, str] | None:  # noqa: ARG002 - the port's
        """Return None: users of the hosted console cannot switch workers."""
        return None


def hosted_console(ports: Ports) -> HostedConsole:
    settings, clock, control = ports.settings, ports.clock, control_of(ports)
    depths = ports.depths.read
    place = HostedPlace(stack=settings.names.stack, read_depths=depths)
    reader = StatusReader(control=control, hosts=ports.hosts, depths=depths, billed=place.billed)

    @cache
    def comparing() -> RunComparer:
        # Imported on first use, so other requests do not wait for it.
        from orbweaver.console.run_comparer import RunComparer

        return RunComparer(ports=ports, control=control, urls_max=URLS_READ_MAX)

    async def letters() -> dict[str, Any]:
        from orbweaver.console.dead_letters import letters_by_cause

        return await letters_by_cause(undertaker_of(ports), limit=LETTERS_MAX, bodies=False)

    return HostedConsole(
        comparing=comparing,
        letters=letters,
        api=api_of(ports),
        runs=WatchedRuns(
            control=control,
            watching=CrawlWatcher(MeteredReadings(reader.read).read, clock.now_ms, POLL_MS),
            where=place,
            clock=clock,
        ),
        standing=GlobalStatus(ports=ports, control=control, where=place),
        sign_in=SignIn(
            issuer=settings.console.console_issuer,
            client=settings.console.console_client,
            pages=settings.console.console_pages,
        ),
        clock=clock,
    )


@value_class
class HostedConsole:
    """Answers the gateway's events, each of which is one HTTP request."""

    api: Api
    comparing: Callable[[], RunComparer]
    letters: Callable[[], Awaitable[dict[str, Any]]]
    runs: WatchedRuns
    standing: GlobalStatus
    sign_in: SignIn
    clock: Clock

    async def answer(self, event: Mapping[str, Any]) -> dict[str, Any]:
        try:
            reply = await self._reply(event)
        except PROBLEMS as error:
            reply = _problem(error)
        policy = fence.headers_of(connects=f"'self' {self.sign_in.pages}".rstrip())
        return {
            "statusCode": reply["statusCode"],
            "headers": {**policy, **TLS_ALONE, **reply["headers"]},
            "body": reply["body"],
            "isBase64Encoded": False,
        }

    async def _reply(self, event: Mapping[str, Any]) -> Answer:
        method, path = event["requestContext"]["http"]["method"], event["rawPath"]
        if not path.startswith((API, OWN)):
            return self._open(method, path)
        user = user_of(event, self.sign_in, self.clock.now_ms())
        user.check(method)
        if path.startswith(API):
            return await self._asked(event, method, path.removeprefix(API[:-1]))
        return _json(await self._own(event, method, path.removeprefix(OWN), user))

    def _open(self, method: str, path: str) -> Answer:
        """Answer a request that needs no user: a public file, or the sign-in configuration."""
        if method == "GET" and path == SIGN_IN:
            return _json({"client": self.sign_in.client, "pages": self.sign_in.pages})
        found = static_files().get(path)
        if found is None or method != "GET":
            raise Refused(404, "there is no such file")
        body, kind = found
        reply = _reply(200, kind, body.decode())
        return {**reply, "headers": {**reply["headers"], "Cache-Control": FILES_KEPT}}

    async def _asked(self, event: Mapping[str, Any], method: str, path: str) -> Answer:
        reply = await self.api.answer(_as_rest(event, path))
        self.runs.discard_reading(method, path)
        several = reply.get("multiValueHeaders") or {}
        headers = {**(reply.get("headers") or {})}
        headers |= {name: ", ".join(values) for name, values in several.items()}
        return {**reply, "headers": headers}

    async def _own(
        self, event: Mapping[str, Any], method: str, path: str, user: ConsoleUser
    ) -> Mapping[str, Any]:
        parts = path.split("/")
        if parts[0] in ELSEWHERE:
            raise Refused(404, NOT_HERE)
        if method == "GET":
            return await self._read(event, parts, user)
        if (method, path) != ("POST", "definition"):
            raise Refused(404, NO_OPERATION)
        # Imported on first use, so other requests do not wait for it.
        from orbweaver.console.definitions import forms_of

        given = document_of(_body(event), {"toml": is_source, "document": is_document})
        return forms_of(given.get("toml"), given.get("document"))

    async def _read(
        self, event: Mapping[str, Any], parts: list[str], user: ConsoleUser
    ) -> Mapping[str, Any]:
        match parts:
            case ["about"]:
                found = self._about(user)
            case ["live"]:
                query = parse_qsl(event.get("rawQueryString", ""))
                found = await self.runs.live([value for name, value in query if name == "id"])
            case ["crawls", crawl]:
                found = await self.runs.progress(crawl)
            case ["stack"]:
                found = await self.standing.read(**_query(event, ZONE))
            case ["dead-letters"]:
                if not user.steers:
                    why = "a look hides dead letters from who deals with them meanwhile"
                    raise Refused(403, f"{why}: it takes the group `steer`")
                found = await self.letters()
            case ["sections"]:
                found = await self.comparing().sections(**_query(event, SECTION))
            case ["changes"]:
                found = await self.comparing().changes(**_query(event, PAIR))
            case ["text-changes"]:
                found = await self.comparing().text_changes(**_query(event, TEXTS))
            case _:
                raise Refused(404, NO_OPERATION)
        return found

    def _about(self, user: ConsoleUser) -> dict[str, Any]:
        return {
            "where": self.runs.where.title,
            "billed": self.runs.where.billed,
            "version": orbweaver.__version__,
            "idle": None,
            "user": {
                "name": user.name,
                "steers": user.steers,
                "until_ms": user.until_ms,
            },
        }


def _as_rest(event: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Convert an event from payload format 2.0 to format 1.0, which the API reads."""
    query: dict[str, list[str]] = {}
    pairs = parse_qsl(event.get("rawQueryString", ""), keep_blank_values=True)
    for name, value in pairs:
        query.setdefault(name, []).append(value)
    context = event["requestContext"]
    return {
        "httpMethod": context["http"]["method"],
        "path": path,
        "queryStringParameters": {name: values[-1] for name, values in query.items()},
        "multiValueQueryStringParameters": query,
        "headers": dict(event.get("headers") or {}),
        "body": event.get("body") or "",
        "isBase64Encoded": bool(event.get("isBase64Encoded")),
        "requestContext": {"requestId": context["requestId"], "stage": "", "path": path},
    }


def _query(event: Mapping[str, Any], names: Mapping[str, bool]) -> dict[str, str]:
    pairs = parse_qsl(event.get("rawQueryString", ""), keep_blank_values=True)
    return query_of(dict(pairs), names)


def _body(event: Mapping[str, Any]) -> bytes:
    body = str(event.get("body") or "")
    if not event.get("isBase64Encoded"):
        return body.encode(errors="replace")
    try:
        return base64.b64decode(body, validate=True)
    except binascii.Error as error:
        raise Refused(400, "the body is no text") from error


def _problem(error: Exception) -> Answer:
    problem = problem_of(error)
    reply = _reply(problem.status or 500, CONTENT_TYPE, json.dumps(asdict(problem)))
    return {**reply, "headers": {**reply["headers"], **headers_of(problem)}}


def _json(body: Mapping[str, Any]) -> Answer:
    # JSON has no type for the dates of TOML.
    return _reply(200, "application/json", json.dumps(body, default=str))


def _reply(status: int, kind: str, body: str) -> Answer:
    return {"statusCode": status, "headers": {"Content-Type": kind}, "body": body}
