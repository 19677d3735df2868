"""SQS under faults: messages arrive repeatedly, in any order and late.

A pack is the message for a batch of URLs.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import TypeVar

from orbweaver.frontier.messages import Loose, Malformed, Pack, decode
from tests.memory import MemoryQueue, World
from tests.memory.world import Gate
from tests.simulation.faults import Faults
from tests.simulation.rendering import QUEUE
from tests.simulation.trace import Trace

T = TypeVar("T")
RECEIVE_MAX = 5
BATCH = 10
# A worker's own queues have no name here. Only seeds come from other queues.
SEEDS = "seeds"
# Fields that bodies of the previous release lack if they have default values (case 26).
LATER_FIELDS = {"failures": 0, "from": [], "planned": False}

decoded = lru_cache(maxsize=4_096)(decode)


@dataclass(slots=True)
class Message:
    """One copy on the queue; `hops` counts the invocations that led to it."""

    id: str
    body: str
    visible_s: float
    hops: int
    queue: str = ""
    receives: int = 0
    since_ms: int | None = None


class Sqs:
    """Pack and seed queues with their dead-letter queue."""

    def __init__(self, world: World, trace: Trace, random: Random, faults: Faults) -> None:
        self.faults = faults
        self.messages: list[Message] = []
        # Body with its reason. None if SQS moved it there because of its receive count.
        self.dead_letters: list[tuple[str, str | None]] = []
        # Bodies of redriven dead letters.
        self.redriven: set[str] = set()
        # Bodies as sent, with their queue (express or not).
        self.lanes: list[tuple[str, bool]] = []
        # Send times of late packs (links that are sent after their pack's commit) by id.
        self.late: defaultdict[str, list[float]] = defaultdict(list)
        self._world = world
        self._trace = trace
        self._random = random
        self._ids = 0

    def drop(
        self,
        body: str,
        now_s: float,
        *,
        delay_s: float = 0,
        hops: int = 0,
        since_ms: int | None = None,
        back: bool = False,
    ) -> None:
        """Send a message to its queue; a redriven pack (`back`) goes to the default queue."""
        self._ids += 1
        if self.faults.aged and self._random.random() < self.faults.aged:
            body = self._aged(body)
        dropped = isinstance(decoded(body), Loose | Malformed) and '"v":' not in body
        queue = SEEDS if dropped else ""
        message = decoded(body)
        if isinstance(message, Pack) and message.render and not back:
            queue = QUEUE
        self.messages.append(
            Message(f"m{self._ids}", body, now_s + delay_s, hops, queue, since_ms=since_ms)
        )
        self._trace.note(f"{now_s:.6f} m{self._ids} in {delay_s}: {body}")

    def _aged(self, body: str) -> str:
        if not body.startswith('{"v":1'):
            return body
        fields = json.loads(body)
        kept = {key: value for key, value in fields.items() if LATER_FIELDS.get(key) != value}
        if kept == fields:
            return body
        self._trace.counts["old message"] += 1
        return json.dumps(kept)

    def collect(self, now_s: float, hops: int = 0) -> None:
        for mail in self._world.sent:
            self.lanes.append((mail.body, mail.express))
            message = decoded(mail.body)
            if isinstance(message, Pack) and message.late:
                self.late[message.id].append(now_s)
            since_ms = mail.since_ms
            self.drop(mail.body, now_s, delay_s=mail.delay_s, hops=hops, since_ms=since_ms)
        self._world.sent.clear()
        for mail in self._world.buried:
            self.dead_letters.append((mail.body, mail.reason))
        self._world.buried.clear()

    def retry(self, now_s: float) -> None:
        """Make messages in flight visible at the times workers requested."""
        for handle, delay_s in self._world.retried:
            for message in self.messages:
                if message.id == handle and message.visible_s > now_s:
                    message.visible_s = now_s + delay_s
                    self._trace.counts["retried soon"] += 1
        self._world.retried.clear()

    def receive(self, now_s: float, visibility_s: float, hops_max: int | None) -> list[Message]:
        """Return a queue's batch; past `hops_max` Lambda assumes a loop and delivers no more."""
        visible = [message for message in self.messages if message.visible_s <= now_s]
        self._random.shuffle(visible)
        visible = [message for message in visible if message.queue == visible[0].queue]
        taken = []
        for message in visible[: self._random.randint(1, BATCH)]:
            message.receives += 1
            looping = hops_max is not None and message.hops > hops_max
            if looping:
                self._trace.counts["loop ended"] += 1
            if looping or message.receives > RECEIVE_MAX:
                self.messages.remove(message)
                self.dead_letters.append((message.body, None))
                continue
            early = self._random.random() < self.faults.early
            self._trace.counts["early"] += early
            message.visible_s = now_s + (1 if early else visibility_s)
            taken.append(message)
        return taken

    def delete(self, messages: Sequence[Message]) -> None:
        for message in messages:
            if message in self.messages:
                self.messages.remove(message)

    def redrive(self, now_s: float) -> int:
        """Redrive dead letters as new messages (case 24), except invalid ones."""
        self.collect(now_s)
        letters, self.dead_letters = self.dead_letters, []
        for body, reason in letters:
            if reason is None or reason.startswith(("failed", "crashed")):
                self._trace.counts["redriven"] += 1
                self.redriven.add(body)
                self.drop(body, now_s, back=True)
            else:
                self.dead_letters.append((body, reason))
        return len(letters) - len(self.dead_letters)


class SimQueue(MemoryQueue):
    """The queue as one process sees it: each message is visible as soon as it is sent."""

    def __init__(self, world: World, gate: Gate, arrive: Callable[[], None]) -> None:
        super().__init__(world, gate)
        self._arrive = arrive

    async def _do(self, effect: str, act: Callable[[], T]) -> T:
        def sent() -> T:
            result = act()
            self._arrive()
            return result

        return await super()._do(effect, sent)
