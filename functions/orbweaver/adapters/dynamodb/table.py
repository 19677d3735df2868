"""DynamoDB client with a codec for items, retried batches, and transactions.

Fields are plain values. In expressions, `#name` means the attribute `name`. Sources: Amazon
DynamoDB API reference, BatchGetItem, BatchWriteItem, BatchExecuteStatement, TransactWriteItems.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from botocore.exceptions import ClientError

from orbweaver.adapters.aws import clients
from orbweaver.model.errors import NOTHING, Permanent, Transient

if TYPE_CHECKING:
    from random import Random

    from orbweaver.model.ports import Clock

Item: TypeAlias = dict[str, Any]
"""An item in DynamoDB's format: attribute name to {type: value}. Or a part of a request."""
Fields: TypeAlias = dict[str, Any]
"""An item's or key's plain values by attribute name."""

GET_KEYS_MAX = 100
WRITES_MAX = 25
TRANSACTION_TRIES = 10
BATCHES_AT_ONCE = 8
# Maximum size of a blob. An item holds 400 KB, with its other attributes and all names.
BLOB_BYTES_MAX = 350 * 1024

CONDITION_FAILED = "ConditionalCheckFailed"
NAMES = "ExpressionAttributeNames"
EXPRESSIONS = tuple(
    f"{kind}Expression" for kind in ("Update", "Condition", "KeyCondition", "Filter", "Projection")
)


class ConditionFailed(Exception):
    """A write's condition was false. `fields` is the stored item at that moment, or {}."""

    def __init__(self, item: Item | None) -> None:
        super().__init__("condition failed")
        self.fields = from_item(item or {})


class Cancelled(Exception):
    """A transaction was refused. `code` is the first reason.

    The keys of `fields` are the indexes of actions whose condition failed. Each value contains the
    fields of the stored item, or {} if none is stored.
    """

    def __init__(self, reasons: Sequence[Mapping[str, Any]] | None) -> None:
        super().__init__("transaction cancelled")
        codes = [str(reason.get("Code", "None")) for reason in reasons or ()]
        self.code = next((code for code in codes if code != "None"), "unknown")
        self.fields: dict[int, Fields] = {
            place: from_item(reason.get("Item") or {})
            for place, reason in enumerate(reasons or ())
            if reason.get("Code") == CONDITION_FAILED
        }


