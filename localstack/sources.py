"""Event sources of a function: the queues that invoke it, and whether they are enabled.

An update takes a while. Until then the state is `Enabling` or `Disabling`, and Lambda refuses
another update.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from localstack import cdk
from localstack.errors import LocalStackError

if TYPE_CHECKING:
    from collections.abc import Mapping

BUSY = ("ResourceInUseException", "ResourceConflictException", "TooManyRequestsException")
ON, OFF = "Enabled", "Disabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """An event source. `state` is Lambda's word."""

    id: str
    queue: str
    state: str

    @property
    def is_off(self) -> bool:
        """True if it is disabled or being disabled."""
        return self.state in (OFF, "Disabling")


def read_sources(function: str, environment: Mapping[str, str]) -> tuple[Source, ...]:
    try:
        with cdk.client("lambda", environment) as client:
            pages = client.get_paginator("list_event_source_mappings").paginate(
                FunctionName=function
            )
            found = [each for page in pages for each in page["EventSourceMappings"]]
    except (BotoCoreError, ClientError) as error:
        raise LocalStackError(f"Cannot list the event sources of {function}: {error}") from error
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
    """Enable or disable a source. Returns False if Lambda accepts no update now."""
    try:
        with cdk.client("lambda", environment) as client:
            client.update_event_source_mapping(UUID=source.id, Enabled=on)
    except ClientError as error:
        if error.response["Error"]["Code"] in BUSY:
            return False
        raise LocalStackError(f"Cannot switch {source.queue}: {error}") from error
    except BotoCoreError as error:
        raise LocalStackError(f"Cannot switch {source.queue}: {error}") from error
    return True
