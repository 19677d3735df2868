"""All ports of the system over one world in memory, for components that take a set of ports."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, cast

from orbweaver.model.settings import Settings
from tests.memory import (
    MemoryBacklog,
    MemoryCrawls,
    MemoryDeadLetters,
    MemoryDeliveries,
    MemoryEvents,
    MemoryFiles,
    MemoryFrontier,
    MemoryHosts,
    MemoryPacks,
    MemoryPages,
    MemoryQueue,
    MemorySchedules,
    MemoryTraces,
)
from tests.memory.world import open_gate

if TYPE_CHECKING:
    from orbweaver.app.aws_ports import Ports
    from tests.memory import ManualClock, World
    from tests.memory.world import Gate


class MemoryPorts:
    """A set of ports."""

    def __init__(self, world: World, clock: ManualClock, gate: Gate, settings: Settings) -> None:
        self.queue = MemoryQueue(world, gate)
        self.dead_letters = MemoryDeadLetters(world, gate, clock=clock)
        self.packs = MemoryPacks(world, gate)
        self.backlog = MemoryBacklog(world, gate)
        self.crawls = MemoryCrawls(world, gate)
        self.frontier = MemoryFrontier(world, gate)
        self.hosts = MemoryHosts(world, gate)
        self.pages = MemoryPages(world, gate, shards=settings.worker.pages_shards)
        self.files = MemoryFiles(world, gate)
        self.events = MemoryEvents(world, gate)
        self.schedules = MemorySchedules(world, gate)
        self.traces = MemoryTraces(world, gate)
        self.catalogue = None
        self.deliveries = MemoryDeliveries(world, gate)
        self.clock = clock
        self.random = Random(1)
        self.settings = settings
        self.refuse_without_proxies = None


def memory_ports(
    world: World, clock: ManualClock, gate: Gate = open_gate, settings: Settings | None = None
) -> Ports:
    return cast("Ports", MemoryPorts(world, clock, gate, settings or Settings()))
