"""Deadlines of requests, all checked by one timer every `TICK_S` seconds.

A request has a limit of total time, and a limit of `idle_s` seconds without data. The second limit
applies from sending to the response's head, and between pieces of the body. A task past its
deadline is cancelled, which raises TimeoutError, as with `asyncio.timeout`.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

# Interval of the timer. Separate timers per request, reset by all received data, took 1/30 of a
# page's CPU time.
TICK_S = 0.1


class Deadlines:
    """Checks the deadlines of one client's requests."""

    def __init__(self, idle_s: float) -> None:
        self._idle_s = idle_s
        self._all: set[Deadline] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None

    def within(self, total_s: float, idle_s: float | None = None) -> Deadline:
        return Deadline(self, total_s, self._idle_s if idle_s is None else idle_s)

    def add(self, one: Deadline) -> None:
        self._all.add(one)
        if self._timer is None or self._loop is not one.loop:
            self._loop = one.loop
            self._timer = one.loop.call_later(TICK_S, self._look)

    def discard(self, one: Deadline) -> None:
        self._all.discard(one)

    def _look(self) -> None:
        assert self._loop is not None  # noqa: S101 - it has just called
        now_s = self._loop.time()
        for one in [one for one in self._all if one.is_over(now_s)]:
            self._all.discard(one)
            one.cancel()
        self._timer = self._loop.call_later(TICK_S, self._look) if self._all else None


class Deadline:
    """Context manager with the deadline of one request.

    If it expires, the exit raises TimeoutError.
    """

    __slots__ = (
        *("_cancelling", "_deadlines", "_heard_s", "_task"),
        *("expired", "idle_s", "loop", "until_s"),
    )

    def __init__(self, deadlines: Deadlines, total_s: float, idle_s: float) -> None:
        self._deadlines = deadlines
        self.idle_s = idle_s
        self.loop = asyncio.get_running_loop()
        self.until_s = self.loop.time() + total_s
        self.expired = False
        self._heard_s: float | None = None

    def __enter__(self) -> Self:
        task = asyncio.current_task(self.loop)
        if task is None:
            raise RuntimeError("only a task can wait")
        self._task, self._cancelling = task, task.cancelling()
        self._deadlines.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self._deadlines.discard(self)
        if self.expired:
            ours = self._task.uncancel() <= self._cancelling
            if ours and kind is asyncio.CancelledError:
                raise TimeoutError from error

    def note_activity(self) -> None:
        """Record that the request was sent, or that data arrived."""
        self._heard_s = self.loop.time()

    def hold(self) -> None:
        """Suspend the idle limit until `note_activity`, because the client is not reading."""
        self._heard_s = None

    def release(self) -> None:
        self._deadlines.discard(self)

    def is_over(self, now_s: float) -> bool:
        silent = self._heard_s is not None and now_s >= self._heard_s + self.idle_s
        return silent or now_s >= self.until_s

    def cancel(self) -> None:
        self.expired = True
        self._task.cancel()
