"""Batched calls: tasks of a container share one request, which one of them makes.

A task with a call of some kind (to commit a pack of a crawl, say) waits for the tasks that are
still expected. One of them makes the call for all: once none is expected, there is enough, or the
first has waited long enough. A later task begins another group.
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
    """What a shared call of a kind holds so far, and its outcome for the tasks that wait."""

    def __init__(self, kind: str, what: What, due_s: float) -> None:
        self.kind = kind
        self.what = what
        self.due_s = due_s
        # The call's outcome, once a task makes it.
        self.outcome: asyncio.Future[Result] | None = None


class Gathering(Generic[What, Result]):
    """The tasks that are expected, and the groups that are open, by kind."""

    def __init__(self, wait_s: float) -> None:
        """Take for how long the first one waits for others, in s."""
        self._wait_s = wait_s
        self._expected: dict[str, set[Hashable]] = {}
        self._open: dict[str, CallGroup[What, Result]] = {}
        # A task is expected no more, or is about to make the call.
        self._turn = asyncio.Event()

    def expect(self, kind: str, who: Hashable) -> None:
        """Have others wait for a task."""
        self._expected.setdefault(kind, set()).add(who)

    def came(self, kind: str, who: Hashable) -> None:
        """Have no task wait for this one any more."""
        expected = self._expected.get(kind, set())
        expected.discard(who)
        if not expected:
            self._expected.pop(kind, None)
        self._turn.set()

    def group(self, kind: str, begin: Callable[[], What]) -> CallGroup[What, Result]:
        """Return the group that is open, or another one."""
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
        """Wait until a group's call is made, or make it; its result, and whether this task made it.

        Raises for all what `carry_out` raises. If the task that makes the call is cancelled, the
        others get a Transient: the result is not known.
        """
        running = asyncio.get_running_loop()
        while group.outcome is None:
            alone = group.kind not in self._expected
            if enough(group.what) or alone or running.time() >= group.due_s:
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
            result = await carry_out(group.what)
        except BaseException as error:
            known = isinstance(error, Exception)
            group.outcome.set_exception(error if known else Transient("its call was cancelled"))
            group.outcome.exception()  # retrieved, whether a task waits or not
            raise
        group.outcome.set_result(result)
        return result
