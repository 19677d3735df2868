"""An event loop in virtual time: when nothing is ready, the clock jumps to the next timer."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import selectors
    from collections.abc import Coroutine


class Stuck(Exception):
    """Nothing is ready, no timer is set: the actors wait for each other for ever."""


class _Selector:
    """Selects nothing, and lets virtual time pass while doing so."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise Stuck
        if timeout > 0:
            self._loop.advance(timeout)
        self._loop.catch_up()
        return []


class VirtualLoop(asyncio.BaseEventLoop):
    """No sockets, no threads, no real waiting."""

    def __init__(self) -> None:
        super().__init__()
        self._now_s = 0.0
        # The base's timers, in order of their time, and how early it runs them.
        self._scheduled: list[asyncio.TimerHandle]
        self._clock_resolution: float
        # BaseEventLoop's run-once works with anything that can select.
        self._selector: selectors.BaseSelector | _Selector = _Selector(self)

    def time(self) -> float:
        """Seconds since the simulation began."""
        return self._now_s

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        # A step of at least a microsecond: a float sum that does not move would spin for ever.
        self._now_s += max(seconds, 1e-6)

    def catch_up(self) -> None:
        """Have it be as late as a timer says that is about to be run.

        The base runs those of the next nanosecond as well. Two tasks that look at the clock, and
        wait for what is left, would keep each other ready for ever.
        """
        if self._scheduled:
            at_s = self._scheduled[0].when()
            if at_s < self._now_s + self._clock_resolution:
                self._now_s = max(self._now_s, at_s)

    def _process_events(self, event_list: list[Any]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """There is nobody to wake."""


def run(main: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine to its end in virtual time; what is left behind is cancelled."""
    loop = VirtualLoop()
    loop.set_exception_handler(lambda *_: None)  # what dies of a cancelled simulation is no news
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(main)
    finally:
        # What was cut short may wait in its turn for what never comes: until none is left.
        while rest := asyncio.all_tasks(loop):
            for task in rest:
                task.cancel()
            with contextlib.suppress(Stuck):
                loop.run_until_complete(asyncio.gather(*rest, return_exceptions=True))
        asyncio.set_event_loop(None)
        loop.close()