class Dynamo:
    """A DynamoDB client that retries partial batches and conflicting transactions."""

    def __init__(self, client: Any, *, clock: Clock, random: Random) -> None:
        self._client = client
        self._clock = clock
        self._random = random

    async def call(self, operation: str, **parameters: Any) -> dict[str, Any]:
        """Call the client. Raises ConditionFailed or Cancelled if a condition is false."""
        with clients.translated(operation):
            try:
                call = getattr(self._client, operation)
                answer: dict[str, Any] = await call(**_named(parameters))
            except ClientError as error:
                match clients.code_of(error):
                    case "ConditionalCheckFailedException":
                        raise ConditionFailed(_member(error, "Item")) from error
                    case "TransactionCanceledException":
                        raise Cancelled(_member(error, "CancellationReasons")) from error
                raise
        return answer

    async def get(self, table: str, key: Fields, *, consistent: bool = True) -> Fields:
        """Read an item. Return {} if it is absent."""
        answer = await self.call(
            "get_item", TableName=table, Key=to_item(key), ConsistentRead=consistent
        )
        return from_item(answer.get("Item", {}))

    async def get_many(
        self,
        table: str,
        keys: Sequence[Fields],
        *,
        consistent: bool,
        attributes: Sequence[str] = (),
    ) -> list[Fields]:
        """Read items by distinct keys, in any order. Absent items are left out."""
        options: dict[str, Any] = {"ConsistentRead": consistent}
        if attributes:
            options["ProjectionExpression"] = ", ".join(f"#{name}" for name in attributes)
            options = _named(options)
        items = list(map(to_item, keys))
        found = await clients.all_of(
            (self._get(table, chunk, options) for chunk in _chunks(items, GET_KEYS_MAX)),
            BATCHES_AT_ONCE,
        )
        return [from_item(item) for items in found for item in items]

    async def _get(self, table: str, keys: Sequence[Item], options: Item) -> list[Item]:
        found: list[Item] = []
        attempt = 0
        while attempt < clients.BATCH_TRIES:
            request = {table: {"Keys": keys, **options}}
            answer = await self.call("batch_get_item", RequestItems=request)
            found += answer.get("Responses", {}).get(table, [])
            rest = answer.get("UnprocessedKeys", {}).get(table, {}).get("Keys", [])
            if not rest:
                return found
            # The attempts start again while DynamoDB processes part of the batch.
            attempt = 1 if len(rest) < len(keys) else attempt + 1
            keys = rest
            await clients.pause(self._clock, self._random, attempt)
        raise Transient("batch_get_item: keys are left unprocessed")

    async def put(
        self, table: str, fields: Fields, when: str = "", values: Mapping[str, Any] = NOTHING
    ) -> None:
        """Write an item, if the condition `when` is true. Raises ConditionFailed."""
        await self.call("put_item", **put_request(table, fields, when, values))

    async def update(
        self, table: str, key: Fields, update: str, values: Mapping[str, Any], **options: Any
    ) -> None:
        """Update an item, with the options of `update_request`. Raises ConditionFailed."""
        await self.call("update_item", **update_request(table, key, update, values, **options))

    async def updated(
        self, table: str, key: Fields, update: str, values: Mapping[str, Any], **options: Any
    ) -> Fields:
        """Update an item, and return its new fields."""
        request = update_request(table, key, update, values, **options)
        answer = await self.call("update_item", ReturnValues="ALL_NEW", **request)
        return from_item(answer["Attributes"])

    async def delete(
        self, table: str, key: Fields, when: str = "", values: Mapping[str, Any] = NOTHING
    ) -> None:
        """Delete an item, if the condition `when` is true. Raises ConditionFailed."""
        key = to_item(key)
        await self.call("delete_item", TableName=table, Key=key, **_condition(when, values))

    async def put_many(self, table: str, items: Iterable[Fields]) -> None:
        """Write items with distinct keys, replacing existing ones."""
        await self._write_many(table, [{"PutRequest": {"Item": to_item(item)}} for item in items])

    async def delete_many(self, table: str, keys: Iterable[Fields]) -> None:
        await self._write_many(table, [{"DeleteRequest": {"Key": to_item(key)}} for key in keys])

    async def _write_many(self, table: str, writes: Sequence[Item]) -> None:
        await clients.all_of(
            (self._write(table, chunk) for chunk in _chunks(writes, WRITES_MAX)), BATCHES_AT_ONCE
        )

    async def _write(self, table: str, writes: Sequence[Item]) -> None:
        attempt = 0
        while attempt < clients.BATCH_TRIES:
            answer = await self.call("batch_write_item", RequestItems={table: writes})
            rest = answer.get("UnprocessedItems", {}).get(table, [])
            if not rest:
                return
            attempt = 1 if len(rest) < len(writes) else attempt + 1
            writes = rest
            await clients.pause(self._clock, self._random, attempt)
        raise Transient("batch_write_item: items are left unprocessed")

    async def insert_many(self, table: str, items: Iterable[Fields]) -> list[bool]:
        """Insert items. Return for each whether its key was free."""
        # PartiQL's INSERT is the only conditional write in batches. It costs as much as a PutItem,
        # with a twelfth of the CPU time (0.16 ms measured instead of 2).
        chunks = _chunks(list(map(to_item, items)), WRITES_MAX)
        inserted = await clients.all_of(
            (self._insert(table, chunk) for chunk in chunks), BATCHES_AT_ONCE
        )
        return [done for batch in inserted for done in batch]

    async def _insert(self, table: str, items: Sequence[Item]) -> list[bool]:
        done = [False] * len(items)
        left = list(range(len(items)))
        for attempt in range(1, clients.BATCH_TRIES + 1):
            statements = [_insertion(table, items[place]) for place in left]
            answer = await self.call("batch_execute_statement", Statements=statements)
            again: list[int] = []
            for place, result in zip(left, answer["Responses"], strict=True):
                code = result.get("Error", {}).get("Code", "None")
                done[place] = code == "None"
                if code in clients.TRANSIENT_CODES:
                    again.append(place)
                elif code not in ("None", "DuplicateItem"):
                    raise Permanent(f"batch_execute_statement: {code}")
            if not again:
                return done
            left = again
            await clients.pause(self._clock, self._random, attempt)
        raise Transient("batch_execute_statement: items are left unprocessed")

    async def transact(self, actions: Sequence[Item]) -> None:
        """Write all actions or none. Raises Cancelled if a condition is false."""
        named = [{kind: _named(one) for kind, one in action.items()} for action in actions]
        for attempt in range(1, TRANSACTION_TRIES + 1):
            try:
                await self.call("transact_write_items", TransactItems=named)
            except Cancelled as cancelled:
                code = cancelled.code
                # A condition that fails after an item in conflict may be out of date, so the first
                # reason decides.
                if code == CONDITION_FAILED:
                    raise
                if code not in clients.TRANSIENT_CODES:
                    raise Permanent(f"transact_write_items: {code}") from cancelled
            else:
                return
            await clients.pause(self._clock, self._random, attempt)
        raise Transient("transact_write_items: in conflict with others, again and again")

    async def query(
        self, table: str, condition: str, values: Mapping[str, Any], **options: Any
    ) -> AsyncIterator[Iterable[Fields]]:
        """Yield the pages of a query."""
        async for page in self.pages("query", **query_request(table, condition, values, **options)):
            yield page

    async def pages(self, operation: str, **parameters: Any) -> AsyncIterator[Iterable[Fields]]:
        """Yield the pages of a query or scan, each at most 1 MB."""
        while True:
            answer = await self.call(operation, **parameters)
            yield map(from_item, answer.get("Items", []))  # a page is 1 MB: decode as it is read
            if "LastEvaluatedKey" not in answer:
                return
            parameters["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def put_request(
    table: str, fields: Fields, when: str = "", values: Mapping[str, Any] = NOTHING
) -> Item:
    """Return the parameters of a Put. `when` is its condition."""
    return {"TableName": table, "Item": to_item(fields), **_condition(when, values)}


