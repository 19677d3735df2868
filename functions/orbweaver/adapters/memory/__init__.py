"""Every port in memory: for tests, for simulation, and as the shortest statement of each port.

A `World` holds the state that AWS would hold; adapters over the same world are what different
containers see. Each effect on one item is atomic, as in DynamoDB, and nothing larger is but for
`commit`, `park` and `seal`, which are transactions. Before and after each effect the world's
`gate` is awaited, with the name of the effect: a simulation delays, fails or kills there.
"""

from orbweaver.adapters.memory.allowances import MemoryAllowances
from orbweaver.adapters.memory.catalogue import MemoryCatalogue
from orbweaver.adapters.memory.claims import MemoryFrontier
from orbweaver.adapters.memory.couriers import MemoryCourier, MemoryDeliveries
from orbweaver.adapters.memory.dead_letters import MemoryDeadLetters, MemoryLane
from orbweaver.adapters.memory.hosts import MemoryHosts
from orbweaver.adapters.memory.outside import (
    ManualClock,
    MemoryEvents,
    MemoryFiles,
    MemoryMetrics,
    MemoryOrders,
    MemoryQueue,
    MemorySecrets,
)
from orbweaver.adapters.memory.pages import MemoryPages
from orbweaver.adapters.memory.schedules import MemorySchedules
from orbweaver.adapters.memory.tables import MemoryCrawls, MemoryPacks
from orbweaver.adapters.memory.traces import MemoryTraces
from orbweaver.adapters.memory.world import Claim, Gate, Mail, Moment, World

__all__ = [
    "Claim",
    "Gate",
    "Mail",
    "ManualClock",
    "MemoryAllowances",
    "MemoryCatalogue",
    "MemoryCourier",
    "MemoryCrawls",
    "MemoryDeadLetters",
    "MemoryDeliveries",
    "MemoryEvents",
    "MemoryFiles",
    "MemoryFrontier",
    "MemoryHosts",
    "MemoryLane",
    "MemoryMetrics",
    "MemoryOrders",
    "MemoryPacks",
    "MemoryPages",
    "MemoryQueue",
    "MemorySchedules",
    "MemorySecrets",
    "MemoryTraces",
    "Moment",
    "World",
]
