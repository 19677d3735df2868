"""AWS client that injects faults into calls and counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from botocore.exceptions import ClientError, ReadTimeoutError

from tests.contract.worlds import AwsWorld, Container

Answer: TypeAlias = dict[str, Any]
Call: TypeAlias = "Callable[..., Awaitable[Answer]]"
Fault: TypeAlias = "Callable[[Call, Answer], Awaitable[Answer]]"


class Faulty:
    """Client with faults by method name; other methods pass through."""

    def __init__(self, client: Any, **faults: Fault) -> None:
        self._client = client
        self._faults = faults
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Call:
        method: Call = getattr(self._client, name)

        async def call(**parameters: Any) -> Answer:
            self.calls[name] += 1
            fault = self._faults.get(name)
            return await (method(**parameters) if fault is None else fault(method, parameters))

        return call


def refused(code: str, status: int = 400, **members: Any) -> ClientError:
    response: Any = {
        "Error": {"Code": code, "Message": "as the test says"},
        "ResponseMetadata": {"HTTPStatusCode": status},
        **members,
    }
    return ClientError(response, "Test")


def cancelled(*codes: str, **items: Any) -> ClientError:
    """Accept every other message of a batch and fail the rest, `times` times."""
    reasons = [
        {"Code": code} | ({"Item": items[f"item{place}"]} if f"item{place}" in items else {})
        for place, code in enumerate(codes)
    ]
    return refused("TransactionCanceledException", CancellationReasons=reasons)


def failing(*errors: Exception) -> Fault:
    """Raise these errors, one per call, then succeed."""
    left = list(errors)

    async def fault(call: Call, parameters: Answer) -> Answer:
        if left:
            raise left.pop(0)
        return await call(**parameters)

    return fault


def always(error: Exception) -> Fault:
    async def fault(_call: Call, _parameters: Answer) -> Answer:
        raise error

    return fault


def answering(answer: Answer) -> Fault:
    async def fault(_call: Call, _parameters: Answer) -> Answer:
        return answer

    return fault


def unanswered(times: int = 1) -> Fault:
    """Send the request but lose the answer, `times` times."""
    lost = 0

    async def fault(call: Call, parameters: Answer) -> Answer:
        nonlocal lost
        answer = await call(**parameters)
        lost += 1
        if lost <= times:
            raise ReadTimeoutError(endpoint_url="https://aws.example")
        return answer

    return fault


async def repeated(call: Call, parameters: Answer) -> Answer:
    """Send the request twice, like a client that retries after a lost answer."""
    await call(**parameters)
    return await call(**parameters)


def with_parameters(**more: Any) -> Fault:
    async def fault(call: Call, parameters: Answer) -> Answer:
        return await call(**parameters, **more)

    return fault


def halved(request: str, rest: str, members: str | None = None) -> Fault:
    """Process only the first half of a database batch and return the rest as unprocessed."""

    async def fault(call: Call, parameters: Answer) -> Answer:
        ((table, asked),) = parameters[request].items()
        entries = asked[members] if members else asked
        half = (len(entries) + 1) // 2
        now: Any = entries[:half]
        left: Any = entries[half:]
        if members:
            now, left = {**asked, members: now}, {**asked, members: left}
        answer = await call(**{**parameters, request: {table: now}})
        return {**answer, rest: {table: left} if entries[half:] else {}}

    return fault


HALF_READ = halved("RequestItems", "UnprocessedKeys", "Keys")
HALF_WRITTEN = halved("RequestItems", "UnprocessedItems")


async def lagging(call: Call, parameters: Answer) -> Answer:
    """Answer like a stale replica, except for consistent reads."""
    [asked] = parameters.get("RequestItems", {"": parameters}).values()
    return await call(**parameters) if asked.get("ConsistentRead") else {}


LAGGING = dict.fromkeys(("get_item", "batch_get_item", "query"), lagging)


async def nothing_read(_call: Call, parameters: Answer) -> Answer:
    return {"Responses": {}, "UnprocessedKeys": parameters["RequestItems"]}


async def nothing_written(_call: Call, parameters: Answer) -> Answer:
    return {"UnprocessedItems": parameters["RequestItems"]}


def half_sent(code: str = "InternalError", *, sender_fault: bool = False, times: int = 1) -> Fault:
    """Accept every other message of a batch and fail the others, `times` times."""
    failures = 0

    async def fault(call: Call, parameters: Answer) -> Answer:
        nonlocal failures
        failures += 1
        if failures > times:
            return await call(**parameters)
        entries = parameters["Entries"]
        answer = await call(**{**parameters, "Entries": entries[::2]})
        failed = [
            {"Id": entry["Id"], "SenderFault": sender_fault, "Code": code}
            for entry in entries[1::2]
        ]
        return {**answer, "Failed": failed}

    return fault


THROTTLED = refused("ProvisionedThroughputExceededException")


def faulty(world: AwsWorld, service: str, **script: Fault) -> tuple[Container, Faulty]:
    client = Faulty(world.clients[service], **script)
    return world.container(**{service: client}), client