def update_request(
    table: str,
    key: Fields,
    update: str,
    values: Mapping[str, Any],
    *,
    when: str = "",
    names: Mapping[str, str] | None = None,
) -> Item:
    """Return the parameters of an Update. `names` are attributes that are no words (`s.ok`)."""
    request = {"TableName": table, "Key": to_item(key), "UpdateExpression": update}
    return request | _condition(when, values) | ({NAMES: names} if names else {})


def query_request(table: str, condition: str, values: Mapping[str, Any], **options: Any) -> Item:
    request = {"TableName": table, "KeyConditionExpression": condition}
    return request | {"ExpressionAttributeValues": to_item(values)} | options


def _condition(when: str, values: Mapping[str, Any]) -> Item:
    condition: Item = {}
    if values:
        condition["ExpressionAttributeValues"] = to_item(values)
    if when:
        condition["ConditionExpression"] = when
        condition["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    return condition


def _chunks(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def _named(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Add the attribute names that the request's expressions use."""
    used = (name for key in EXPRESSIONS for name in _names_in(parameters.get(key, "")))
    names = {f"#{name}": name for name in used} | parameters.get(NAMES, {})
    return {**parameters, NAMES: names} if names else dict(parameters)


@lru_cache(maxsize=256)
def _names_in(expression: str) -> tuple[str, ...]:
    return tuple(re.findall(r"#(\w+)", expression))


def _member(error: ClientError, name: str) -> Any:
    return cast("Mapping[str, Any]", error.response).get(name)


def _insertion(table: str, item: Item) -> Item:
    fields = ", ".join(f"'{name}': ?" for name in item)
    return {
        "Statement": f'INSERT INTO "{table}" VALUE {{{fields}}}',
        "Parameters": list(item.values()),
    }


def marshal(value: Any) -> Item:
    match value:
        case bool():
            return {"BOOL": value}
        case int() | float():
            return {"N": repr(value)}
        case str():
            return {"S": _without_surrogates(value)}
        case bytes():
            return {"B": value}
        case list() | tuple():
            return {"L": [marshal(member) for member in value]}
        case dict():
            return {"M": to_item(value)}
        case _:
            message = f"no attribute type for {type(value).__name__}"
            raise TypeError(message)


def unmarshal(attribute: Mapping[str, Any]) -> Any:
    ((kind, value),) = attribute.items()
    match kind:
        case "N":
            return float(value) if "." in value or "e" in value.lower() else int(value)
        case "L":
            return [unmarshal(member) for member in value]
        case "M":
            return from_item(value)
        case "S" | "B" | "BOOL":
            return value
        case _:
            message = f"an attribute of type {kind} is not ours"
            raise TypeError(message)


def to_item(fields: Mapping[str, Any]) -> Item:
    """Encode fields as an item, without fields that are None."""
    return {name: marshal(value) for name, value in fields.items() if value is not None}


def from_item(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: unmarshal(attribute) for name, attribute in item.items()}


def assign(fields: Mapping[str, Any]) -> tuple[str, Fields]:
    """Return an update that sets fields, and its values. A field that is None is removed."""
    kept = [name for name, value in fields.items() if value is not None]
    gone = [name for name, value in fields.items() if value is None]
    update = "SET " + ", ".join(f"#{name} = :{name}" for name in kept)
    if gone:
        update += " REMOVE " + ", ".join(f"#{name}" for name in gone)
    return update, {f":{name}": fields[name] for name in kept}


def add(counts: Mapping[str, int], expires_s: int | None) -> tuple[str, Fields, dict[str, str]]:
    """Return an update that adds counts to attributes and sets the time of expiry.

    Its values and names follow.
    """
    update = "ADD " + ", ".join(f"#n{place} :n{place}" for place in range(len(counts)))
    values = {f":n{place}": count for place, count in enumerate(counts.values())}
    if expires_s is not None:
        update += " SET #expires_at = :expires_at"
        values[":expires_at"] = expires_s
    return update, values, {f"#n{place}": name for place, name in enumerate(counts)}


def _without_surrogates(text: str) -> str:
    # HTTP headers can contain lone surrogates, but UTF-8 cannot.
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="surrogatepass").decode(errors="replace")
    return text
