"""Secrets in AWS Secrets Manager.

Errors never contain a secret; they contain the operation and AWS's error code.
"""

from __future__ import annotations

from orbweaver.adapters.aws import clients
from orbweaver.adapters.aws.clients import Aws
from orbweaver.model.errors import Permanent


class ManagedSecrets:
    """Reads secrets."""

    def __init__(self, aws: Aws) -> None:
        """The client opens at first use."""
        self._clients = aws

    async def read(self, name: str) -> str:
        """Return the current text of a secret, by name or ARN.

        Raises `Permanent` if it is missing.
        """
        client = await self._clients.client("secretsmanager")
        answer = await clients.call(client, "get_secret_value", SecretId=name)
        text = answer.get("SecretString")
        if not isinstance(text, str):
            raise Permanent("get_secret_value: it holds bytes, and not text")
        return text
