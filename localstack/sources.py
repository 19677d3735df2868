"""Event sources of a function: the queues that invoke it, and whether they are enabled.

Enabling or disabling takes a while. Until then the state is `Enabling` or `Disabling`, and Lambda
refuses further changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from localstack import cdk
from localstack.errors import aws_errors

if TYPE_CHECKING:
    from collections.abc import Mapping

BUSY = ("ResourceInUseException", "ResourceConflictException", "TooManyRequestsException")
ON, OFF = "Enabled", "Disabled"


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
