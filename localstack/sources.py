"""Event sources of a function: what invokes it, and whether that is switched on.

All of them are listed, whatever queues there are. An update takes a while: until then the source
says `Enabling` or `Disabling`, and refuses another update.
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
    """One event source: its id, the queue's name, and its state as Lambda says it."""

    id: str
    queue: str
    state: str

    @property
    def off(self) -> bool:
        """Whether it delivers nothing, or is about to."""
        return self.state in (OFF, "Disabling")


def of(function: str, environment: Mapping[str, str]) -> tuple[Source, ...]:
    """List the event sources of a function."""
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
    """Have a source deliver or not; False where it takes no update now."""
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
