"""Schedules: put, put anew, listed, removed."""

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
    from orbweaver.control.ports import Schedules
    from tests.contract.faults import Answer, Call, Fault
    from tests.contract.worlds import Opener

ACCOUNT = "123456789012"
RATE = Scheduled(
    name="site.example",
    expression="rate(6 hours)",
    timezone="UTC",
    first_ms=samples.NOW_MS + 21_600_000,
    told='{"due":"<aws.scheduler.scheduled-time>","definition":{"name":"\\u00e9"}}',
)
CRON = Scheduled(
    name="a-1",
    expression="cron(0 3 * * ? *)",
    timezone="Europe/Berlin",
    first_ms=None,
    told="{}",
)


def target(group: str) -> ScheduleTarget:
    """Name a group, and parts that nobody looks at here."""
    return ScheduleTarget(
        group=group,
        function=f"arn:aws:lambda:us-east-1:{ACCOUNT}:function:starter",
        role=f"arn:aws:iam::{ACCOUNT}:role/firing",
        failed=f"arn:aws:sqs:us-east-1:{ACCOUNT}:failed",
    )


@pytest.fixture(params=["memory", "sqlite", *AWS_WORLDS])
async def schedules(request: pytest.FixtureRequest, opener: Opener) -> AsyncIterator[Schedules]:
    """Give every kind of schedules, without any in it."""
    async with opener(request.param) as world, grouped(world) as found:
        yield found


@asynccontextmanager
async def grouped(world: object) -> AsyncIterator[Schedules]:
    """Open the schedules of a world, in a group of their own."""
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


async def test_what_is_put_is_listed(schedules: Schedules) -> None:
    """All of it, sorted by name."""
    assert await schedules.list() == ()
    await schedules.put(RATE)
    await schedules.put(CRON)
    assert await schedules.list() == (CRON, RATE)


async def test_what_is_put_again_is_replaced(schedules: Schedules) -> None:
    """Nothing of the former one is left, not even when it began."""
    await schedules.put(RATE)
    changed = replace(CRON, name=RATE.name)
    await schedules.put(changed)
    assert await schedules.list() == (changed,)
    await schedules.put(changed)
    assert await schedules.list() == (changed,)


async def test_what_is_removed_is_gone(schedules: Schedules) -> None:
    """Only the one that is named; one that is not there is told apart."""
    await schedules.put(RATE)
    await schedules.put(CRON)
    assert await schedules.remove(RATE.name)
    assert await schedules.list() == (CRON,)
    assert not await schedules.remove(RATE.name)


async def test_what_is_paused_is_listed_as_paused(schedules: Schedules) -> None:
    """All else of it stays as it was, and it is resumed by putting it so."""
    await schedules.put(replace(RATE, paused=True))
    assert await schedules.list() == (replace(RATE, paused=True),)
    await schedules.put(RATE)
    assert await schedules.list() == (RATE,)


class Clients:
    """The clients of a container, the scheduler with faults."""

    def __init__(self, clients: Aws, **script: Fault) -> None:
        self._clients = clients
        self._script = script

    async def client(self, service: str) -> Faulty:
        return Faulty(await self._clients.client(service), **self._script)


@asynccontextmanager
async def meanwhile(opener: Opener, **script: Fault) -> AsyncIterator[tuple[Schedules, Schedules]]:
    """Open a group's schedules twice, once where calls go wrong."""
    async with opener("moto") as world, grouped(world) as schedules:
        assert isinstance(world, AwsWorld)
        clients = cast("Aws", Clients(world.aws, **script))
        yield schedules, GroupSchedules(clients, target=target(world.name))


async def test_of_two_who_put_a_schedule_at_once_one_stands(opener: Opener) -> None:
    """Whoever comes second finds it created, and replaces it."""

    async def second(call: Call, parameters: Answer) -> Answer:
        await call(**{**parameters, "ScheduleExpression": "rate(1 day)"})
        raise refusal("ConflictException", 409)

    async with meanwhile(opener, create_schedule=second) as (schedules, contended):
        await contended.put(RATE)
        assert await schedules.list() == (RATE,)


async def test_a_schedule_that_is_removed_meanwhile_is_not_listed(opener: Opener) -> None:
    """Its name was listed; by the time that it is read it is gone."""
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


async def test_lists_of_schedules_are_read_to_the_end(opener: Opener) -> None:
    """A list goes on where an answer ends."""

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


async def test_what_is_refused_is_told(opener: Opener) -> None:
    """It is neither a schedule that is not there, nor one that is."""
    refused = always(refusal("AccessDeniedException", 403))
    async with meanwhile(opener, get_schedule=refused, update_schedule=refused) as opened:
        schedules, contended = opened
        with pytest.raises(Permanent, match="update_schedule: AccessDenied"):
            await contended.put(RATE)
        assert await schedules.list() == ()
        await schedules.put(RATE)
        with pytest.raises(Permanent, match="get_schedule: AccessDenied"):
            await contended.list()


async def test_a_stack_sees_its_own_schedules(aws_world: AwsWorld) -> None:
    """Those of another group, the default one among them, are somebody else's."""
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
async def test_a_group_that_is_not_there_is_an_error(opener: Opener) -> None:
    """A stack of an older version has none: that is no schedule that is missing."""
    async with opener("emulator") as world:
        assert isinstance(world, AwsWorld)
        schedules = GroupSchedules(world.aws, target=target("nowhere"))
        with pytest.raises(Permanent):
            await schedules.put(RATE)
