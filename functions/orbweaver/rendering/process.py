"""Manage a browser's processes, and speak the DevTools protocol over its pipe.

Processes start as a group. Their memory is watched, and all are killed and reaped. Messages are
JSON, each ended by a zero byte. An invalid or too long message ends the connection. Then all
waiting calls fail, and the browser can no longer be used. Callers set time limits.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import fcntl
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from orbweaver.model.value import value_class
from orbweaver.rendering.launch import FENCE, BrowserProgram, arguments_of, environment_of

FOLDER_PREFIX = "orbweaver-browser-"
# Lowest number for a copy of the browser's socket, so that 3 and 4 are free when the browser's
# process gets them.
_DESCRIPTOR_MIN = 10
_SET_CHILD_SUBREAPER = 36
_PROCESSES = Path("/proc")
# Parts of command lines of processes that all pages share. A browser restarts them by itself.
_SHARED = (b"network.mojom.NetworkService", b"--type=gpu-process")
_SHELL, _BECOME = "/bin/sh", 'exec "$0" "$@"'
_REAP_S = 5.0
_LOOK_S = 0.005
# Ids of each ended browser's processes that are not reaped yet. A negative number is a process
# group, as for `waitpid`.
_unreaped: list[list[int]] = []
# Maximum length of a message. The longest contains the HTML of a page as JSON.
MESSAGE_BYTES_MAX = 64 * 1024 * 1024

# Session (None: the browser's own), method, parameters.
_Result: TypeAlias = dict[str, Any]
EventHandler: TypeAlias = Callable[[str | None, str, dict[str, Any]], None]


@value_class
class ProcessMemory:
    """Memory of one process. `renders` means that it runs pages."""

    pid: int
    pss_bytes: int
    renders: bool


class BrowserProcess:
    """The processes of one browser, and the browser's temporary folder."""

    def __init__(self, pid: int, folder: Path, connection: socket.socket) -> None:
        self.pid = pid
        self.folder = folder
        self.connection = connection

    @classmethod
    def start(
        cls,
        program: BrowserProgram,
        process_bytes_max: int,
        parent: str | None = None,
        fence: Mapping[str, tuple[str, ...]] = FENCE,
    ) -> BrowserProcess:
        """Start a browser with a new folder below `parent`. Raises OSError.

        `process_bytes_max` limits the memory of each process. `fence` are the flags that disable
        the network.
        """
        if not os.access(program.path, os.X_OK):
            raise PermissionError(f"{program.path} is no program that may be run")
        _become_reaper()
        folder = tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{os.getpid()}-", dir=parent)
        # The browser ends when this process closes its socket or ends. So the browser never
        # outlives this process.
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                high = fcntl.fcntl(theirs, fcntl.F_DUPFD_CLOEXEC, _DESCRIPTOR_MIN)
            try:
                # The kernel limits the writable memory of each process (RLIMIT_DATA), however fast
                # a process allocates. An allocation above the limit fails. The shell sets the limit
                # before it executes the browser, because engines plan their memory at the start.
                begin = f"ulimit -d {process_bytes_max // 1024}; {_BECOME}"
                words = [*arguments_of(program.path, folder, fence), *program.flags]
                # posix_spawn runs no Python code in the child process.
                pid = os.posix_spawn(
                    _SHELL,
                    [_SHELL, "-c", begin, *words],
                    environment_of(folder, program.environment),
                    file_actions=[
                        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                        (os.POSIX_SPAWN_DUP2, high, 3),
                        (os.POSIX_SPAWN_DUP2, high, 4),
                    ],
                    setsid=True,
                    setsigmask=(),
                    setsigdef=(signal.SIGPIPE, signal.SIGINT),
                )
            finally:
                os.close(high)
        except BaseException:
            ours.close()
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return cls(pid, Path(folder), ours)

    def memory(self) -> list[ProcessMemory]:
        """Return the memory of each process. Processes that end during the call are left out."""
        found = []
        for pid, command in self._members():
            with contextlib.suppress(OSError, StopIteration, IndexError, ValueError):
                lines = (_PROCESSES / str(pid) / "smaps_rollup").read_bytes().splitlines()
                # The proportional set size, because resident sizes count shared pages once per
                # process.
                pss = next(line for line in lines if line.startswith(b"Pss:"))
                renders = b"--type=renderer" in command
                size = int(pss.split()[1]) * 1024
                found.append(ProcessMemory(pid=pid, pss_bytes=size, renders=renders))
        return found

    def shared(self) -> frozenset[int]:
        return frozenset(pid for pid, command in self._members() if _is_shared(command))

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    async def end(self) -> None:
        """Kill the browser's processes, reap them for some seconds, and remove its folder."""
        self.connection.close()
        outside = [pid for pid, _ in self._members()]
        try:
            self.kill()
            for pid in outside:
                kill(pid)
            # Processes that have not ended yet are reaped with the next browser, or by `reap_all`.
            _unreaped.append([-self.pid, *outside])
            await reap_all(_REAP_S)
        finally:
            # Remove the folder after the kill, because running processes would write files into it
            # again.
            shutil.rmtree(self.folder, ignore_errors=True)

    def _members(self) -> Iterator[tuple[int, bytes]]:
        """Yield the browser's processes: its group, and commands that contain its folder."""
        name = os.fsencode(self.folder)
        for process in _processes():
            with contextlib.suppress(OSError, IndexError, ValueError):
                command = (process / "cmdline").read_bytes()
                # Split after the process name, which may contain spaces. State, parent and group
                # follow.
                stat = (process / "stat").read_bytes().rpartition(b")")[2].split()
                # A crash handler leaves the group, but its command line contains the folder.
                if int(stat[2]) == self.pid or name in command:
                    yield int(process.name), command


