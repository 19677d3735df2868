"""Secrets in AWS Secrets Manager.

What a secret holds is handed to the caller and stands in no error: those name the operation and
AWS's own code.
"""

from __future__ import annotations

from orbweaver.adapters.aws import clients
from orbweaver.adapters.aws.clients import Aws
from orbweaver.model.errors import Permanent


class ManagedSecrets:
    """Where secrets are kept."""

    def __init__(self, aws: Aws) -> None:
        """Take the clients of a container; the one for secrets is opened by the first reading."""
        self._clients = aws

    async def read(self, name: str) -> str:
        """Read the current text of a secret, by its name or ARN; Permanent if there is none."""
        client = await self._clients.client("secretsmanager")
        answer = await clients.call(client, "get_secret_value", SecretId=name)
        text = answer.get("SecretString")
        if not isinstance(text, str):
            raise Permanent("get_secret_value: it holds bytes, and not text")
        return text
