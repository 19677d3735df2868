"""The served OpenAPI document, compared with the API's answers (schemathesis).

Valid and invalid examples are generated from the document by a fixed seed, so each run sends the
same requests. Each answer must have a documented status, headers and body, must not be a server
error, and must refuse invalid input. The gateway answers 403, not 405, to methods without a route;
`test_http_api.py` tests them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from hypothesis import settings
from requests.auth import AuthBase
from schemathesis import checks
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from orbweaver.adapters.dynamodb.table import to_item
from orbweaver.api.requests import CRAWL_EXAMPLE
from orbweaver.api.routes import OPERATIONS, document
from orbweaver.model import crawl_codec
from orbweaver.model.crawl import Crawl
from tests.e2e.caller import Caller, undisturbed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from requests import PreparedRequest
    from schemathesis.schemas import BaseSchema

    from tests.e2e.stand import Stand

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(300)]

EXAMPLES, DEFINITIONS = 5, 30  # Random examples, in addition to examples per keyword.
CHECKS = (
    checks.not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
)


@pytest.fixture(scope="module")
def caller(stand: Stand) -> Iterator[Caller]:
    """Return a client of the stack's API, with the crawl that the document names.

    Sent URLs are not fetched, because the document's examples are not on this machine.
    """
    with undisturbed(stand):
        crawl = Crawl(
            id=CRAWL_EXAMPLE, name="example.com", started_at_ms=time.time_ns() // 1_000_000
        )
        item = to_item({"k": crawl.id, **crawl_codec.to_fields(crawl)})
        with stand.client("dynamodb") as dynamodb:
            dynamodb.put_item(TableName=stand.outputs["CrawlsTable"], Item=item)
        yield Caller(stand)


def examples_of(*operations: str, covering: bool) -> BaseSchema:
    """Generate unsigned requests for some operations, with every schema keyword if `covering`."""
    described = {word: value for word, value in document().items() if word != "security"}
    schema = schemathesis.openapi.from_dict(described)
    schema.config.phases.coverage.enabled = covering
    return schema.include(operation_id=list(operations))


DEFINING = ("start", "edit", "preview")
OTHERS = tuple(one.name for one in OPERATIONS if one.name not in DEFINING)
brief = examples_of(*OTHERS, covering=True)
# A definition has too many keywords to try each in each way.
defining = examples_of(*DEFINING, covering=False)


class Signing(AuthBase):
    """Signs each request as it is sent."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        body = request.body.encode() if isinstance(request.body, str) else request.body
        assert body is None or isinstance(body, bytes)
        given = {"Content-Type": str(request.headers.get("Content-Type", ""))}
        headers = self._caller.signed(request.method or "", request.url or "", body, given)
        request.headers.update(headers)
        return request


def test_api_serves_its_document(caller: Caller) -> None:
    answer = caller.ask("GET", "/openapi.json")

    assert (answer.status, answer.content_type) == (200, "application/json")
    assert answer.body == document()


@brief.parametrize()
@settings(max_examples=EXAMPLES, derandomize=True, deadline=None)
def test_every_answer_is_documented(case: schemathesis.Case[Any], caller: Caller) -> None:
    case.call_and_validate(base_url=caller.url, auth=Signing(caller), checks=list(CHECKS))


@defining.parametrize()
@settings(max_examples=DEFINITIONS, derandomize=True, deadline=None)
def test_definitions_are_answered_as_documented(
    case: schemathesis.Case[Any], caller: Caller
) -> None:
    case.call_and_validate(base_url=caller.url, auth=Signing(caller), checks=list(CHECKS))