async def reap_all(within_s: float) -> None:
    """Reap the processes of all ended browsers. Returns after at most `within_s` seconds."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            while any(map(_reap_browser, _unreaped)):  # noqa: ASYNC110 - not all are our children
                await asyncio.sleep(_LOOK_S)
    _unreaped[:] = filter(None, _unreaped)


def is_running(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return _is_shared((_PROCESSES / str(pid) / "cmdline").read_bytes())
    return False


def _is_shared(command: bytes) -> bool:
    return any(mark in command for mark in _SHARED)


def _processes() -> list[Path]:
    with contextlib.suppress(OSError):
        names = os.listdir(_PROCESSES)  # noqa: PTH208 - leaves no iterator open in a thread
        return [_PROCESSES / name for name in names if name.isdigit()]
    return []


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def remove_left_folders(parent: str | None = None) -> None:
    """Remove the folders that browsers of killed processes left below `parent`."""
    for folder in Path(parent or tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*-*"):
        owner = folder.name.removeprefix(FOLDER_PREFIX).partition("-")[0]
        if owner.isdigit() and not _exists(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)


def _become_reaper() -> None:
    # This process adopts orphaned browser processes, because PID 1 of a container might not reap
    # them.
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _reap_browser(browser: list[int]) -> bool:
    """Reap the ended processes of one browser. Return True if some have not ended yet."""
    # Reap the group first. When it has ended, the remaining processes become children of this
    # process.
    while browser and not _reap(browser[0]):
        del browser[0]
    return bool(browser)


def _reap(which: int) -> bool:
    """Reap a process, or a group if `which` is negative. Return True if some have not ended."""
    try:
        while os.waitpid(which, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return which < 0 and _exists(which)
    return True


def _exists(pid: int) -> bool:
    """Return True if a process exists, or a process of the group if `which` is negative."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class BrowserGone(Exception):
    """The connection to the browser has ended, and so has the browser."""


class CommandFailed(Exception):
    """The browser refused a command, usually because the target no longer exists."""


class Connection:
    """Sends commands to a browser, and receives results and events."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        on_event: EventHandler,
        on_end: Callable[[], None],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._on_event = on_event
        self._on_end = on_end
        self._number = 0
        self._waiting: dict[int, asyncio.Future[_Result]] = {}
        self.gone = False
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def over(
        cls, ours: socket.socket, on_event: EventHandler, on_end: Callable[[], None]
    ) -> Connection:
        """Create a connection over a socket. The connection closes the socket."""
        reader, writer = await asyncio.open_connection(sock=ours, limit=MESSAGE_BYTES_MAX)
        return cls(reader, writer, on_event, on_end)

    async def call(
        self, method: str, session: str | None = None, **parameters: Any
    ) -> dict[str, Any]:
        """Send a command and return its result. Raises CommandFailed, BrowserGone.

        `session` belongs to a target. None: the browser itself.
        """
        if self.gone:
            raise BrowserGone
        number = self._send(method, session, parameters)
        reply: asyncio.Future[_Result] = asyncio.get_running_loop().create_future()
        self._waiting[number] = reply
        try:
            with contextlib.suppress(ConnectionError):
                await self._writer.drain()
            return await reply
        finally:
            self._waiting.pop(number, None)

    def post(self, method: str, session: str | None = None, **parameters: Any) -> None:
        if not self.gone:
            self._send(method, session, parameters)

    async def close(self) -> None:
        self._reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading
        self._end()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()

    def _send(self, method: str, session: str | None, parameters: dict[str, Any]) -> int:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        self._writer.write(json.dumps(message).encode() + b"\0")
        return self._number

    async def _read(self) -> None:
        ends = (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError)
        try:
            with contextlib.suppress(*ends, ValueError, LookupError, TypeError):
                while True:
                    self._take(json.loads((await self._reader.readuntil(b"\0"))[:-1]))
        finally:
            self._end()

    def _take(self, message: Any) -> None:
        if not isinstance(message, dict):
            raise TypeError
        number = message.get("id")
        if number is None:
            self._on_event(message.get("sessionId"), message["method"], message.get("params", {}))
            return
        reply = self._waiting.get(number)
        if reply is None or reply.done():
            return
        if "error" in message:
            reply.set_exception(CommandFailed(str(message["error"].get("message"))))
        else:
            reply.set_result(message.get("result", {}))

    def _end(self) -> None:
        if self.gone:
            return
        self.gone = True
        self._writer.close()
        self._on_end()
        for reply in self._waiting.values():
            if not reply.done():
                reply.set_exception(BrowserGone())
        self._waiting.clear()
