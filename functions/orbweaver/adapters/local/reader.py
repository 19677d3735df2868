"""Read pages: light pages in the worker's event loop, others in one child process with a budget.

The kernel limits the child's CPU time, memory and wall-clock time. The child reads one page at a
time, and hosts take turns. If the child dies, the results that it has sent are used. The child has
no AWS credentials, and the worker decodes only known types from it, because pages are untrusted.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from orbweaver.adapters.local.reader_wire import (
    LENGTH,
    PIECE_BYTES,
    SAID_BYTES_MAX,
    ReadingEnd,
    decode_response,
    packed,
)
from orbweaver.extraction.work_budget import HeavyError
from orbweaver.model.errors import Transient
from orbweaver.model.item_rules import Field, ItemRule
from orbweaver.model.ports import Clock
from orbweaver.worker.page_reading import (
    CPU_S,
    MEMORY_BYTES,
    Costly,
    PageReading,
    Read,
    ReaderBusy,
    ReadingJob,
    ReadingStage,
    is_light,
    light_stages,
    read,
    with_items,
)

if TYPE_CHECKING:
    from orbweaver.extraction.extract import Extractor

# Time limit of a page. It is enough on a busy machine for a page that needs 1 s of CPU.
WALL_S = 15.0
ATTEMPTS_MAX = 2
STDERR = 2
PR_SET_DUMPABLE = 4
ENDING_S = 2.0  # for the exit of the child, after it closed its socket
# Limit of the bodies of all pages that wait for the child.
WAITING_BYTES_MAX = 64 * 1024 * 1024
_CREDENTIALS = frozenset({"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"})
_STARTS = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]);"
    " from orbweaver.adapters.local.reader_child import main; main(sys.argv[2])"
)
# Signals that only the page can cause. A busy machine can cause other deaths of the child, so the
# page is then read once more.
_CRASHES = frozenset(
    {signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGPROF}
)

Ticket: TypeAlias = "asyncio.Future[None]"
# An item rule that makes a reader parse any page into a tree.
_NEEDS_TREE = ItemRule(name="tree", match="", fields=(Field(name="title", where="title"),))


class ReaderError(RuntimeError):
    """A bug of Orbweaver in the child. The text is the child's traceback."""

    def __init__(self, trace: str | None, type_and_place: str) -> None:
        """`type_and_place` describes the child's exception."""
        super().__init__(trace)
        self.type_and_place = type_and_place


class InPlaceReader:
    """Reads all pages in the worker's process, without limits on CPU time and memory."""

    def __init__(self, extractors: Mapping[str, Extractor] | None = None) -> None:
        self._extractors = extractors

    async def read(self, job: ReadingJob, host: str, until_ms: int) -> Read:  # noqa: ARG002 - the port's
        return read(job, self._extractors)


class FunctionReader:
    """Reads pages with extractor functions of the running program, one at a time in a thread.

    Another reader first reads each page without these functions. So this process parses no page
    into a tree that exceeds the limits of a page.
    """

    def __init__(self, others: BudgetReader, functions: Mapping[str, Extractor]) -> None:
        """`others` reads pages that need no function. `functions` are keyed by name."""
        self._others = others
        self._functions = functions
        self._turn = asyncio.Lock()

    async def read(self, job: ReadingJob, host: str, until_ms: int) -> Read:
        if not any(rule.extractor is not None for rule in job.items):
            return await self._others.read(job, host, until_ms)
        found = await self._others.read(replace(job, items=(_NEEDS_TREE,)), host, until_ms)
        if not isinstance(found, PageReading) or found.items is None:
            return found
        async with self._turn:
            return await asyncio.to_thread(with_items, job, found, self._functions)


