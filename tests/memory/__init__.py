"""Every port in memory, for tests, for simulation, and as the shortest specification of each port.

A `World` has the state that AWS would have. Adapters over the same world are the views of different
containers. Each effect on one item is atomic, as in DynamoDB. Only `commit`, `park` and `seal` are
larger transactions. The world's `gate` is awaited before and after each effect with its name: there
a simulation delays, fails or kills.
"""

from tests.memory.backlog import MemoryBacklog
from tests.memory.budgets import MemoryBudgets
from tests.memory.catalogue import MemoryCatalogue
from tests.memory.claims import MemoryFrontier
from tests.memory.couriers import MemoryCourier, MemoryDeliveries
from tests.memory.dead_letters import MemoryDeadLetters
from tests.memory.hosts import MemoryHosts
from tests.memory.outside import (
    ManualClock,
    MemoryEvents,
    MemoryFiles,
    MemoryMetrics,
    MemoryOrders,
    MemoryQueue,
    MemorySecrets,
)
from tests.memory.pages import MemoryPages
from tests.memory.schedules import MemorySchedules
from tests.memory.tables import MemoryCrawls, MemoryPacks
from tests.memory.traces import MemoryTraces
from tests.memory.world import Claim, Gate, Mail, Moment, World

__all__ = [
    "Claim",
    "Gate",
    "Mail",
    "ManualClock",
    "MemoryBacklog",
    "MemoryBudgets",
    "MemoryCatalogue",
    "MemoryCourier",
    "MemoryCrawls",
    "MemoryDeadLetters",
    "MemoryDeliveries",
    "MemoryEvents",
    "MemoryFiles",
    "MemoryFrontier",
    "MemoryHosts",
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
