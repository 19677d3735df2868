"""Throttle one hot key and serve all other keys, like a hot DynamoDB partition.

Batches, transactions and single requests are each refused in a different way.
"""

from __future__ import annotations

from typing import Any

from tests.contract.faults import THROTTLED, Answer, Call, Fault, cancelled

CODE = "ProvisionedThroughputExceeded"


def touches(request: Any, key: str) -> bool:
    """True if a request, or part of it, uses an item whose key has this prefix."""
    match request:
        case {"S": str(text)}:
            return text.startswith(key)
        case dict():
            return any(touches(member, key) for member in request.values())
        case list() | tuple():
            return any(touches(member, key) for member in request)
        case _:
            return False


class Hot:
    """Refuses requests about one key, a number of times."""

    def __init__(self, key: str, times: int) -> None:
        self._key = key
        self._left = times

    def faults(self) -> dict[str, Fault]:
        lone = ("get_item", "put_item", "update_item", "delete_item", "query")
        return {
            **dict.fromkeys(lone, self._lone),
            "batch_get_item": self._read,
            "batch_write_item": self._written,
            "batch_execute_statement": self._inserted,
            "transact_write_items": self._transacted,
        }

    def _refuses(self, request: Any) -> bool:
        refused = self._left > 0 and touches(request, self._key)
        self._left -= refused
        return refused

    def _parted(self, entries: list[Any]) -> tuple[list[Any], list[Any]]:
        refused = [self._refuses(entry) for entry in entries]
        taken = [entry for entry, no in zip(entries, refused, strict=True) if not no]
        return taken, [entry for entry, no in zip(entries, refused, strict=True) if no]

    async def _lone(self, call: Call, parameters: Answer) -> Answer:
        if self._refuses(parameters):
            raise THROTTLED
        return await call(**parameters)

    async def _read(self, call: Call, parameters: Answer) -> Answer:
        ((table, asked),) = parameters["RequestItems"].items()
        taken, left = self._parted(asked["Keys"])
        answer: Answer = {"Responses": {table: []}}
        if taken:
            answer = await call(RequestItems={table: {**asked, "Keys": taken}})
        rest = {table: {**asked, "Keys": left}} if left else {}
        return {**answer, "UnprocessedKeys": rest}

    async def _written(self, call: Call, parameters: Answer) -> Answer:
        ((table, asked),) = parameters["RequestItems"].items()
        taken, left = self._parted(asked)
        if taken:
            await call(RequestItems={table: taken})
        return {"UnprocessedItems": {table: left} if left else {}}

    async def _inserted(self, call: Call, parameters: Answer) -> Answer:
        answers: list[Answer] = []
        for statement in parameters["Statements"]:
            if self._refuses(statement):
                answers.append({"Error": {"Code": CODE}})
            else:
                answers += (await call(Statements=[statement]))["Responses"]
        return {"Responses": answers}

    async def _transacted(self, call: Call, parameters: Answer) -> Answer:
        refused = [self._refuses(action) for action in parameters["TransactItems"]]
        if any(refused):
            raise cancelled(*(CODE if no else "None" for no in refused))
        return await call(**parameters)