class BudgetReader:
    """Reads light pages in the worker and others in a child process. A container has one reader."""

    def __init__(
        self,
        *,
        clock: Clock,
        extractor: str = "",
        wall_s: float = WALL_S,
        waiting_bytes_max: int = WAITING_BYTES_MAX,
        in_place: Callable[[ReadingJob], bool] = is_light,
    ) -> None:
        """`extractor` names the user's module. `in_place` decides which pages are light."""
        self._clock = clock
        self._in_place = in_place
        self._extractor = extractor
        self._wall_s = wall_s
        self._turns = Turns()
        self._child: Child | None = None
        self._waiting_bytes = 0
        self._waiting_bytes_max = waiting_bytes_max

    async def read(self, job: ReadingJob, host: str, until_ms: int) -> Read:
        if (
            not job.apart  # suspected of having killed its worker
            and self._in_place(job)
            and (found := await _read_in_steps(job)) is not None
        ):
            return found
        # If no page waits, a page is read even if it is larger than the limit.
        if self._waiting_bytes and self._waiting_bytes + len(job.body) > self._waiting_bytes_max:
            return ReaderBusy()
        self._waiting_bytes += len(job.body)
        try:
            wait_s = (until_ms - self._clock.now_ms()) / 1000
            async with self._turns.taken(host, wait_s) as got:
                return await self._apart(job) if got else ReaderBusy()
        finally:
            self._waiting_bytes -= len(job.body)

    @property
    def child_id(self) -> int | None:
        """Process id of the child, or None if no child runs."""
        return None if self._child is None else self._child.process.pid

    def close(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.end()

    async def _apart(self, job: ReadingJob) -> Read:
        for attempt in range(1, ATTEMPTS_MAX + 1):
            child = self._running_child()
            end: ReadingEnd | None = None
            try:
                async with asyncio.timeout(self._wall_s):
                    end = await child.serve(job)
            except TimeoutError:
                child.timed_out = True
                child.process.kill()
            except BaseException:
                self.close()
                raise
            if end is None or end.retires:
                self._child = None
                await child.ended()
            if end is None:
                why, guilty = child.verdict(self._wall_s)
            elif end.fault is not None:
                raise ReaderError(end.why, end.fault)
            elif end.why is None:
                return child.reading
            else:
                why, guilty = end.why, True
            if guilty or attempt == ATTEMPTS_MAX:
                return child.broken_off(why)
        raise AssertionError("the last attempt returns")

    def _running_child(self) -> Child:
        if self._child is None:
            try:
                self._child = Child(self._extractor)
            except OSError as error:
                raise Transient(f"no process for costly pages: {error}") from error
        return self._child


async def _read_in_steps(job: ReadingJob) -> PageReading | None:
    """Read a light page in steps that let other tasks run. Return None if it is not light."""
    found: PageReading | None = None
    try:
        for reading in light_stages(job):
            if reading is None or reading.left is not None:
                await asyncio.sleep(0)
            found = reading or found
    except HeavyError:
        return None
    return found


def hide_process() -> None:
    """Hide this process's environment and memory from its user's other processes (prctl(2))."""
    # The child could read its parent's environment in `/proc/PID/environ`. If a process is not
    # dumpable, these files belong to root.
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_DUMPABLE)")


