"""Context keys for requirements of the AWS account."""

from __future__ import annotations

from dataclasses import dataclass

from infra.delivery_keys import DeliveryKeys
from infra.keys import choice, text

POLICY_ARN = r"arn:aws[a-z-]*:iam::(\d{12}|aws):policy/[!-~]{1,512}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountKeys(DeliveryKeys):
    """Requirements that the account sets for every stack in it."""

    permissions_boundary: str = text(
        "",
        "name or ARN of the permissions boundary that the account requires for every role",
        pattern=rf"({POLICY_ARN}|[A-Za-z0-9+=,.@_-]{{1,128}})?",
        takes="the name or whole ARN of a managed policy",
    )
    qualifier: str = text(
        "",
        "the account's bootstrap qualifier (`cdk bootstrap --qualifier`); empty: CDK's default",
        pattern="[A-Za-z0-9_-]{0,10}",
        takes="up to 10 letters, digits, hyphens and underscores",
    )
    keep_settings: str = choice(
        "yes",
        ("yes", "no"),
        "no: `cdk` uses only the context, not the deployed settings, and does not call AWS",
    )
