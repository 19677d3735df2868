"""Chooses a queue's next message as AWS describes it ("How Amazon SQS fair queues work").

- A group is a noisy neighbour if it has more than 10 % of the messages in flight and at least 30,
  or more than 10 % of the consumers' recent time. AWS does not define "recent"; one minute is used
  here.
- Messages of quiet groups are delivered first. If only noisy groups have messages, the group with
  the fewest messages in flight comes first.

This module uses only the standard library, because the simulation and the patched emulator share
it.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

NOISY_SHARE, NOISY_MESSAGES_MIN = 0.1, 30
RECENT_S = 60.0


class Neighbours:
    """The groups of one queue: messages in flight, and the consumers' recent time."""

    def __init__(self) -> None:
        # By message: its group, and the time of delivery.
        self._flying: dict[str, tuple[str, float]] = {}
        # Finished messages: time, group, and duration.
        self._done: deque[tuple[float, str, float]] = deque()

    def taken(self, message: str, group: str, now_s: float) -> None:
        self._flying[message] = (group, now_s)

    def done(self, message: str, now_s: float) -> None:
        """Record a message as deleted. A message that was not delivered is ignored."""
        if message in self._flying:
            group, taken_s = self._flying.pop(message)
            self._done.append((now_s, group, now_s - taken_s))

    def first(self, oldest: Mapping[str, float], now_s: float) -> str:
        """Return the next group. `oldest` is the send time of each group's oldest message."""
        if len(oldest) == 1:
            return next(iter(oldest))
        flying = Counter(group for group, _ in self._flying.values())
        noisy = self._noisy(flying, now_s)
        quiet = [group for group in oldest if group not in noisy]
        if quiet:
            return min(quiet, key=oldest.__getitem__)
        return min(oldest, key=lambda group: (flying[group], oldest[group]))

    def _noisy(self, flying: Counter[str], now_s: float) -> set[str]:
        while self._done and self._done[0][0] < now_s - RECENT_S:
            self._done.popleft()
        spent_s: defaultdict[str, float] = defaultdict(float)
        for _, group, took_s in self._done:
            spent_s[group] += took_s
        for group, taken_s in self._flying.values():
            spent_s[group] += now_s - taken_s
        share, long_s = NOISY_SHARE * flying.total(), NOISY_SHARE * sum(spent_s.values())
        too_many = {g for g, n in flying.items() if n >= NOISY_MESSAGES_MIN and n > share}
        return too_many | {group for group, took_s in spent_s.items() if took_s > long_s}
