"""Dispatch requests of the HTTP API to their handlers.

An unknown or invalid parameter or key refuses the whole request with a problem (RFC 9457). The API
writes and sends nothing before it has validated the request. A temporary error of a component gives
503 with Retry-After. Any other exception is a bug: the function fails, and the gateway answers
without a stack trace.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response

from orbweaver.api.context import HandlerContext, Reply
from orbweaver.api.decoding import JSON, read_all
from orbweaver.api.openapi import document
from orbweaver.api.problems import CONTENT_TYPE, PROBLEMS, Refused, headers_of, problem_of
from orbweaver.api.routes import OPERATIONS, Operation
from orbweaver.control.cursor import CursorError

if TYPE_CHECKING:
    from aws_lambda_powertools.event_handler.exceptions import NotFoundError


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
