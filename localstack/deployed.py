"""Deployed stacks in CloudFormation, their alarms, and the event sources of their functions.

During an update, or after a failed update, a stack exists with the outputs of its previous version.
A stack that is being created or removed, or whose creation failed, counts as missing. The
template's metadata contains the context given to the deployment, so the next deployment can keep it
on any machine.

Enabling or disabling an event source takes a while. Until then the state is `Enabling` or
`Disabling`, and Lambda refuses further changes.

CloudFormation names an alarm after its stack and construct, so the alarms of a stack share a
prefix. If the name of a second stack begins with this stack's name, its alarms share the prefix,
too. The dashes in their names distinguish them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

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
BUSY = ("ResourceInUseException", "ResourceConflictException", "TooManyRequestsException")
ON, OFF = "Enabled", "Disabled"
DENIED = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation")
# The part of an alarm's name after the stack's name: construct, alarm, and a hash.
NAME = re.compile(r"-(?:Monitoring)?(\w+?)(?:[0-9A-F]{8})?-\w+")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An event source of a function. `state` is Lambda's name of the state, such as `Enabled`."""

    id: str
    queue: str
    state: str

    @property
    def is_off(self) -> bool:
        """True if the event source is disabled or being disabled."""
        return self.state in (OFF, "Disabling")


def read_sources(function: str, environment: Mapping[str, str]) -> tuple[Source, ...]:
    deed = f"list the event sources of {function}"
    with aws_errors(deed), cdk.client("lambda", environment) as client:
        pages = client.get_paginator("list_event_source_mappings").paginate(FunctionName=function)
        found = [each for page in pages for each in page["EventSourceMappings"]]
    sources = (
        Source(
            id=each["UUID"],
            queue=each["EventSourceArn"].rpartition(":")[2],
            state=each["State"],
        )
        for each in found
    )
    return tuple(sorted(sources, key=lambda source: source.queue))


def switch(source: Source, environment: Mapping[str, str], *, on: bool) -> bool:
    """Enable or disable an event source. Returns False if Lambda refuses changes at the moment."""
    with aws_errors(f"switch {source.queue}"), cdk.client("lambda", environment) as client:
        try:
            client.update_event_source_mapping(UUID=source.id, Enabled=on)
        except ClientError as error:
            if error.response["Error"]["Code"] in BUSY:
                return False
            raise
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """An alarm.

    `state` is `OK`, `ALARM` or `INSUFFICIENT_DATA`, and has not changed since `since_ms`.
    """

    name: str
    state: str
    since_ms: int | None
    meaning: str


def read_alarms(stack: str, environment: Mapping[str, str]) -> tuple[Alarm, ...] | None:
    """Return the alarms of a stack, alarms in state ALARM first.

    Returns None without the permission to read them.
    """
    with aws_errors(f"list the alarms of {stack}"), cdk.client("cloudwatch", environment) as client:
        try:
            pages = client.get_paginator("describe_alarms").paginate(AlarmNamePrefix=f"{stack}-")
            found = [each for page in pages for each in page["MetricAlarms"]]
        except ClientError as error:
            if error.response["Error"]["Code"] in DENIED:
                return None
            raise
    alarms = []
    for each in found:
        if named := NAME.fullmatch(each["AlarmName"].removeprefix(stack)):
            since = each.get("StateUpdatedTimestamp")
            alarms.append(
                Alarm(
                    name=named[1],
                    state=each["StateValue"],
                    since_ms=None if since is None else round(since.timestamp() * 1000),
                    meaning=each.get("AlarmDescription", ""),
                )
            )
    return tuple(sorted(alarms, key=lambda alarm: (alarm.state != "ALARM", alarm.name)))
