"""Tables of exports in the AWS Glue catalogue, which Athena reads.

An unchanged table is not written, and a table of another export is not overwritten. If two writers
register a table at once, both succeed and one version remains. Source:
docs.aws.amazon.com/glue/latest/webapi/API_UpdateTable.html.
"""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from orbweaver.adapters.aws import clients
from orbweaver.adapters.aws.clients import Aws
from orbweaver.exporting.glue_schema import OWNER, glue_table, grown, query_name, second_name
from orbweaver.model.columns import Table

ABSENT, TAKEN = "EntityNotFoundException", "AlreadyExistsException"


class GlueCatalogue:
    """The tables of a database. `root` is the exports' location: `s3://…/`."""

    def __init__(self, aws: Aws, *, database: str, root: str) -> None:
        self._clients = aws
        self._database = database
        self._root = root

    async def register(self, table: Table) -> None:
        for name in (query_name(table.name), second_name(table.name)):
            standing = await self._get(name)
            wanted = glue_table(name, table, self._root)
            if standing is None and await self._try("create_table", TAKEN, wanted) is None:
                standing = await self._get(name)  # another writer created it first
            if standing is None:
                return
            if standing.get("Parameters", {}).get(OWNER) == table.name:
                change = grown(standing, wanted)
                if change is not None:
                    await self._try("update_table", ABSENT, change)
                return

    async def remove(self, folder: str) -> int:
        names, token = [], None
        while token or token is None:
            more: dict[str, Any] = {} if token is None else {"NextToken": token}
            answer = await self._call("get_tables", ABSENT, **more) or {}
            names += [
                table["Name"]
                for table in answer.get("TableList", ())
                if str(table.get("Parameters", {}).get(OWNER, "")).startswith(folder)
            ]
            token = answer.get("NextToken", "")
        for name in names:
            await self._call("delete_table", ABSENT, Name=name)
        return len(names)

    async def _get(self, name: str) -> dict[str, Any] | None:
        answer = await self._call("get_table", ABSENT, Name=name)
        return None if answer is None else answer["Table"]

    async def _try(
        self, operation: str, excused: str, table: dict[str, Any]
    ) -> dict[str, Any] | None:
        return await self._call(operation, excused, TableInput=table)

    async def _call(self, operation: str, excused: str, **parameters: Any) -> dict[str, Any] | None:
        """Call an operation. Return None if it fails with the `excused` error."""
        client = await self._clients.client("glue")
        with clients.translated(operation):
            try:
                call = getattr(client, operation)
                answer: dict[str, Any] = await call(DatabaseName=self._database, **parameters)
            except ClientError as error:
                if clients.code_of(error) == excused:
                    return None
                raise
        return answer
