"""A Lambda container over memory adapters: its ports, and its end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from orbweaver.adapters.local.reader import InPlaceReader
from orbweaver.app.aws_ports import Ports
from tests.memory import MemoryBudgets, MemorySecrets
from tests.memory.world import open_gate
from tests.unit.memory_ports import memory_ports

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
        vars(memory_ports(world, clock, gate, settings)),
        budgets=MemoryBudgets(world, gate),
        secrets=MemorySecrets(world, gate),
        reader=InPlaceReader(),
    )
    return ports


def close(container: Container) -> None:
    """End a container without a warning, like Lambda."""
    container._runner.run(container._stack.aclose())
    container._runner.close()
