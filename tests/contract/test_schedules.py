"""Contract of schedules: create, replace, list, remove."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import pytest

from orbweaver.adapters.aws.scheduler import GroupSchedules, ScheduleTarget
from orbweaver.control.schedule import Scheduled
from orbweaver.model.errors import Permanent
from tests.contract import samples
from tests.contract.faults import Faulty, always
from tests.contract.faults import refused as refusal
from tests.contract.worlds import AWS_WORLDS, AwsWorld, MemoryWorld, SqliteWorld
from tests.memory import MemorySchedules

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from orbweaver.adapters.aws.clients import Aws
    from orbweaver.control.scheduler import Schedules
    from tests.contract.faults import Answer, Call, Fault
    from tests.contract.worlds import Opener

ACCOUNT = "123456789012"
RATE = Scheduled(
    name="site.example",
    expression="rate(6 hours)",
    timezone="UTC",
    first_ms=samples.NOW_MS + 21_600_000,
    input='{"due":"<aws.scheduler.scheduled-time>","definition":{"name":"\\u00e9"}}',
)
CRON = Scheduled(
    name="a-1",
    expression="cron(0 3 * * ? *)",
    timezone="Europe/Berlin",
    first_ms=None,
    input="{}",
)


def target(group: str) -> ScheduleTarget:
    """Return a schedule target in a group; these tests do not read its other fields."""
    return ScheduleTarget(
        group=group,
        function=f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:starter",
        role=f"arn:aws:iam::{ACCOUNT}:role/firing",
        failed=f"arn:aws:sqs:us-east-1:{ACCOUNT}:failed",
    )


@pytest.fixture(params=["memory", "sqlite", *AWS_WORLDS])
async def schedules(request: pytest.FixtureRequest, opener: Opener) -> AsyncIterator[Schedules]:
    async with opener(request.param) as world, grouped(world) as found:
        yield found


@asynccontextmanager
async def grouped(world: object) -> AsyncIterator[Schedules]:
    if isinstance(world, MemoryWorld):
        yield MemorySchedules(world.state)
        return
    if isinstance(world, SqliteWorld):
        yield world.ports.schedules
        return
    assert isinstance(world, AwsWorld)
    client = await world.aws.client("scheduler")
    await client.create_schedule_group(Name=world.name)
    yield GroupSchedules(world.aws, target=target(world.name))


async def test_schedules_are_listed_sorted(schedules: Schedules) -> None:
    assert await schedules.list() == ()
    await schedules.put(RATE)
    await schedules.put(CRON)
    assert await schedules.list() == (CRON, RATE)


async def test_second_put_replaces_schedule(schedules: Schedules) -> None:
    await schedules.put(RATE)
    changed = replace(CRON, name=RATE.name)
    await schedules.put(changed)
    assert await schedules.list() == (changed,)
    await schedules.put(changed)
    assert await schedules.list() == (changed,)


async def test_removed_schedule_is_gone(schedules: Schedules) -> None:
    await schedules.put(RATE)
    await schedules.put(CRON)
    assert await schedules.remove(RATE.name)
    assert await schedules.list() == (CRON,)
    assert not await schedules.remove(RATE.name)


async def test_paused_schedule_is_listed_as_paused(schedules: Schedules) -> None:
    await schedules.put(replace(RATE, paused=True))
    assert await schedules.list() == (replace(RATE, paused=True),)
    await schedules.put(RATE)
    assert await schedules.list() == (RATE,)


class Clients:
    """Clients of a container whose scheduler is faulty."""

    def __init__(self, clients: Aws, **script: Fault) -> None:
        self._clients = clients
        self._script = script

    async def client(self, service: str) -> Faulty:
        return Faulty(await self._clients.client(service), **self._script)


@asynccontextmanager
async def meanwhile(opener: Opener, **script: Fault) -> AsyncIterator[tuple[Schedules, Schedules]]:
    """Open a group's schedules twice, the first with faulty calls."""
    async with opener("moto") as world, grouped(world) as schedules:
        assert isinstance(world, AwsWorld)
        clients = cast("Aws", Clients(world.aws, **script))
        yield schedules, GroupSchedules(clients, target=target(world.name))


async def test_concurrent_put_replaces_schedule(opener: Opener) -> None:
    async def second(call: Call, parameters: Answer) -> Answer:
        await call(**{**parameters, "ScheduleExpression": "rate(1 day)"})
        raise refusal("ConflictException", 409)

    async with meanwhile(opener, create_schedule=second) as (schedules, contended):
        await contended.put(RATE)
        assert await schedules.list() == (RATE,)


async def test_schedule_removed_during_list_is_not_listed(opener: Opener) -> None:
    there: list[Schedules] = []

    async def removed(call: Call, parameters: Answer) -> Answer:
        answer = await call(**parameters)
        assert await there[0].remove(RATE.name)
        return answer

    async with meanwhile(opener, list_schedules=removed) as (schedules, contended):
        there.append(schedules)
        await schedules.put(RATE)
        await schedules.put(CRON)
        assert await contended.list() == (CRON,)


async def test_schedule_lists_are_read_to_end(opener: Opener) -> None:
    async def cut(call: Call, parameters: Answer) -> Answer:
        begin = int(parameters.pop("NextToken", "0"))
        answer = await call(**parameters)
        entries = answer["Schedules"]
        more = {"NextToken": str(begin + 1)} if begin + 1 < len(entries) else {}
        return {"Schedules": entries[begin : begin + 1], **more}

    async with meanwhile(opener, list_schedules=cut) as (schedules, contended):
        for number in range(3):
            await schedules.put(replace(RATE, name=f"site-{number}"))
        assert [one.name for one in await contended.list()] == ["site-0", "site-1", "site-2"]


async def test_refused_schedule_is_reported(opener: Opener) -> None:
    refused = always(refusal("AccessDeniedException", 403))
    async with meanwhile(opener, get_schedule=refused, update_schedule=refused) as opened:
        schedules, contended = opened
        with pytest.raises(Permanent, match="update_schedule: AccessDenied"):
            await contended.put(RATE)
        assert await schedules.list() == ()
        await schedules.put(RATE)
        with pytest.raises(Permanent, match="get_schedule: AccessDenied"):
            await contended.list()


async def test_stack_sees_only_its_own_group(aws_world: AwsWorld) -> None:
    async with grouped(aws_world) as schedules:
        await schedules.put(RATE)
        client = await aws_world.aws.client("scheduler")
        other = f"{aws_world.name}-other"
        await client.create_schedule_group(Name=other)
        elsewhere = GroupSchedules(aws_world.aws, target=target(other))
        assert await elsewhere.list() == ()
        assert not await elsewhere.remove(RATE.name)
        kept = await client.get_schedule(GroupName=aws_world.name, Name=RATE.name)
        assert kept["Target"]["Arn"].endswith(":function:starter")
        assert kept["Target"]["RoleArn"].endswith("/firing")
        assert kept["Target"]["DeadLetterConfig"]["Arn"].endswith(":failed")
        assert kept["FlexibleTimeWindow"] == {"Mode": "OFF"}


@pytest.mark.emulator
async def test_missing_group_is_error(opener: Opener) -> None:
    """A stack of an older version has no group; this differs from a missing schedule."""
    async with opener("emulator") as world:
        assert isinstance(world, AwsWorld)
        schedules = GroupSchedules(world.aws, target=target("nowhere"))
        with pytest.raises(Permanent):
            await schedules.put(RATE)
