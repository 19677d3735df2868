"""Client-side replacements for operations that moto and DynamoDB Local lack.

PartiQL INSERT with parameters (both lack it) becomes a conditional put. DynamoDB Local does not
return the item that failed a condition of a single write, so the client reads that item afterwards.
For transactions it returns the item.
"""

from __future__ import annotations

import re
from typing import Any

from botocore.exceptions import ClientError

STATEMENT = re.compile(r'INSERT INTO "(?P<table>[^"]+)" VALUE \{(?P<fields>.+)\}')
FIELD = re.compile(r"'(\w+)': \?")


class WithInserts:
    """Database client that inserts by conditional put; other calls pass through."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def batch_execute_statement(self, **parameters: Any) -> dict[str, Any]:
        statements = parameters["Statements"]
        assert 1 <= len(statements) <= 25
        return {"Responses": [await self._insert(statement) for statement in statements]}

    async def _insert(self, statement: dict[str, Any]) -> dict[str, Any]:
        found = STATEMENT.fullmatch(statement["Statement"])
        assert found is not None
        names = FIELD.findall(found["fields"])
        try:
            await self._client.put_item(
                TableName=found["table"],
                Item=dict(zip(names, statement["Parameters"], strict=True)),
                ConditionExpression="attribute_not_exists(k)",
            )
        except ClientError:
            return {"Error": {"Code": "DuplicateItem"}, "TableName": found["table"]}
        return {"TableName": found["table"]}


class WithItems(WithInserts):
    """Client that returns the item that failed a write's condition."""

    async def put_item(self, **parameters: Any) -> Any:
        return await self._told(self._client.put_item, parameters, parameters["Item"])

    async def update_item(self, **parameters: Any) -> Any:
        return await self._told(self._client.update_item, parameters, parameters["Key"])

    async def delete_item(self, **parameters: Any) -> Any:
        return await self._told(self._client.delete_item, parameters, parameters["Key"])

    async def _told(self, write: Any, parameters: dict[str, Any], named: dict[str, Any]) -> Any:
        wanted = parameters.pop("ReturnValuesOnConditionCheckFailure", "NONE") == "ALL_OLD"
        try:
            return await write(**parameters)
        except ClientError as error:
            if wanted and error.response["Error"]["Code"] == "ConditionalCheckFailedException":
                table = parameters["TableName"]
                described = await self._client.describe_table(TableName=table)
                key = {
                    part["AttributeName"]: named[part["AttributeName"]]
                    for part in described["Table"]["KeySchema"]
                }
                found = await self._client.get_item(TableName=table, Key=key, ConsistentRead=True)
                told: dict[str, Any] = {**error.response}
                told |= {"Item": found["Item"]} if "Item" in found else {}
                raise ClientError(told, error.operation_name) from error  # type: ignore[arg-type] # Item is not in its type
            raise
