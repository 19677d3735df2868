"""Context keys for requirements of the AWS account."""

from __future__ import annotations

from dataclasses import dataclass

from infra.delivery_keys import DeliveryKeys
from infra.keys import choice, text

POLICY_ARN = r"arn:aws[a-z-]*:iam::(\d{12}|aws):policy/[!-~]{1,512}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountKeys(DeliveryKeys):
    """Requirements of an account for every stack in it."""

    permissions_boundary: str = text(
        "",
        "name or ARN of a policy that bounds every role, where an account asks for one",
        pattern=rf"({POLICY_ARN}|[A-Za-z0-9+=,.@_-]{{1,128}})?",
        takes="the name or whole ARN of a managed policy",
    )
    qualifier: str = text(
        "",
        "qualifier that the account is bootstrapped with (`cdk bootstrap --qualifier`); empty:"
        " CDK's own",
        pattern="[A-Za-z0-9_-]{0,10}",
        takes="up to 10 letters, digits, hyphens and underscores",
    )
    keep_settings: str = choice(
        "yes",
        ("yes", "no"),
        "no: `cdk` goes by the context alone, without the deployed settings or any call to AWS",
    )
