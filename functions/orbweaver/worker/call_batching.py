"""Batch calls: concurrent tasks of a container share one call, which one of them makes.

A task adds its input to the group of a call. It then waits for tasks that will probably add more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from orbweaver.frontier.retrying import happens
from orbweaver.model.errors import Transient

What = TypeVar("What")
Result = TypeVar("Result")


class CallGroup(Generic[What, Result]):
    """Collected input of a shared call, and its outcome."""

    def __init__(self, kind: str, what: What, due_s: float) -> None:
        self.kind = kind
        self.input = what
        self.due_s = due_s
        # Outcome of the call, once a task makes it.
        self.outcome: asyncio.Future[Result] | None = None


class CallBatcher(Generic[What, Result]):
    """Groups tasks into shared calls, by the name (`kind`) of the call."""

    def __init__(self, wait_s: float) -> None:
        """`wait_s` is the longest time in seconds that a group's first task waits for others."""
        self._wait_s = wait_s
        self._expected: dict[str, set[Hashable]] = {}
        self._open: dict[str, CallGroup[What, Result]] = {}
        # Set when a task is no longer expected, or is about to make the call.
        self._turn = asyncio.Event()

    def expect(self, kind: str, who: Hashable) -> None:
        """Announce that task `who` will add input, so that other tasks wait for it."""
        self._expected.setdefault(kind, set()).add(who)

    def cancel_wait(self, kind: str, who: Hashable) -> None:
        """Withdraw the announcement of task `who`, so that other tasks no longer wait for it."""
        expected = self._expected.get(kind, set())
        expected.discard(who)
        if not expected:
            self._expected.pop(kind, None)
        self._turn.set()

    def group(self, kind: str, begin: Callable[[], What]) -> CallGroup[What, Result]:
        group = self._open.get(kind)
        if group is None:
            due_s = asyncio.get_running_loop().time() + self._wait_s
            group = self._open[kind] = CallGroup(kind, begin(), due_s)
        return group

    async def outcome(
        self,
        group: CallGroup[What, Result],
        enough: Callable[[What], bool],
        carry_out: Callable[[What], Awaitable[Result]],
    ) -> tuple[Result, bool]:
        """Return the result of a group's call, and True if this task made the call.

        The task waits for the call if other expected tasks are missing. It makes the call with
        `carry_out` if the input is `enough`, or after the longest wait. If the task that makes the
        call is cancelled, the other tasks raise Transient.
        """
        running = asyncio.get_running_loop()
        while group.outcome is None:
            alone = group.kind not in self._expected
            # The call is made if no expected task is missing. It is also made if the input is large
            # enough, or the first task has waited long enough. A task that comes later starts
            # another group.
            if enough(group.input) or alone or running.time() >= group.due_s:
                return await self._carry_out(group, carry_out), True
            await happens(self._turn, group.due_s - running.time())
        return await asyncio.shield(group.outcome), False

    async def _carry_out(
        self, group: CallGroup[What, Result], carry_out: Callable[[What], Awaitable[Result]]
    ) -> Result:
        group.outcome = asyncio.get_running_loop().create_future()
        if self._open.get(group.kind) is group:
            del self._open[group.kind]
        self._turn.set()
        try:
            result = await carry_out(group.input)
        except BaseException as error:
            known = isinstance(error, Exception)
            group.outcome.set_exception(error if known else Transient("its call was cancelled"))
            group.outcome.exception()  # mark as retrieved, even if no task waits
            raise
        group.outcome.set_result(result)
        return result
