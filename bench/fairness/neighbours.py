"""Which message a queue delivers next: the oldest one, or in a fair queue one of a quiet group.

As AWS describes it ("How Amazon SQS fair queues work", SQS Developer Guide):

- a group is a noisy neighbour with more than 10 % of the messages in flight and at least 30 of its
  own, or with more than 10 % of the consumers' recent time; about, since SQS is distributed;
- messages of quiet groups are delivered first; a message without a group is a group of its own;
- where only noisy groups wait, the one with the fewest messages in flight comes first.

How long "recent" is AWS does not say: a minute here. Pure, and of the standard library alone: the
simulation uses it, and an emulator that is taught to be fair.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

NOISY_SHARE, NOISY_MESSAGES_MIN = 0.1, 30
RECENT_S = 60.0


class Neighbours:
    """The groups of one queue: what is in flight, and what took the consumers' time of late."""

    def __init__(self) -> None:
        # By message, its group and since when.
        self._flying: dict[str, tuple[str, float]] = {}
        # What was done: when, of which group, and how long it took.
        self._done: deque[tuple[float, str, float]] = deque()

    def taken(self, message: str, group: str, now_s: float) -> None:
        """Note a message as delivered."""
        self._flying[message] = (group, now_s)

    def done(self, message: str, now_s: float) -> None:
        """Note a message as deleted; one that was never delivered is passed over."""
        if message in self._flying:
            group, taken_s = self._flying.pop(message)
            self._done.append((now_s, group, now_s - taken_s))

    def first(self, oldest: Mapping[str, float], now_s: float) -> str:
        """Choose a group to deliver from, of those that wait: by group, how old its oldest is."""
        if len(oldest) == 1:
            return next(iter(oldest))
        flying = Counter(group for group, _ in self._flying.values())
        noisy = self._noisy(flying, now_s)
        quiet = [group for group in oldest if group not in noisy]
        if quiet:
            return min(quiet, key=oldest.__getitem__)
        return min(oldest, key=lambda group: (flying[group], oldest[group]))

    def _noisy(self, flying: Counter[str], now_s: float) -> set[str]:
        """Name the groups that take more than their share."""
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
