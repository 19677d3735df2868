"""Invoking a function of our own, without waiting for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from orbweaver.adapters import aws

if TYPE_CHECKING:
    from collections.abc import Mapping


class FunctionContinuation:
    """The exporter's way to another invocation of itself."""

    def __init__(self, client: Any, *, function: str) -> None:
        """Take the Lambda client and the function's name."""
        self._client = client
        self._function = function

    async def again(self, event: Mapping[str, Any]) -> None:
        """See the port."""
        await aws.call(
            self._client,
            "invoke",
            FunctionName=self._function,
            InvocationType="Event",
            Payload=json.dumps(dict(event)).encode(),
        )
