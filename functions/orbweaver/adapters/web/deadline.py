"""Deadlines of requests, looked after for all of them by one timer.

A timer for each limit of each request, set anew by whatever comes in, took a thirtieth of what a
page takes of the CPU; limits of seconds need no such precision. Rules:

- A request ends within its total time, and within `idle_s` of what was last heard of it. Once it is
  sent its head has to come in that time, then each piece of its body. Until then, while it waits
  for a connection or makes one, nothing can be heard.
- All are looked at every `TICK_S` while there are any: it may take them that much longer.
- A task that is out of time is cancelled, and that becomes a TimeoutError, as by `asyncio.timeout`.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

TICK_S = 0.1


class Deadlines:
    """Looks after the requests of one client."""

    def __init__(self, idle_s: float) -> None:
        self._idle_s = idle_s
        self._all: set[Deadline] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None

    def within(self, total_s: float) -> Deadline:
        """Give the running task `total_s` for what it does within."""
        return Deadline(self, total_s)

    def add(self, one: Deadline) -> None:
        """Look after one more; called in the loop that runs."""
        self._all.add(one)
        if self._timer is None or self._loop is not one.loop:
            self._loop = one.loop
            self._timer = one.loop.call_later(TICK_S, self._look)

    def discard(self, one: Deadline) -> None:
        """Look no more after one."""
        self._all.discard(one)

    def _look(self) -> None:
        assert self._loop is not None  # noqa: S101 - it has just called
        now_s = self._loop.time()
        for one in [one for one in self._all if one.is_over(now_s, self._idle_s)]:
            self._all.discard(one)
            one.cancel()
        self._timer = self._loop.call_later(TICK_S, self._look) if self._all else None


class Deadline:
    """One request's time; a context manager."""

    __slots__ = ("_cancelling", "_deadlines", "_heard_s", "_task", "expired", "loop", "until_s")

    def __init__(self, deadlines: Deadlines, total_s: float) -> None:
        self._deadlines = deadlines
        self.loop = asyncio.get_running_loop()
        self.until_s = self.loop.time() + total_s
        self.expired = False
        self._heard_s: float | None = None

    def __enter__(self) -> Self:
        """Begin."""
        task = asyncio.current_task(self.loop)
        if task is None:
            raise RuntimeError("only a task can wait")
        self._task, self._cancelling = task, task.cancelling()
        self._deadlines.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        """End; raises TimeoutError if it was out of time."""
        self._deadlines.discard(self)
        if self.expired:
            ours = self._task.uncancel() <= self._cancelling
            if ours and kind is asyncio.CancelledError:
                raise TimeoutError from error

    def heard(self) -> None:
        """Note that it was sent, or that something came in."""
        self._heard_s = self.loop.time()

    def hold(self) -> None:
        """Note that nothing can be heard until something is: what comes in is left unread."""
        self._heard_s = None

    def release(self) -> None:
        """Limit it no longer: it may take as long as it takes."""
        self._deadlines.discard(self)

    def is_over(self, now_s: float, idle_s: float) -> bool:
        """Whether it is out of time."""
        silent = self._heard_s is not None and now_s >= self._heard_s + idle_s
        return silent or now_s >= self.until_s

    def cancel(self) -> None:
        """End it now."""
        self.expired = True
        self._task.cancel()
