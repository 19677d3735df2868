"""Translation of AWS errors to Transient and Permanent, and of values to DynamoDB attributes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from botocore import exceptions as boto
from botocore.parsers import ResponseParserError
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.adapters.aws import clients
from orbweaver.adapters.dynamodb.table import from_item, marshal, to_item, unmarshal
from orbweaver.model import crawl_codec
from orbweaver.model.crawl import State
from orbweaver.model.errors import Permanent, PortError, Transient
from tests.contract import samples
from tests.contract.faults import refused

if TYPE_CHECKING:
    from collections.abc import Awaitable

ENDPOINT = "https://aws.example"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (refused("ProvisionedThroughputExceededException"), Transient),
        (refused("ThrottlingException"), Transient),
        (refused("RequestLimitExceeded"), Transient),
        (refused("SlowDown", 503), Transient),
        (refused("ConcurrentModificationException"), Transient),
        (refused("TransactionInProgressException"), Transient),
        (refused("InternalServerError", 500), Transient),
        (refused("SomethingNew", 502), Transient),
        (refused("SomethingNew", 429), Transient),
        (refused("ExpiredTokenException"), Transient),
        (refused("AccessDeniedException"), Permanent),
        (refused("ResourceNotFoundException"), Permanent),
        (refused("ValidationException"), Permanent),
        (refused("AWS.SimpleQueueService.NonExistentQueue"), Permanent),
        (refused("SomethingNew"), Permanent),
        (boto.ConnectTimeoutError(endpoint_url=ENDPOINT), Transient),
        (boto.ReadTimeoutError(endpoint_url=ENDPOINT), Transient),
        (boto.EndpointConnectionError(endpoint_url=ENDPOINT), Transient),
        (boto.ConnectionClosedError(endpoint_url=ENDPOINT), Transient),
        (boto.HTTPClientError(error="any"), Transient),
        (boto.ResponseStreamingError(error="any"), Transient),
        (boto.IncompleteReadError(actual_bytes=1, expected_bytes=2), Transient),
        (ResponseParserError("<html>"), Transient),
        (aiohttp.ClientPayloadError(), Transient),
        (TimeoutError(), Transient),
        (boto.NoCredentialsError(), Permanent),
        (boto.ParamValidationError(report="any"), Permanent),
        (boto.NoRegionError(), Permanent),
    ],
    ids=repr,
)
def test_every_error_is_transient_or_permanent(error: Exception, kind: type[PortError]) -> None:
    with pytest.raises(kind, match="an_operation"), clients.translated("an_operation"):
        raise error


@pytest.mark.parametrize("error", [ValueError("ours"), KeyError("ours"), asyncio.CancelledError()])
def test_own_errors_are_not_translated(error: BaseException) -> None:
    with pytest.raises(type(error)), clients.translated("an_operation"):
        raise error


async def test_first_error_is_raised_after_all_calls_end() -> None:
    done: list[int] = []

    async def step(number: int) -> int:
        await asyncio.sleep(0)
        if number in (1, 3):
            raise Transient(str(number))
        done.append(number)
        return number

    with pytest.raises(Transient, match="1"):
        await clients.all_of((step(number) for number in range(6)), 2)
    assert done == [0, 2, 4, 5]
    assert await clients.all_of((step(number) for number in (0, 2)), 5) == [0, 2]


async def test_concurrent_calls_are_limited() -> None:
    running = peak = 0

    async def step() -> None:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await asyncio.sleep(0)
        running -= 1

    steps: list[Awaitable[None]] = [step() for _ in range(20)]
    await clients.all_of(steps, 3)
    assert peak == 3


async def test_container_has_one_client_per_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    async with clients.Aws() as opened:
        assert await opened.client("sqs") is await opened.client("sqs")
        assert await opened.client("sqs") is not await opened.client("events")


VALUES = st.recursive(
    st.one_of(
        st.text(st.characters(exclude_categories=["Cs"])),
        st.integers(min_value=-(2**53), max_value=2**53),
        st.floats(min_value=-1e15, max_value=1e15, allow_subnormal=False),
        st.booleans(),
        st.binary(),
    ),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)


@given(VALUES)
def test_values_are_read_with_their_type(value: Any) -> None:
    back = unmarshal(marshal(value))
    assert back == value
    assert type(back) is type(value)


@given(st.dictionaries(st.text(min_size=1), st.one_of(st.none(), VALUES)))
def test_items_omit_missing_values(fields: dict[str, Any]) -> None:
    assert from_item(to_item(fields)) == {
        name: value for name, value in fields.items() if value is not None
    }


def test_unsupported_value_or_attribute_is_error() -> None:
    with pytest.raises(TypeError):
        marshal({"a"})
    with pytest.raises(TypeError):
        unmarshal({"SS": ["a"]})


def test_crawl_of_other_version_is_read() -> None:
    raw = crawl_codec.to_fields(samples.crawl(state=State.PAUSED))
    assert crawl_codec.from_fields(raw | {"colour": "red", "k": "x"}) == samples.crawl(
        state=State.PAUSED
    )
    least = {"id": "shop-1", "name": "shop", "started_at_ms": samples.NOW_MS}
    assert crawl_codec.from_fields(least) == samples.crawl()
