"""Request validation that all API operations share (case 79), and cursors of listings."""

from __future__ import annotations

import base64
import json
import string
from contextlib import suppress
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.api import requests
from orbweaver.api.app import BODY_BYTES_MAX
from orbweaver.api.requests import CURSOR_CHARS_MAX, CursorError
from orbweaver.api.routes import OPERATIONS, document
from orbweaver.model.errors import Permanent
from tests.unit.api.stage import CRAWL, JSON, SITE, Stage
from tests.unit.stage import fail_on

HOME = {"url": SITE}


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (None, "the body is empty"),
        (" ", "the body is empty"),
        ("{", "the body is no valid JSON"),
        ("[" * 100_000, "the body is no valid JSON"),
        ('{"url": NaN}', "NaN is no number of JSON"),
        ("{" * 1 + '"url": ' + "[" * 30 + "]" * 30 + "}", "nested deeper than 20 levels"),
        ('{"url": "https://a.example/\\ud800"}', "half a character"),
        ("[]", "give a JSON object"),
        ("null", "give a JSON object"),
        ('"https://example.com"', "give a JSON object"),
        ('{"url": "https://a.example", "url": "https://b.example"}', "url: this key occurs twice"),
        ({"url": 5}, "url: 5 does not fit: give a text"),
        ({"url": True}, "url: true does not fit: give a text"),
        ({"url": ""}, "url: give at least 1 characters"),
        ({"urls": SITE}, "urls: 'https://example.com' does not fit: give a list"),
        ({"urls": []}, "urls: give at least 1 items"),
        ({"urls": [SITE, {}]}, "urls[1]: an object does not fit: give a text"),
        ({"urls": [SITE], "craw": "x"}, "craw: there is no such field: did you mean crawl?"),
        ({"\x1b[31m": 1, "url": SITE}, "'\\x1b[31m': there is no such field"),
        ({"url": SITE, "crawl": "No Such"}, "crawl: 'No Such' does not fit: the id of a crawl"),
        ({}, "give one of url, urls and s3"),
        ({"url": SITE, "urls": [SITE]}, "give one of url, urls and s3"),
    ],
)
async def test_invalid_body_is_refused(stage: Stage, body: Any, detail: str) -> None:
    reply = await stage.post("/seeds", body)
    assert (reply.status, reply.headers["Content-Type"]) == (400, "application/problem+json")
    assert detail in reply.body["detail"]
    assert (stage.world.sent, stage.world.crawls) == ([], {})


async def test_problem_lists_every_invalid_key(begun: Stage) -> None:
    reply = await begun.post("/crawls/site-1/retry", {"reasons": ["dns", "dms"], "hosts": 1})
    assert reply.paths == ["reasons[1]", "hosts"]


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 202),
        ("Application/JSON; charset=UTF-8", 202),
        ('application/json;charset="utf-8"', 202),
        ("application/json; charset=latin-1", 415),
        ("application/jsonx", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
        ("text/plain", 415),
        ("", 415),
    ],
)
async def test_body_of_other_type_is_refused(stage: Stage, content_type: str, status: int) -> None:
    reply = await stage.ask("POST", "/seeds", HOME, {"content-type": content_type})
    assert reply.status == status
    assert bool(stage.world.sent) == (status == 202)


async def test_request_without_headers_has_no_content_type() -> None:
    assert (await Stage().ask("POST", "/seeds", HOME, {})).status == 415


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("x" * (BODY_BYTES_MAX + 1), 413),
        ("ü" * (BODY_BYTES_MAX // 2 + 1), 413),
        ("x" * BODY_BYTES_MAX, 400),
    ],
)
async def test_body_over_size_limit_is_refused(body: str, status: int) -> None:
    assert (await Stage().post("/seeds", body)).status == status


async def test_body_in_base64_is_read() -> None:
    body = base64.b64encode(json.dumps(HOME).encode()).decode()
    assert (await Stage().ask("POST", "/seeds", body, JSON, isBase64Encoded=True)).status == 202


@pytest.mark.parametrize("body", ["%%%", base64.b64encode(b"\xff").decode()])
async def test_body_in_invalid_base64_or_utf8_is_refused(body: str) -> None:
    reply = await Stage().ask("POST", "/seeds", body, JSON, isBase64Encoded=True)
    assert (reply.status, reply.body["detail"]) == (400, "the body is not UTF-8 text")


