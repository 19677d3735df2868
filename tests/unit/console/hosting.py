"""The hosted console over its own store, called with events of an HTTP API."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlencode

from orbweaver.app.store_ports import StorePorts
from orbweaver.console.hosted import HostedConsole, hosted_console
from orbweaver.console.users import SignIn
from orbweaver.frontier.queues import Depths
from orbweaver.model.settings import Settings
from tests.memory import ManualClock
from tests.unit.console.stage import RUN, record
from tests.unit.stage import NOW_MS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

ISSUER = "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_Abc123"
CLIENT, PAGES = "application-of-the-console", "https://orbweaver-1.auth.example.com"
SIGN_IN = SignIn(issuer=ISSUER, client=CLIENT, pages=PAGES)
WAITING = Depths(waiting=3, in_work=1, delayed=2, dead=4)
# API Gateway sends all claims as text.
CLAIMS = {
    "iss": ISSUER,
    "client_id": CLIENT,
    "token_use": "access",
    "scope": "openid",
    "sub": "f0c1",
    "username": "alice",
    "exp": str(NOW_MS // 1000 + 3_600),
    "cognito:groups": "[steer]",
}
LOOKING = CLAIMS | {"cognito:groups": "[look]"}


class CountedStore(StorePorts):
    """A store with queue depths, like a stack."""

    class depths:  # noqa: N801 - a port's name
        """Queue depths of the test."""

        @staticmethod
        async def read() -> Depths:
            return WAITING


def event_of(
    method: str,
    path: str,
    claims: dict[str, Any] | None = None,
    query: dict[str, Any] | None = None,
    body: Any = None,
) -> dict[str, Any]:
    context: dict[str, Any] = {
        "requestId": "request",
        "stage": "$default",
        "domainName": "abc.execute-api.eu-west-1.amazonaws.com",
        "http": {"method": method, "path": path},
    }
    if claims is not None:
        context["authorizer"] = {"jwt": {"claims": claims, "scopes": None}}
    return {
        "version": "2.0",
        "routeKey": f"{method} {path}",
        "rawPath": path,
        "rawQueryString": urlencode(query or {}, doseq=True),
        "headers": {"content-type": "application/json"} if body is not None else {},
        "requestContext": context,
        "isBase64Encoded": False,
        **({} if body is None else {"body": json.dumps(body)}),
    }


@dataclass
class Hosting:
    """An open store and its hosted console."""

    ports: CountedStore
    clock: ManualClock
    console: HostedConsole

    async def ask(self, method: str, path: str, **given: Any) -> tuple[int, Any]:
        reply = await self.console.answer(event_of(method, path, **given))
        return reply["statusCode"], json.loads(reply["body"])

    async def begin(self, *paths: str) -> None:
        await self.ports.crawls.create(replace(RUN))
        await self.ports.pages.store([record(path) for path in paths])


@asynccontextmanager
async def hosted(folder: Path) -> AsyncIterator[Hosting]:
    clock = ManualClock(NOW_MS)
    settings = Settings.of(console_issuer=ISSUER, console_client=CLIENT, console_pages=PAGES)
    ports = CountedStore(settings, folder, clock=clock)
    try:
        yield Hosting(ports, clock, hosted_console(cast("Any", ports)))
    finally:
        await ports.aclose()
