"""Faults of calls, and calls at which workers die.

Each operation has its own random generator, from the seed and its name. So other calls, whose
number depends on timing, change no fault. There are also storms: now and then most calls of an
operation fail, for longer than a client retries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from random import Random

SEND = "SendMessageBatch"
BATCHES = frozenset({SEND, "BatchWriteItem", "BatchGetItem", "BatchExecuteStatement"})
SERVICES = frozenset({"dynamodb", "sqs"})


class Fault(StrEnum):
    """Fault of a call."""

    THROTTLE = "throttle"  # Refused: too many requests.
    ERROR = "error"  # Refused: HTTP 500.
    LOST = "lost"  # Done, then the connection ends without an answer.
    HELD = "held"  # Done, then no answer until the client gives up.
    PARTIAL = "partial"  # Done for a part of the batch.
    TWICE = "twice"  # A batch of messages is sent twice.


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Rates of each fault; shares of 1."""

    throttle: float = 0.05
    error: float = 0.03
    lost: float = 0.02
    held: float = 0.002  # Each costs a worker 5 s of its life.
    partial: float = 0.1
    twice: float = 0.15
    storm: float = 0.002
    storm_calls: int = 40
    storm_throttle: float = 0.7
    life_calls: float = 70.0  # Calls of all workers together between two deaths.
    lives: int = 60  # A cold start takes 3 to 5 s of CPU. With more deaths no work would be done.
    later_s_max: float = 1.5

    def of(self, operation: str) -> Mapping[Fault, float]:
        rates = {
            Fault.THROTTLE: self.throttle,
            Fault.ERROR: self.error,
            Fault.LOST: self.lost,
            Fault.HELD: self.held,
        }
        if operation in BATCHES:
            rates[Fault.PARTIAL] = self.partial
        if operation == SEND:
            rates[Fault.TWICE] = self.twice
        return rates


class Moment(StrEnum):
    """Moment of a worker's death relative to a call."""

    BEFORE = "before"  # Before the call is forwarded.
    AFTER = "after"  # After the call is done, without an answer.
    LATER = "later"  # Some time after the call.


@dataclass(frozen=True, slots=True, kw_only=True)
class Doom:
    """Death of a worker."""

    moment: Moment
    delay_s: float = 0.0


class Plan:
    """The faults of a run."""

    def __init__(self, seed: int, rates: Rates) -> None:
        self._seed = seed
        self._rates = rates
        self._dooms = Random(f"{seed}/dooms")
        self._calls_left = self._life()
        self._lives_left = rates.lives
        self._chances: dict[str, Random] = {}
        self._storms: dict[str, int] = {}

    def draw(self, service: str, operation: str) -> Fault | None:
        if service not in SERVICES:
            return None
        chance = self.chance(operation)
        rates = self._rates
        drawn = chance.random()
        if self._storms.get(operation, 0) > 0:
            self._storms[operation] -= 1
            return Fault.THROTTLE if drawn < rates.storm_throttle else None
        for fault, rate in rates.of(operation).items():
            if drawn < rate:
                return fault
            drawn -= rate
        if drawn < rates.storm:
            self._storms[operation] = rates.storm_calls
        return None

    def doom(self) -> Doom | None:
        """Draw whether the worker that makes the next call dies.

        The time between two deaths is counted in calls, not in seconds: on a slow machine, workers
        would die before they start to work.
        """
        self._calls_left -= 1
        if self._calls_left > 0 or self._lives_left == 0:
            return None
        self._calls_left = self._life()
        self._lives_left -= 1
        moment = self._dooms.choice(list(Moment))
        delay_s = self._dooms.uniform(0.0, self._rates.later_s_max)
        return Doom(moment=moment, delay_s=delay_s if moment is Moment.LATER else 0.0)

    def _life(self) -> float:
        return self._dooms.expovariate(1 / self._rates.life_calls)

    def chance(self, operation: str) -> Random:
        if operation not in self._chances:
            self._chances[operation] = Random(f"{self._seed}/{operation}")
        return self._chances[operation]
