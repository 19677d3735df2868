"""The API over memory adapters. Every answer is checked against the OpenAPI document."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import jsonschema_rs

from orbweaver.api.routes import document
from orbweaver.app.wiring import api_of
from orbweaver.frontier.messages import decode
from orbweaver.model.crawl import Crawl
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord, page_key
from orbweaver.model.settings import Settings
from tests.memory import ManualClock, World
from tests.memory.world import Gate, open_gate
from tests.unit.memory_ports import memory_ports

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orbweaver.api.app import Api

NOW_MS = 1_795_251_600_000  # 2026-11-21 09:00:00 UTC
SITE = "https://example.com"
CRAWL = Crawl(id="site-1", name="site", started_at_ms=NOW_MS, seeds=(f"{SITE}/",), seeds_planned=1)
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An answer of the API."""

    status: int
    headers: Mapping[str, str]
    body: Any

    @property
    def paths(self) -> list[str]:
        return [flaw["path"] for flaw in self.body["problems"]]


@dataclass
class Stage:
    """A stage with an API in front of it."""

    world: World = field(default_factory=World)
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOW_MS))
    gate: Gate = open_gate
    settings: Settings = field(default_factory=Settings)

    @property
    def api(self) -> Api:
        return api_of(memory_ports(self.world, self.clock, self.gate, self.settings))

    def begin(self, *crawls: Crawl) -> None:
        self.world.crawls |= {crawl.id: crawl for crawl in crawls}

    def put(self, path: str, at_ms: int = NOW_MS, **fields: Any) -> None:
        known = {"outcome": Outcome.FETCHED, "reason": Reason.OK, "depth": 0, "crawl": CRAWL.id}
        record = PageRecord(url=SITE + path, fetched_at=at_ms, **{**known, **fields})
        self.world.pages[page_key(record, 16)] = record

    def sent(self) -> list[Any]:
        return [decode(mail.body) for mail in self.world.sent]

    async def ask(
        self,
        method: str,
        target: str,
        body: Any = None,
        headers: Mapping[str, str] = JSON,
        **event: Any,
    ) -> Reply:
        request = {**event_of(method, target, body, headers), **event}
        raw = await self.api.answer(request)
        assert json.loads(json.dumps(raw)) == raw
        return checked(method, urlsplit(target).path, raw)

    async def get(self, target: str) -> Reply:
        return await self.ask("GET", target, headers={})

    async def post(self, target: str, body: Any = None, **headers: str) -> Reply:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.ask("POST", target, body, {**JSON, **named})


def event_of(method: str, target: str, body: Any, headers: Mapping[str, str]) -> dict[str, Any]:
    parts = urlsplit(target)
    query = parse_qs(parts.query, keep_blank_values=True)
    text = body if isinstance(body, str) or body is None else json.dumps(body)
    return {
        "httpMethod": method,
        "path": parts.path,
        "resource": parts.path,
        "headers": dict(headers) or None,
        "multiValueHeaders": {name: [value] for name, value in headers.items()} or None,
        "queryStringParameters": {name: values[-1] for name, values in query.items()} or None,
        "multiValueQueryStringParameters": query or None,
        "requestContext": {"requestId": "r1"},
        "body": text,
        "isBase64Encoded": False,
    }


def operation_of(method: str, path: str, *, signed: bool = True) -> dict[str, Any] | None:
    for template, operations in document(signed=signed)["paths"].items():
        wanted, given = template.split("/"), path.split("/")
        fits = all(one in (other, "{id}") for one, other in zip(wanted, given, strict=False))
        if len(wanted) == len(given) and fits and method.lower() in operations:
            found: dict[str, Any] = operations[method.lower()]
            return found
    return None


def checked(method: str, path: str, raw: Mapping[str, Any], *, signed: bool = True) -> Reply:
    components = document(signed=signed)["components"]
    headers = {name: values[0] for name, values in raw["multiValueHeaders"].items()}
    reply = Reply(status=raw["statusCode"], headers=headers, body=json.loads(raw["body"]))
    operation = operation_of(method, path, signed=signed)
    if operation is None:
        assert reply.status == 404
        return reply
    described = operation["responses"][str(reply.status)]
    if "$ref" in described:
        described = components["responses"][described["$ref"].rpartition("/")[2]]
    schema = described["content"][headers["Content-Type"]]["schema"]
    whole = {**schema, "components": components}
    jsonschema_rs.Draft202012Validator(whole, validate_formats=True).validate(reply.body)
    for name in described.get("headers", {}):
        assert name in headers or name == "Retry-After"
    if reply.status >= 400:
        assert reply.body["status"] == reply.status
    return reply
