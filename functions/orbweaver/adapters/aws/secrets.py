"""Secrets in AWS Secrets Manager, and parameters of SSM.

Errors contain the secret's name, the operation, AWS's error code and a remedy, never a secret.
"""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from orbweaver.adapters.aws import clients
from orbweaver.adapters.aws.clients import Aws
from orbweaver.model.auth import ENV, FILE, SECRET, SSM
from orbweaver.model.errors import Permanent

MISSING = "create it in the account and region of the stack"
DENIED = "allow the reader this action, and kms:Decrypt if the secret has a key of yours"
# Remedies by the code of AWS's error.
FIXES = {
    "ResourceNotFoundException": MISSING,
    "ParameterNotFound": MISSING,
    "AccessDenied": DENIED,
    "AccessDeniedException": DENIED,
}


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
            given = {"Name": name.removeprefix(SSM), "WithDecryption": True}
            answer = await self._call("ssm", "get_parameter", name, **given)
            return str(answer["Parameter"]["Value"])
        given = {"SecretId": name.removeprefix(SECRET)}
        answer = await self._call("secretsmanager", "get_secret_value", name, **given)
        text = answer.get("SecretString")
        if not isinstance(text, str):
            raise Permanent(f"{name!a} holds bytes, and not text")
        return text

    async def _call(self, service: str, operation: str, name: str, **given: Any) -> dict[str, Any]:
        client = await self._clients.client(service)
        try:
            return await clients.call(client, operation, **given)
        except Permanent as error:
            cause = error.__cause__
            fix = FIXES.get(clients.code_of(cause)) if isinstance(cause, ClientError) else None
            raise Permanent(f"{name!a}: {error}{f': {fix}' if fix else ''}") from error
