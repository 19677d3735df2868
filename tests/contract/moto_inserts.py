"""What moto lacks: PartiQL's INSERT with parameters, which the emulator has and AWS has."""

from __future__ import annotations

import re
from typing import Any

from botocore.exceptions import ClientError

STATEMENT = re.compile(r'INSERT INTO "(?P<table>[^"]+)" VALUE \{(?P<fields>.+)\}')
FIELD = re.compile(r"'(\w+)': \?")


class WithInserts:
    """A client of moto's database that inserts by conditional put; all else goes through."""

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
