"""The document that the deployed API serves, held against what the API answers (schemathesis).

Examples are made up from the document, those that fit and those that do not, by a fixed seed: the
same requests in every run. Of each answer it is asked that its status, headers and body are
documented, that it is no failure of ours, and that what does not fit is refused.

Methods that no route has are the gateway's, which answers 403 whatever is asked of it, and not 405;
`test_http_api.py` has them.
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
from orbweaver.api.openapi import document
from orbweaver.api.requests import CRAWL_EXAMPLE
from orbweaver.api.routes import OPERATIONS
from orbweaver.model import crawl_codec
from orbweaver.model.crawl import Crawl
from tests.e2e.caller import Caller, undisturbed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from requests import PreparedRequest
    from schemathesis.schemas import BaseSchema

    from tests.e2e.stand import Stand

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(300)]

EXAMPLES, DEFINITIONS = 5, 30  # made up at random, beside those that try each word
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
    """Return who may call the stack's API, in which there is the crawl that the document names.

    What is sent is not asked for: the document's examples are not of this machine.
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
    """Have examples made up for some operations; `covering` tries every word of their schemas.

    That every request is signed is not up to them: it is left out here.
    """
    described = {word: value for word, value in document().items() if word != "security"}
    schema = schemathesis.openapi.from_dict(described)
    schema.config.phases.coverage.enabled = covering
    return schema.include(operation_id=list(operations))


DEFINING = ("start", "edit", "preview")
OTHERS = tuple(one.name for one in OPERATIONS if one.name not in DEFINING)
brief = examples_of(*OTHERS, covering=True)
# A definition has too many words to try each of them in each way.
defining = examples_of(*DEFINING, covering=False)


class Signing(AuthBase):
    """Signs what is about to be sent, as it is sent."""

    def __init__(self, caller: Caller) -> None:
        """Take the keys of a caller."""
        self._caller = caller

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Add the headers that sign a request."""
        body = request.body.encode() if isinstance(request.body, str) else request.body
        assert body is None or isinstance(body, bytes)
        given = {"Content-Type": str(request.headers.get("Content-Type", ""))}
        headers = self._caller.signed(request.method or "", request.url or "", body, given)
        request.headers.update(headers)
        return request


def test_the_document_is_served(caller: Caller) -> None:
    """What is held against the answers is what the API says of itself."""
    answer = caller.ask("GET", "/openapi.json")

    assert (answer.status, answer.content_type) == (200, "application/json")
    assert answer.body == document()


@brief.parametrize()
@settings(max_examples=EXAMPLES, derandomize=True, deadline=None)
def test_every_answer_is_documented(case: schemathesis.Case[Any], caller: Caller) -> None:
    """No failure of ours, no answer that the document does not have."""
    case.call_and_validate(base_url=caller.url, auth=Signing(caller), checks=list(CHECKS))


@defining.parametrize()
@settings(max_examples=DEFINITIONS, derandomize=True, deadline=None)
def test_definitions_are_answered_as_documented(
    case: schemathesis.Case[Any], caller: Caller
) -> None:
    """The same for operations that take a crawl's definition."""
    case.call_and_validate(base_url=caller.url, auth=Signing(caller), checks=list(CHECKS))
