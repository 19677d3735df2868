"""Decode a gateway's event by the types of an operation.

The path is decoded first, then query, headers and body. So a request for an unknown crawl always
gives 404. Unknown parameters and keys are errors. Unknown headers are ignored, because clients and
the gateway add their own.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orbweaver.api.openapi import header_name
from orbweaver.api.problems import Refused
from orbweaver.api.routes import Operation
from orbweaver.control.definition import DefinitionError, DefinitionProblem
from orbweaver.control.json_reader import document_of, read, read_texts
from orbweaver.control.json_schema import hints_of

# A Lambda event holds at most 6 MB, and each quotation mark in the body takes two characters.
BODY_BYTES_MAX = 4_000_000
JSON = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
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
