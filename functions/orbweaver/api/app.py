"""Decode requests of the HTTP API by the types of their operations, and dispatch them to handlers.

The path is decoded first, then query, headers and body. So a request for an unknown crawl always
gives 404. An unknown or invalid parameter or key refuses the whole request with a problem (RFC
9457). Unknown headers are ignored, because clients and the gateway add their own. The API writes
and sends nothing before it has validated the request. A temporary error of a component gives 503
with Retry-After. Any other exception is a bug: the function fails, and the gateway answers without
a stack trace.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response

from orbweaver.api.context import HandlerContext, Reply
from orbweaver.api.problems import CONTENT_TYPE, PROBLEMS, Refused, headers_of, problem_of
from orbweaver.api.requests import CursorError
from orbweaver.api.routes import OPERATIONS, Operation, document, header_name
from orbweaver.control.definition import DefinitionError, DefinitionProblem
from orbweaver.control.json_reader import document_of, hints_of, read, read_texts
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from aws_lambda_powertools.event_handler.exceptions import NotFoundError


# A Lambda event holds at most 6 MB, and each quotation mark in the body takes two characters.
BODY_BYTES_MAX = 4_000_000
JSON = "application/json"


class Api:
    """The HTTP API. A request takes full effect, or has no effect and returns a reason."""

    def __init__(self, means: HandlerContext, *, signed: bool = True) -> None:
        self._means = means
        self._signed = signed
        self._app = APIGatewayRestResolver()
        for operation in OPERATIONS:
            rule = operation.path.replace("{", "<").replace("}", ">")
            self._app.route(rule, operation.method)(self._answering(operation))
        self._app.not_found(_not_found)

    async def answer(self, event: Mapping[str, Any]) -> dict[str, Any]:
        answer = await self._app.resolve_async(event, None)  # type: ignore[arg-type]  # there is no Lambda context
        return json.loads(json.dumps(answer))  # type: ignore[no-any-return]  # plain dicts only

    def _answering(self, operation: Operation) -> Callable[..., Awaitable[Response[str]]]:
        async def answer(**path: str) -> Response[str]:
            try:
                reply = await self._reply(operation, self._app.current_event.raw_event, path)
            except PROBLEMS as error:
                return _spell_problem(error)
            return _spell_reply(operation, reply)

        return answer

    async def _reply(
        self, operation: Operation, event: Mapping[str, Any], path: Mapping[str, str]
    ) -> Reply:
        # Decoding a large body takes long and would block other requests in this event loop.
        asked = await asyncio.to_thread(read_all, operation, event, path)
        if operation.act is None:
            return Reply(status=200, body=document(signed=self._signed))
        if operation.knows_its_request:
            asked["request_id"] = event["requestContext"]["requestId"]
        try:
            return await operation.act(self._means, **asked)
        except CursorError as error:
            raise Refused(
                400, "cursor: it belongs to another listing: start without a cursor"
            ) from error


def _spell_reply(operation: Operation, reply: Reply) -> Response[str]:
    kind = operation.answers[reply.status]
    if not isinstance(reply.body, kind):
        raise TypeError(f"{operation.name} documents a {kind.__name__} for {reply.status}")
    body = asdict(reply.body) if is_dataclass(kind) else reply.body
    return _spell(reply.status, JSON, body, reply.headers)


def _spell_problem(error: Exception) -> Response[str]:
    problem = problem_of(error)
    return _spell(problem.status or 500, CONTENT_TYPE, asdict(problem), headers_of(problem))


def _spell(
    status: int, content_type: str, body: Mapping[str, Any], headers: Mapping[str, str]
) -> Response[str]:
    return Response(
        status_code=status, content_type=content_type, body=json.dumps(body), headers=headers
    )


def _not_found(_error: NotFoundError) -> Response[str]:
    return _spell_problem(Refused(404, "there is no such operation: see /openapi.json"))


@value_class
class Nothing:
    """The operation takes no parameters."""


def read_all(
    operation: Operation, event: Mapping[str, Any], path: Mapping[str, str]
) -> dict[str, Any]:
    """Decode all parameters of an operation. Raises Refused and DefinitionError.

    `path` has the variable parts of the request's path, by name.
    """
    takes = operation.parameters
    found: dict[str, Any] = {}
    if "path" in takes:
        try:
            found["path"] = read_texts(takes["path"], {name: [path[name]] for name in path})
        except DefinitionError as error:
            raise Refused(404, "there is no such crawl") from error
    query = read_texts(takes.get("query", Nothing), _query(event))
    headers = read_texts(takes.get("headers", Nothing), _headers(event, takes.get("headers")))
    body = _body(operation, event)
    read_parts = {"query": query, "headers": headers, "body": body}
    return found | {part: value for part, value in read_parts.items() if part in takes}


def _query(event: Mapping[str, Any]) -> dict[str, list[str]]:
    several = event.get("multiValueQueryStringParameters") or {}
    single = event.get("queryStringParameters") or {}
    return {name: [value] for name, value in single.items()} | several


def _headers(event: Mapping[str, Any], kind: Any) -> dict[str, list[str]]:
    if kind is None:
        return {}
    fields = {header_name(field).lower(): field for field in hints_of(kind)}
    several = event.get("multiValueHeaders") or {}
    single = event.get("headers") or {}
    given = {name: [value] for name, value in single.items()} | several
    return {
        fields[name.lower()]: values for name, values in given.items() if name.lower() in fields
    }


def _body(operation: Operation, event: Mapping[str, Any]) -> Any:
    text = _text(event)
    if len(text) > BODY_BYTES_MAX or len(text.encode(errors="replace")) > BODY_BYTES_MAX:
        fix = "send it in parts, more seeds by POST /seeds or `orbweaver start --seeds FILE`"
        raise Refused(413, f"the body is over {BODY_BYTES_MAX:,} bytes: {fix}")
    if "body" not in operation.parameters:
        if text:
            raise Refused(400, "this operation takes no body: leave it out")
        return None
    kind = operation.parameters["body"]
    if not text and not operation.body_needed:
        return kind()
    _check_type(event)
    if not text.strip():
        raise DefinitionError((DefinitionProblem("", "the body is empty: give a JSON object"),))
    return read(kind, document_of(text))


def _text(event: Mapping[str, Any]) -> str:
    body = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return str(body)
    try:
        return base64.b64decode(body, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise Refused(400, "the body is not UTF-8 text") from error


def _check_type(event: Mapping[str, Any]) -> None:
    headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
    given = str(headers.get("content-type") or "")
    essence, _, parameters = given.partition(";")
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    if essence.strip().lower() != JSON or charset not in ("", "utf-8"):
        raise Refused(415, f"{given[:60]!r} is not read here: send Content-Type: {JSON}")
