"""Secrets in AWS Secrets Manager.

Errors contain the operation and AWS's error code, never a secret.
"""

from __future__ import annotations

from orbweaver.adapters.aws import clients
from orbweaver.adapters.aws.clients import Aws
from orbweaver.model.errors import Permanent


class ManagedSecrets:
    """Implements `Secrets` on AWS Secrets Manager."""

    def __init__(self, aws: Aws) -> None:
        self._clients = aws

    async def read(self, name: str) -> str:
        """Return the text of a secret, by name or ARN. Raises `Permanent` if it is missing."""
        client = await self._clients.client("secretsmanager")
        answer = await clients.call(client, "get_secret_value", SecretId=name)
        text = answer.get("SecretString")
        if not isinstance(text, str):
            raise Permanent("get_secret_value: it holds bytes, and not text")
        return text