@pytest.mark.parametrize(
    ("target", "detail"),
    [
        ("/crawls?limit=0", "limit: give at least 1"),
        ("/crawls?limit=101", "limit: give at most 100"),
        ("/crawls?limit=1e1", "limit: '1e1' does not fit: give a whole number"),
        ("/crawls?limit=1&limit=2", "limit: it is given twice"),
        ("/crawls?limit=" + "9" * 5_000, "limit: '9"),
        ("/crawls?state=gone", "state: 'gone' does not fit: give running or paused"),
        ("/crawls?stat=running", "stat: there is no such field: did you mean state?"),
        ("/crawls?cursor=AAAA", "cursor: it belongs to another listing"),
        ("/crawls/site-1?x=1", "x: there is no such field"),
        ("/crawls/site-1/pages?outcome=lost", "outcome: 'lost' does not fit"),
        ("/explain", "url: it is missing"),
        ("/explain?url=", "url: give at least 1 characters"),
        ("/openapi.json?format=yaml", "format: there is no such field"),
    ],
)
async def test_unknown_or_invalid_parameters_are_refused(target: str, detail: str) -> None:
    stage = Stage()
    stage.begin(CRAWL)
    reply = await stage.get(target)
    assert reply.status == 400
    assert detail in reply.body["detail"]


@pytest.mark.parametrize("key", ["", "x" * 256, "two words", "ü"])
async def test_invalid_idempotency_key_is_refused(key: str) -> None:
    reply = await Stage().ask("POST", "/seeds", HOME, {**JSON, "idempotency-key": key})
    assert (reply.status, reply.paths) == (400, ["idempotency_key"])


async def test_body_of_operation_without_body_is_refused(begun: Stage) -> None:
    reply = await begun.post("/crawls/site-1/pause", {"for": "1h"})
    assert (reply.status, reply.body["detail"]) == (
        400,
        "this operation takes no body: leave it out",
    )


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/seeds"), ("POST", "/"), ("DELETE", "/crawls/site-1"), ("GET", "/crawls/a/b/c")],
)
async def test_unknown_route_is_404(method: str, path: str) -> None:
    reply = await Stage().ask(method, path)
    assert (reply.status, reply.body["title"]) == (404, "Not found")


CRAWLS = [operation for operation in OPERATIONS if "{id}" in operation.path]


@pytest.mark.parametrize("operation", CRAWLS, ids=lambda operation: operation.name)
@pytest.mark.parametrize("crawl_id", ["nobody", "site", "site-1%23count%230", "Site-1", "x" * 129])
async def test_unknown_crawl_id_or_name_is_404(begun: Stage, operation: Any, crawl_id: str) -> None:
    """A name is not accepted as an id, because its newest run changes (case 80)."""
    body = {"limits": {"depth": 1}} if operation.name in ("edit", "preview") else None
    reply = await begun.ask(operation.method, operation.path.replace("{id}", crawl_id), body)
    assert reply.status == 404
    assert begun.world.crawls == {CRAWL.id: CRAWL}


@pytest.mark.parametrize("operation", CRAWLS, ids=lambda operation: operation.name)
async def test_throttled_table_is_503_with_retry_after(operation: Any) -> None:
    stage = Stage(gate=fail_on("crawls.get"))
    stage.begin(CRAWL)
    body = {"limits": {"depth": 1}} if operation.name in ("edit", "preview") else None
    reply = await stage.ask(operation.method, operation.path.replace("{id}", CRAWL.id), body)
    assert (reply.status, reply.headers["Retry-After"]) == (503, "5")
    assert reply.body["detail"] == "try again: crawls.get"


async def test_permanent_error_fails_the_function() -> None:
    async def denied(_effect: str, _moment: object) -> None:
        raise Permanent("AccessDenied")

    with pytest.raises(Permanent):
        await Stage(gate=denied).get("/crawls")


# --- the document ------------------------------------------------------------------------------


async def test_openapi_json_returns_document() -> None:
    assert (await Stage().get("/openapi.json")).body == document()


@pytest.mark.parametrize("signed", [True, False])
def test_document_has_all_operations_and_statuses(*, signed: bool) -> None:
    told = document(signed=signed)
    described = {
        (method.upper(), path): operation
        for path, operations in told["paths"].items()
        for method, operation in operations.items()
    }
    assert set(described) == {(one.method, one.path) for one in OPERATIONS}
    for operation in OPERATIONS:
        found = described[operation.method, operation.path]
        statuses = {*operation.answers, *operation.statuses, *([] if signed else [401, 421])}
        assert set(found["responses"]) == {str(status) for status in statuses}
        assert {"400", "403", "429", "500", "503", "504"} <= set(found["responses"])
        assert ("415" in found["responses"]) == ("requestBody" in found)
        assert ("404" in found["responses"]) >= ("{id}" in operation.path)


