"""Event loop in virtual time: when no task is ready, the clock jumps to the next timer."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec


class Stuck(Exception):
    """No task is ready and no timer is set: the simulated processes are in a deadlock."""


class _Selector:
    """Selects no events, and advances virtual time."""

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
    """Event loop without sockets, threads or real waits."""

    def __init__(self) -> None:
        super().__init__()
        self._now_s = 0.0
        # The base class's timers in order, and its timer resolution.
        self._scheduled: list[asyncio.TimerHandle]
        self._clock_resolution: float
        # BaseEventLoop._run_once accepts any object with `select`.
        self._selector: selectors.BaseSelector | _Selector = _Selector(self)

    def time(self) -> float:
        return self._now_s

    def advance(self, seconds: float) -> None:
        # At least a microsecond: adding less may not change the float, and the loop would never
        # end.
        self._now_s += max(seconds, 1e-6)

    def catch_up(self) -> None:
        """Advance to the time of a timer that is about to run.

        The base class also runs timers of the next nanosecond. Two tasks that read the clock and
        wait for the remainder would then keep each other ready forever.
        """
        if self._scheduled:
            at_s = self._scheduled[0].when()
            if at_s < self._now_s + self._clock_resolution:
                self._now_s = max(self._now_s, at_s)

    def _process_events(self, event_list: list[Any]) -> None: ...

    def _write_to_self(self) -> None: ...


def run(main: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine to its end in virtual time, and cancel the remaining tasks."""
    loop = VirtualLoop()
    loop.set_exception_handler(lambda *_: None)  # Errors of a cancelled simulation are expected.
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(main)
    finally:
        # A cancelled task can wait for a task that never ends, so this repeats until all have
        # ended.
        while rest := asyncio.all_tasks(loop):
            for task in rest:
                task.cancel()
            with contextlib.suppress(Stuck):
                loop.run_until_complete(asyncio.gather(*rest, return_exceptions=True))
        asyncio.set_event_loop(None)
        loop.close()


P = ParamSpec("P")


def in_virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Turn a coroutine function into a test that runs in virtual time."""

    @functools.wraps(test)
    def ran(*args: P.args, **options: P.kwargs) -> None:
        run(test(*args, **options))

    return ran