class Child:
    """A child process that reads one page after another."""

    def __init__(self, extractor: str) -> None:
        """Start the process. Raises OSError."""
        hide_process()
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-c", _STARTS, json.dumps(sys.path), extractor]
        environment = {name: said for name, said in os.environ.items() if name not in _CREDENTIALS}
        with theirs:
            try:
                self.process = subprocess.Popen(  # noqa: S603 - this interpreter, our own code
                    command, stdin=theirs.fileno(), stdout=STDERR, env=environment
                )
            except OSError:
                ours.close()
                raise
        ours.setblocking(False)
        self._socket = ours
        self._received = bytearray()
        self.timed_out = False
        self.reading = PageReading()

    async def serve(self, job: ReadingJob) -> ReadingEnd | None:
        """Send a page to the child and wait for the results. Return None if the child died."""
        self.reading = PageReading(
            left=ReadingStage.LINKS if job.html or job.json else ReadingStage.KEEPING
        )
        loop = asyncio.get_running_loop()
        bare = replace(job.answer, body=None, headers=dict(job.answer.headers))
        try:
            for part in (packed(replace(job, answer=bare)), job.body):
                await loop.sock_sendall(self._socket, LENGTH.pack(len(part)))
                await loop.sock_sendall(self._socket, part)
            while not isinstance(said := await self._heard(loop), ReadingEnd):
                self.reading = replace(said, page=said.page or self.reading.page)
        except (OSError, EOFError, pickle.UnpicklingError):
            return None
        return said

    def broken_off(self, why: str) -> PageReading | Costly:
        """Return the results that the child sent before it died, with the reason of its death."""
        why = f"reading its {self.reading.left}: {why}"
        if self.reading.page is None:
            return Costly(why=why)
        return replace(self.reading, why=why)

    def verdict(self, wall_s: float) -> tuple[str, bool]:
        """Return why the child ended, and whether the page certainly caused it."""
        code = self.process.returncode
        if self.timed_out or code == -signal.SIGALRM:
            return f"no end within {wall_s:g} s", False
        if code == -signal.SIGPROF:
            return f"more than {CPU_S:g} s of CPU", True
        if code < 0:
            crash = signal.Signals(-code)
            memory = f" (it may use {MEMORY_BYTES // 2**20} MB)" if crash in _CRASHES else ""
            return f"ended by {crash.name}{memory}", crash in _CRASHES
        return f"ended with status {code}", False

    async def ended(self) -> None:
        """Wait for the child to exit, and kill it after `ENDING_S` seconds."""
        self._socket.close()
        try:
            await asyncio.to_thread(self.process.wait, ENDING_S)
        except subprocess.TimeoutExpired:
            self.end()

    def end(self) -> None:
        self._socket.close()
        self.process.kill()
        self.process.wait()

    async def _heard(self, loop: asyncio.AbstractEventLoop) -> Any:
        (length,) = LENGTH.unpack(await self._receive_bytes(loop, LENGTH.size))
        if length > SAID_BYTES_MAX:
            raise EOFError
        return decode_response(await self._receive_bytes(loop, length))

    async def _receive_bytes(self, loop: asyncio.AbstractEventLoop, number: int) -> bytes:
        while len(self._received) < number:
            piece = await loop.sock_recv(self._socket, PIECE_BYTES)
            if not piece:
                raise EOFError
            self._received += piece
        taken = bytes(self._received[:number])
        del self._received[:number]
        return taken


class Turns:
    """A lock that serves waiting hosts in rotation, and the tasks of one host in order."""

    def __init__(self) -> None:
        self._taken = False
        self._waiting: OrderedDict[str, deque[Ticket]] = OrderedDict()

    @asynccontextmanager
    async def taken(self, host: str, wait_s: float) -> AsyncIterator[bool]:
        """Wait up to `wait_s` seconds for the lock, and yield True if the block has it."""
        got = await self._take(host, wait_s)
        try:
            yield got
        finally:
            if got:
                self._release()

    async def _take(self, host: str, wait_s: float) -> bool:
        if not self._taken:
            self._taken = True
            return True
        ticket: Ticket = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(host, deque()).append(ticket)
        try:
            async with asyncio.timeout(max(0.0, wait_s)):
                await ticket
        except TimeoutError:
            return not self._leave(host, ticket)  # the turn may have come at the last moment
        except asyncio.CancelledError:
            if not self._leave(host, ticket):
                self._release()
            raise
        return True

    def _leave(self, host: str, ticket: Ticket) -> bool:
        """Stop waiting. Return False if the lock was already passed to this ticket."""
        queue = self._waiting.get(host)
        if queue is None or ticket not in queue:
            return False
        queue.remove(ticket)
        if not queue:
            del self._waiting[host]
        return True

    def _release(self) -> None:
        if not self._waiting:
            self._taken = False
            return
        host, queue = self._waiting.popitem(last=False)
        ticket = queue.popleft()
        if queue:
            self._waiting[host] = queue  # after all other hosts
        ticket.set_result(None)
