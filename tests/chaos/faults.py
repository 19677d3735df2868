"""Which call goes wrong, and how; and which one the worker that makes it dies of.

Chance is drawn for each operation by itself, from the seed and the operation's name: how many
calls of another kind came in between, which no seed can say, changes nothing. On top of it come
storms: now and then most calls of an operation fail, for longer than a client is patient.
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
    """What happens to a call."""

    THROTTLE = "throttle"  # refused: too many
    ERROR = "error"  # refused: HTTP 500
    LOST = "lost"  # done, then the connection ends without an answer
    HELD = "held"  # done, then no answer until the client gives up
    PARTIAL = "partial"  # done for a part of the batch
    TWICE = "twice"  # a batch of messages is sent, and sent again


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """How often a call goes wrong, each way; shares of 1."""

    throttle: float = 0.05
    error: float = 0.03
    lost: float = 0.02
    held: float = 0.002  # each costs a worker 5 s of its life
    partial: float = 0.1
    twice: float = 0.15
    storm: float = 0.002
    storm_calls: int = 40
    storm_throttle: float = 0.7
    life_calls: float = 70.0  # of all workers together, from one that dies to the next
    lives: int = 60  # a cold start takes the emulator 3 to 5 s of CPU: more, and nobody works
    later_s_max: float = 1.5

    def of(self, operation: str) -> Mapping[Fault, float]:
        """Say what may happen to an operation."""
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
    """When a worker dies of a call."""

    BEFORE = "before"  # it has asked, and nothing is done
    AFTER = "after"  # it is done, and the worker never learns of it
    LATER = "later"  # a while after, whatever it does by then


@dataclass(frozen=True, slots=True, kw_only=True)
class Doom:
    """The end of a worker."""

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
        """Decide on the next call of an operation."""
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
        """Say whether the worker that makes the next call dies of it.

        Lives are counted in calls and not in seconds: on a slow machine workers would die before
        they have begun, and nothing would be in their hands.
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
        """Return an operation's own source of chance."""
        if operation not in self._chances:
            self._chances[operation] = Random(f"{self._seed}/{operation}")
        return self._chances[operation]
