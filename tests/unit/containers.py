"""A Lambda container over memory adapters: its ports, and its end."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from orbweaver.adapters.local.reader import InPlaceReader
from orbweaver.app.aws_ports import Ports
from tests.memory import (
    MemoryBudgets,
    MemoryCrawls,
    MemoryDeliveries,
    MemoryEvents,
    MemoryFiles,
    MemoryFrontier,
    MemoryHosts,
    MemoryPacks,
    MemoryPages,
    MemoryQueue,
    MemorySecrets,
)
from tests.memory.world import open_gate

if TYPE_CHECKING:
    from orbweaver.adapters.aws.usage_meter import UsageMeter
    from orbweaver.app.container import Container
    from orbweaver.model.settings import Settings
    from tests.memory import ManualClock, World
    from tests.memory.world import Gate


class FakeMessages:
    """An SQS client that records sent messages."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    async def send_message_batch(self, **parameters: Any) -> dict[str, Any]:
        self.sent += [entry["MessageBody"] for entry in parameters["Entries"]]
        return {}


def ports_over(
    world: World,
    *,
    settings: Settings,
    meter: UsageMeter,
    clock: ManualClock,
    messages: FakeMessages,
    gate: Gate = open_gate,
) -> Ports:
    async def client(_service: str) -> FakeMessages:
        return messages

    aws: Any = SimpleNamespace(client=client, later=lambda _service: messages)
    ports = Ports(settings, aws, meter)
    vars(ports).update(
        queue=MemoryQueue(world, gate),
        packs=MemoryPacks(world, gate),
        budgets=MemoryBudgets(world, gate),
        crawls=MemoryCrawls(world, gate),
        frontier=MemoryFrontier(world, gate),
        hosts=MemoryHosts(world, gate),
        pages=MemoryPages(world, gate),
        files=MemoryFiles(world, gate),
        events=MemoryEvents(world, gate),
        secrets=MemorySecrets(world, gate),
        deliveries=MemoryDeliveries(world, gate),
        reader=InPlaceReader(),
        clock=clock,
        random=Random(1),
    )
    return ports


def close(container: Container) -> None:
    """End a container without a warning, like Lambda."""
    container._runner.run(container._stack.aclose())
    container._runner.close()
