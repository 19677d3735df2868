"""The OpenAPI 3.1 document, generated from the types of requests and responses."""

from __future__ import annotations

from dataclasses import MISSING, fields
from functools import cache
from typing import Any

import orbweaver
from orbweaver.api.problems import CONTENT_TYPE, FENCED, TITLES, Problem
from orbweaver.api.routes import OPERATIONS, Operation
from orbweaver.control.json_schema import description_of, hints_of, required_fields, schema_of

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
