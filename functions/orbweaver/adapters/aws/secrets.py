"""Secrets in AWS Secrets Manager, and parameters of SSM.

Errors contain the operation and AWS's error code, never a secret.
"""

from __future__ import annotations

from orbweaver.adapters.aws import clients
from orbweaver.adapters.aws.clients import Aws
from orbweaver.model.auth import ENV, FILE, SECRET, SSM
from orbweaver.model.errors import Permanent


class ManagedSecrets:
    """Implements `Secrets` on AWS Secrets Manager and SSM."""

    def __init__(self, aws: Aws) -> None:
        self._clients = aws

    async def read(self, name: str) -> str:
        """Return the text of a secret. Raises `Permanent` if it is missing.

        `name` is a secret's name or ARN, with or without `secret:`, or `ssm:` and a parameter's
        name.
        """
        if name.startswith((ENV, FILE)):
            raise Permanent(f"{name.partition(':')[0]}: is not possible on a stack")
        if name.startswith(SSM):
            client = await self._clients.client("ssm")
            given = {"Name": name.removeprefix(SSM), "WithDecryption": True}
            answer = await clients.call(client, "get_parameter", **given)
            return str(answer["Parameter"]["Value"])
        client = await self._clients.client("secretsmanager")
        answer = await clients.call(client, "get_secret_value", SecretId=name.removeprefix(SECRET))
        text = answer.get("SecretString")
        if not isinstance(text, str):
            raise Permanent("get_secret_value: it holds bytes, and not text")
        return text
