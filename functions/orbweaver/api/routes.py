"""Operations of the API: method, path, handler, bodies and statuses, and the OpenAPI document.

The types of a handler's `path`, `query`, `headers` and `body` decode and describe a request. The
API checks each response against this table before it sends the response. The gateway has exactly
these routes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache, cached_property
from typing import Any, TypeAlias, get_type_hints

import orbweaver
from orbweaver.api import crawls, pages, requests, responses
from orbweaver.api.context import HandlerContext, Reply
from orbweaver.api.problems import ALWAYS, CONTENT_TYPE, FENCED, TITLES, Problem
from orbweaver.control.json_reader import description_of, hints_of, required_fields, schema_of

Act: TypeAlias = Callable[..., Awaitable[Reply]]
PARTS = ("path", "query", "headers", "body")
# Handler modules import these names for type checkers only, but `get_type_hints` needs them.
NAMES = {**vars(requests), "HandlerContext": HandlerContext, "Reply": Reply}
SUCCESSES = {200: "Done", 201: "Begun", 202: "On the queue"}
ABOUT = """\
Start, steer and explain crawls of one {place}. {access} A refused request has
no effect. The problem's `detail` and `problems` contain the reasons (RFC 9457)."""
OF_STACK = """\
Requests are signed by an IAM identity of the stack's
account (Signature Version 4, service `execute-api`) that may `execute-api:Invoke`."""
OF_STORE = """\
Requests are not signed. They carry a token: of a console, or of the store (file
`serve.token`), unless `orbweaver serve --open` answers. Requests that name another
host, and those of other sites' pages in a browser, are refused."""
BEARER = {
    "type": "http",
    "scheme": "bearer",
    "description": "The token in the store's file `serve.token`",
}
SIGNED = {
    "type": "apiKey",
    "in": "header",
    "name": "Authorization",
    "description": "AWS Signature Version 4",
    "x-amazon-apigateway-authtype": "awsSigv4",
}
LOCATION = {"Location": {"description": "where the crawl is", "schema": {"type": "string"}}}
RETRY_AFTER = {"Retry-After": {"description": "seconds", "schema": {"type": "string"}}}


@dataclass(frozen=True)
class Operation:
    """One operation. `refusals` are its error statuses besides the common ones (`ALWAYS`)."""

    name: str
    method: str
    path: str
    act: Act | None
    answers: Mapping[int, Any]
    refusals: tuple[int, ...] = ()
    body_needed: bool = True

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        """Types of the parameters by location: path, query, headers, body."""
        if self.act is None:
            return {}
        hints = get_type_hints(self.act, localns=NAMES, include_extras=True)
        return {part: hints[part] for part in PARTS if part in hints}

    @property
    def knows_its_request(self) -> bool:
        return self.act is not None and "request_id" in self.act.__annotations__

    @property
    def statuses(self) -> tuple[int, ...]:
        more = (415,) if "body" in self.parameters else ()
        return tuple(sorted({*ALWAYS, *self.refusals, *more}))


def _steer(name: str, act: Act) -> Operation:
    return Operation(name, "POST", f"/crawls/{{id}}/{name}", act, {200: responses.Run}, (404, 409))


def _look(name: str, act: Act, kind: type) -> Operation:
    return Operation(name, "GET", f"/crawls/{{id}}/{name}", act, {200: kind}, (404,))


_RUN, _RUNS = responses.Run, responses.Runs
OPERATIONS = (
    Operation("start", "POST", "/crawls", crawls.start, {201: _RUN, 200: _RUN}, (409,)),
    Operation("list", "GET", "/crawls", crawls.listed, {200: _RUNS}),
    Operation("overview", "GET", "/overview", crawls.overview, {200: responses.OverviewList}),
    Operation("check", "POST", "/check", crawls.check, {200: responses.Checked}),
    Operation("host", "GET", "/host", crawls.host, {200: responses.HostSeen}),
    Operation("status", "GET", "/crawls/{id}", crawls.show, {200: responses.Progress}, (404,)),
    Operation("edit", "PATCH", "/crawls/{id}", crawls.edit, {200: _RUN}, (404, 409)),
    replace(_steer("preview", crawls.preview), answers={200: responses.Differences}),
    _look("hosts", crawls.hosts, responses.HostList),
    _look("report", crawls.report, responses.LeftOut),
    _look("pages", pages.pages, responses.Rows),
    _look("items", pages.items, responses.FoundItems),
    _look("texts", pages.texts, responses.FoundTexts),
    _look("exports", pages.exports, responses.ExportedFiles),
    _steer("pause", crawls.pause),
    _steer("resume", crawls.resume),
    _steer("cancel", crawls.cancel),
    replace(_steer("retry", crawls.retry), answers={201: _RUNS, 200: _RUNS}, body_needed=False),
    Operation("seeds", "POST", "/seeds", crawls.take, {202: responses.Accepted}, (404, 409)),
    Operation("explain", "GET", "/explain", pages.explain, {200: responses.Explained}, (404,)),
    Operation("openapi", "GET", "/openapi.json", None, {200: dict}),
)