@pytest.mark.parametrize("signed", [True, False])
def test_document_has_valid_references_and_schemas(*, signed: bool) -> None:
    told = document(signed=signed)
    text = json.dumps(told)
    for name in text.split('"$ref": "#/components/')[1:]:
        group, _, part = name.partition('"')[0].partition("/")
        assert part in told["components"][group]
    for scheme in [name for one in told.get("security", []) for name in one]:
        assert scheme in told["components"]["securitySchemes"]
    assert ("IAM" in text) == ("Signature" in text) == signed
    assert told["security"] == [{"signed" if signed else "bearer": []}]
    for schema in told["components"]["schemas"].values():
        jsonschema_rs.meta.validate(
            {**schema, "$schema": "https://json-schema.org/draft/2020-12/schema"}
        )


# --- cursors --------------------------------------------------------------------------------------

LISTING = ("pages", "site-1", "failed")
PLACE = ("2026-11-21", 3, "site-1#00ff")
ALPHABET = string.ascii_letters + string.digits + "-_"


def test_cursor_is_read_back_and_fits_into_url() -> None:
    text = requests.encode_cursor(LISTING, PLACE)
    assert requests.decode_cursor(LISTING, text, PLACE) == PLACE
    assert requests.decode_cursor(LISTING, None, PLACE) == PLACE
    assert set(text) <= set(ALPHABET)


@pytest.mark.parametrize(
    "listing", [("pages", "site-2", "failed"), ("pages", "site-1", ""), ("pages",), ()]
)
def test_cursor_of_other_listing_is_refused(listing: tuple[str, ...]) -> None:
    with pytest.raises(CursorError):
        requests.decode_cursor(listing, requests.encode_cursor(LISTING, PLACE), PLACE)


@pytest.mark.parametrize("text", ["", "A", "AAAA", "=", "é", "a b", "A" * (CURSOR_CHARS_MAX + 1)])
def test_made_up_cursor_is_refused(text: str) -> None:
    with pytest.raises(CursorError):
        requests.decode_cursor(LISTING, text, PLACE)


@given(place=st.integers(0, 10_000), sign=st.sampled_from(ALPHABET))
def test_changed_cursor_is_refused(place: int, sign: str) -> None:
    """Unused bits of the base64 text are checked too."""
    text = requests.encode_cursor(LISTING, PLACE)
    place %= len(text)
    changed = text[:place] + sign + text[place + 1 :]
    if changed != text:
        with pytest.raises(CursorError):
            requests.decode_cursor(LISTING, changed, PLACE)


@given(text=st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(CursorError):
        requests.decode_cursor(LISTING, text, PLACE)


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


def forged(body: bytes) -> str:
    """Make a cursor with a valid checksum, as a reader of the source code can."""
    raw = requests._sum(LISTING, body) + body
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


@given(
    body=st.binary(max_size=60)
    | ANY_JSON.map(lambda value: json.dumps(value).encode())
    | ANY_JSON.map(lambda value: json.dumps(value, separators=(",", ":")).encode())
    | st.text(max_size=20).map(lambda text: json.dumps([text], separators=(",", ":")).encode())
    | st.sampled_from([b"[" * 700, b"5", b"{}", b"[NaN]", b"[1e999]", b"[" + b"9" * 600 + b"]"])
)
def test_forged_cursor_is_refused_unless_its_types_fit(body: bytes) -> None:
    """A valid checksum is not enough: each part must be an ASCII text or a whole number."""
    for first in ((), ("",), (0,), (0, ""), PLACE):
        with suppress(CursorError):
            place = requests.decode_cursor(LISTING, forged(body), first)
            assert list(map(type, place)) == list(map(type, first))
            assert all(part.isascii() for part in place if isinstance(part, str))
            assert json.loads(body) == list(place)


@given(raw=st.binary(max_size=80))
def test_any_bytes_without_checksum_are_refused(raw: bytes) -> None:
    with pytest.raises(CursorError):
        requests.decode_cursor(LISTING, base64.urlsafe_b64encode(raw).decode(), PLACE)
