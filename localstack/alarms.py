"""The alarms of a stack, and their states.

CloudFormation names an alarm after its stack and construct, so the alarms of a stack share a
prefix. If the name of a second stack begins with this stack's name, its alarms share the prefix,
too. The dashes in their names distinguish them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from localstack import cdk
from localstack.errors import aws_errors

if TYPE_CHECKING:
    from collections.abc import Mapping

DENIED = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation")
# The part of an alarm's name after the stack's name: construct, alarm, and a hash.
NAME = re.compile(r"-(?:Monitoring)?(\w+?)(?:[0-9A-F]{8})?-\w+")


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
