"""Schedules in one group of EventBridge Scheduler, which invoke the same function.

If two writers put a schedule at once, both succeed and one version remains. Source:
docs.aws.amazon.com/scheduler/latest/APIReference/API_UpdateSchedule.html.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

from orbweaver.adapters.aws import clients
from orbweaver.adapters.aws.clients import Aws
from orbweaver.control.schedule import Scheduled
from orbweaver.model.value import value_class

ABSENT, TAKEN = "ResourceNotFoundException", "ConflictException"
READS_AT_ONCE = 8
# A failed invocation is retried for an hour, then sent to the dead-letter queue.
RETRIES = 10
EVENT_S_MAX = 3_600
OFF = {"Mode": "OFF"}
PAUSED = "DISABLED"


@value_class
class ScheduleTarget:
    """The schedule group, and ARNs of the function, the role and the dead-letter queue."""

    group: str
    function: str
    role: str
    failed: str


class GroupSchedules:
    """Implements `Schedules` on EventBridge Scheduler."""

    def __init__(self, aws: Aws, *, target: ScheduleTarget) -> None:
        self._clients = aws
        self._target = target

    async def put(self, scheduled: Scheduled) -> None:
        wanted = self._parameters(scheduled)
        if await self._try("update_schedule", ABSENT, **wanted) is not None:
            return
        if await self._try("create_schedule", TAKEN, **wanted) is None:
            await clients.call(await self._client(), "update_schedule", **wanted)

    async def list(self) -> tuple[Scheduled, ...]:
        client = await self._client()
        names: list[str] = []
        more: dict[str, str] = {}
        while True:
            answer = await clients.call(
                client, "list_schedules", GroupName=self._target.group, **more
            )
            names += (entry["Name"] for entry in answer.get("Schedules", ()))
            if not answer.get("NextToken"):
                break
            more = {"NextToken": answer["NextToken"]}
        # The list contains names only.
        found = await clients.all_of((self._read(name) for name in sorted(names)), READS_AT_ONCE)
        return tuple(one for one in found if one is not None)

    async def remove(self, name: str) -> bool:
        place = {"Name": name, "GroupName": self._target.group}
        return await self._try("delete_schedule", ABSENT, **place) is not None

    async def _read(self, name: str) -> Scheduled | None:
        place = {"Name": name, "GroupName": self._target.group}
        answer = await self._try("get_schedule", ABSENT, **place)
        if answer is None:  # removed since it was listed
            return None
        first = answer.get("StartDate")
        return Scheduled(
            name=name,
            expression=answer["ScheduleExpression"],
            timezone=answer.get("ScheduleExpressionTimezone"),
            first_ms=round(first.timestamp() * 1000) if isinstance(first, datetime) else None,
            input=answer["Target"].get("Input", ""),
            paused=answer.get("State") == PAUSED,
        )

    def _parameters(self, scheduled: Scheduled) -> dict[str, Any]:
        target = self._target
        start = {}
        if scheduled.first_ms is not None:
            start["StartDate"] = datetime.fromtimestamp(scheduled.first_ms / 1000, tz=UTC)
        return {
            "Name": scheduled.name,
            "GroupName": target.group,
            "ScheduleExpression": scheduled.expression,
            "ScheduleExpressionTimezone": scheduled.timezone or "UTC",
            "FlexibleTimeWindow": OFF,
            "State": PAUSED if scheduled.paused else "ENABLED",
            "Target": {
                "Arn": target.function,
                "RoleArn": target.role,
                "Input": scheduled.input,
                "DeadLetterConfig": {"Arn": target.failed},
                "RetryPolicy": {
                    "MaximumRetryAttempts": RETRIES,
                    "MaximumEventAgeInSeconds": EVENT_S_MAX,
                },
            },
            **start,
        }

    async def _try(self, operation: str, excused: str, **parameters: Any) -> dict[str, Any] | None:
        """Call an operation. Return None if it fails with the `excused` error."""
        client = await self._client()
        with clients.translated(operation):
            try:
                answer: dict[str, Any] = await getattr(client, operation)(**parameters)
            except ClientError as error:
                if clients.code_of(error) == excused:
                    return None
                raise
        return answer

    async def _client(self) -> Any:
        return await self._clients.client("scheduler")
