"""Deployed stacks in CloudFormation: status, outputs, parameters.

During an update, or after a failed update, a stack exists with the outputs of its previous version.
A stack that is being created or removed, or whose creation failed, counts as missing. The
template's metadata contains the context given to the deployment, so the next deployment can keep it
on any machine.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from localstack import cdk
from localstack.errors import aws_errors

if TYPE_CHECKING:
    from collections.abc import Mapping

# Default name and keys, as in infra/config.py and app.py. They are repeated here so that the
# command line need not import those.
STACK = "Orbweaver"
DESCRIPTION = "Orbweaver, a serverless web crawler"
METADATA = "Orbweaver"
CONTEXT = "Context"

_THERE = ("CREATE_COMPLETE", "UPDATE_", "IMPORT_")
_NOT_THERE = {
    "CREATE_IN_PROGRESS": "it is being created: try again once that has ended",
    "CREATE_FAILED": "its creation failed: `orbweaver destroy`, then `orbweaver deploy`",
    "REVIEW_IN_PROGRESS": "it was never created: run `orbweaver deploy`",
    "ROLLBACK_IN_PROGRESS": "its creation failed and is undone: then run `orbweaver deploy`",
    "ROLLBACK_COMPLETE": "its creation failed and was undone: run `orbweaver deploy`",
    "ROLLBACK_FAILED": "its creation failed: `orbweaver destroy`, then `orbweaver deploy`",
    "DELETE_IN_PROGRESS": "it is being removed",
    "DELETE_FAILED": "its removal failed: run `orbweaver destroy` again, and see why it fails",
}
_PASSING = {
    "UPDATE_FAILED": "the update failed: run `orbweaver deploy` again",
    "UPDATE_ROLLBACK_FAILED": "neither the update nor its undoing worked: see the stack's events in"
    " CloudFormation, which can continue the rollback",
}
_MAY_BE_OLD = "what is shown may be of the version before"


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A stack as CloudFormation describes it."""

    name: str
    status: str
    description: str
    outputs: Mapping[str, str]

    @property
    def exists(self) -> bool:
        """True if the stack exists with resources that can be used."""
        return self.status.startswith(_THERE)

    @property
    def is_settled(self) -> bool:
        """True if no change is running, and the last change was completed or rolled back."""
        return self.status in cdk.SETTLED

    @property
    def status_text(self) -> str:
        """The status of the stack in words, with a remedy if there is a problem."""
        words = _NOT_THERE if not self.exists else _PASSING
        meaning = words.get(self.status, _MAY_BE_OLD)
        return f"the stack {self.name!r} is {self.status}: {meaning}"


def describe(name: str, environment: Mapping[str, str]) -> Described | None:
    """Describe a stack, or return None if it does not exist."""
    found = cdk.describe_stack(name, environment)
    if found is None or found["StackStatus"] == "DELETE_COMPLETE":
        return None
    return _described(found, environment)


def names(environment: Mapping[str, str]) -> list[str]:
    return [each.name for each in of_product(environment)]


def of_product(environment: Mapping[str, str]) -> list[Described]:
    """Describe all of Orbweaver's stacks in an account and region, sorted by name."""
    with (
        aws_errors("ask for the stacks"),
        cdk.client("cloudformation", environment) as cloudformation,
    ):
        pages = cloudformation.get_paginator("describe_stacks").paginate()
        found = [_described(each, environment) for page in pages for each in page["Stacks"]]
    ours = (each for each in found if each.description == DESCRIPTION)
    there = (each for each in ours if each.status != "DELETE_COMPLETE")
    return sorted(there, key=lambda each: each.name)


def context_of(name: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the context that was given to a stack's last deployment, or {} if it is unknown."""
    deed = f"ask for the template of {name}"
    with aws_errors(deed), cdk.client("cloudformation", environment) as client:
        body = client.get_template(StackName=name, TemplateStage="Original")["TemplateBody"]
    template = json.loads(body) if isinstance(body, str) else body
    kept = template.get("Metadata", {}).get(METADATA, {}).get(CONTEXT, {})
    return {str(key): str(value) for key, value in kept.items()}


def _described(found: Mapping[str, Any], environment: Mapping[str, str]) -> Described:
    return Described(
        name=found["StackName"],
        status=found["StackStatus"],
        description=found.get("Description", ""),
        outputs=cdk.outputs_of(found, environment),
    )