@cache
def document(*, signed: bool = True) -> dict[str, Any]:
    """Describe all operations: of a stack (`signed` requests), or of a store (with a token)."""
    parts: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        described = _operation(operation, parts)
        if not signed:
            described["responses"] |= {str(one): _problem_named(one) for one in FENCED}
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    schema_of(Problem, parts, answer=False)
    statuses = [status for status in TITLES if status not in FENCED or not signed]
    place, access = ("stack", OF_STACK) if signed else ("store", OF_STORE)
    scheme = "signed" if signed else "bearer"
    about = ABOUT.format(place=place, access=access)
    return {
        "openapi": "3.1.1",
        "info": {"title": "Orbweaver", "version": orbweaver.__version__, "description": about},
        "servers": [{"url": "."}],
        "security": [{scheme: []}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(parts.items())),
            "responses": {f"Problem{status}": _problem(status) for status in statuses},
            "securitySchemes": {scheme: SIGNED if signed else BEARER},
        },
    }


def _operation(operation: Operation, parts: dict[str, Any]) -> dict[str, Any]:
    summary = operation.act.__doc__ if operation.act is not None else "Describe this API."
    described: dict[str, Any] = {"operationId": operation.name, "summary": summary}
    parameters = [
        parameter
        for part, where in (("path", "path"), ("query", "query"), ("headers", "header"))
        if part in operation.parameters
        for parameter in _parameters(operation.parameters[part], where, parts)
    ]
    if parameters:
        described["parameters"] = parameters
    if "body" in operation.parameters:
        schema = schema_of(operation.parameters["body"], parts, answer=False)
        content = {"application/json": {"schema": schema}}
        described["requestBody"] = {"required": operation.body_needed, "content": content}
    described["responses"] = {
        **{str(status): _answer(operation, status, parts) for status in operation.answers},
        **{str(status): _problem_named(status) for status in operation.statuses},
    }
    return described


def _parameters(kind: Any, where: str, parts: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": header_name(name) if where == "header" else name,
            "in": where,
            "required": name in required_fields(kind),
            "description": description_of(hint),
            "schema": _without_null(schema_of(hint, parts, answer=False)) | _default(kind, name),
        }
        for name, hint in hints_of(kind).items()
    ]


def _default(kind: Any, name: str) -> dict[str, Any]:
    (default,) = (field.default for field in fields(kind) if field.name == name)
    return {} if default in (MISSING, None) else {"default": default}


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    plain = {word: value for word, value in schema.items() if word != "description"}
    if isinstance(schema.get("type"), list):
        plain["type"] = schema["type"][0]
    if "enum" in schema:
        plain["enum"] = [word for word in schema["enum"] if word is not None]
    return plain


def _answer(operation: Operation, status: int, parts: dict[str, Any]) -> dict[str, Any]:
    kind = operation.answers[status]
    schema = {"type": "object"} if operation.act is None else schema_of(kind, parts, answer=True)
    content = {"application/json": {"schema": schema}}
    described: dict[str, Any] = {"description": SUCCESSES[status], "content": content}
    return {**described, "headers": LOCATION} if operation.name == "start" else described


def _problem_named(status: int) -> dict[str, str]:
    return {"$ref": f"#/components/responses/Problem{status}"}


def _problem(status: int) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    described: dict[str, Any] = {
        "description": TITLES[status],
        "content": {CONTENT_TYPE: {"schema": schema}},
    }
    return {**described, "headers": RETRY_AFTER} if status in (429, 503) else described


def header_name(field: str) -> str:
    """Convert a field name to a header name: `idempotency_key` is Idempotency-Key."""
    return field.replace("_", "-").title()
