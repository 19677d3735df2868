"""Runs a command, and measures the CPU and memory of it and its descendants. Requires Linux.

CPU time is the kernel's count for the process, its living descendants, and those they waited for,
in hundredths of a second. For the command itself it is exact, from `wait4`. Memory is the largest
resident size; shared pages count for each process. It is the maximum of samples every tenth of a
second, or the kernel's value for the command if that is larger. (`wait4` returns the parent's size
at the fork if that was larger.)
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

TICK_S = 0.1
GRACE_S = 15.0
RESULT = "result"
PROC = Path("/proc")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
ERROR_CHARS_SHOWN = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Usage of processes so far: total CPU, and current or (for one process) peak memory."""

    at_s: float
    cpu_s: float
    resident_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A command that has ended. Times are values of `time.monotonic`.

    If the command was stopped, its `code` is None and `stopped` is the reason.
    """

    code: int | None
    out: str
    err: str
    started_s: float
    ended_s: float
    cpu_s: float
    resident_bytes_max: int
    samples: tuple[Usage, ...] = field(repr=False)
    stopped: str = ""

    @property
    def said(self) -> dict[str, Any]:
        """Return the last output line that is a JSON result, or {}."""
        for line in reversed(self.out.splitlines()):
            with contextlib.suppress(ValueError):
                said = json.loads(line)
                # Other lines may follow the result, for example about stopped processes.
                if isinstance(said, dict) and said.get("type", RESULT) == RESULT:
                    return said
        return {}

    def cpu_before_s(self, moment_s: float) -> float:
        """Estimate the CPU time used before a moment, interpolated between samples."""
        before = Usage(at_s=self.started_s, cpu_s=0.0, resident_bytes=0)
        for sample in self.samples:
            if sample.at_s >= moment_s:
                span_s = sample.at_s - before.at_s
                share = (moment_s - before.at_s) / span_s if span_s > 0 else 0.0
                return before.cpu_s + (sample.cpu_s - before.cpu_s) * max(0.0, share)
            before = sample
        return before.cpu_s


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def family(roots: Sequence[int], proc: Path = PROC) -> list[int]:
    todo, found = list(roots), dict[int, None]()
    while todo:
        pid = todo.pop()
        if pid not in found:
            found[pid] = None
            with contextlib.suppress(OSError):  # the process has just ended
                for task in (proc / str(pid) / "task").iterdir():
                    todo += [int(child) for child in (task / "children").read_text().split()]
    return list(found)


def usage(roots: Sequence[int], proc: Path = PROC) -> Usage:
    ticks = resident = 0
    for pid in family(roots, proc):
        with contextlib.suppress(OSError):  # the process has just ended
            # The name is in brackets and may contain anything.
            fields = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
            ticks += sum(int(value) for value in fields[11:15])
            resident += int(fields[21])
    return Usage(
        at_s=time.monotonic(), cpu_s=ticks / _TICKS_PER_S, resident_bytes=resident * _PAGE_BYTES
    )


def peak(pid: int, proc: Path = PROC) -> int:
    """Return a process's peak resident bytes, or 0 if it has ended."""
    with contextlib.suppress(OSError, StopIteration):
        lines = (proc / str(pid) / "status").read_text().splitlines()
        noted = next(line for line in lines if line.startswith("VmHWM:"))
        return int(noted.split()[1]) * 1024
    return 0


def run(
    words: Sequence[str | Path],
    *,
    environment: Mapping[str, str],
    folder: Path,
    limit_s: float,
    beside: Sequence[int] = (),
    tick: Callable[[Usage], str | None] = lambda _: None,
) -> Ran:
    """Run a command to its end, or stop it after `limit_s` or when `tick` returns a reason."""
    # The usage of running processes with the ids `beside` counts: they work for the command.
    before = usage(beside)
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        started_s = time.monotonic()
        process = subprocess.Popen(
            [str(word) for word in words],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            process_group=0,  # so that Ctrl-C reaches this process first
        )
        samples: list[Usage] = []
        try:
            code, stopped, used = _wait(
                process, beside, before.cpu_s, samples, started_s + limit_s, tick
            )
        finally:
            _end(process)
        ended_s = time.monotonic()
        out.seek(0)
        err.seek(0)
        return Ran(
            code=code,
            stopped=stopped,
            out=out.read(),
            err=err.read()[-ERROR_CHARS_SHOWN:],
            started_s=started_s,
            ended_s=ended_s,
            # `wait4` misses processes that others than their parent killed. The samples contain
            # them.
            cpu_s=max(
                used.cpu_s + usage(beside).cpu_s - before.cpu_s,
                *(sample.cpu_s for sample in samples),
                0.0,
            ),
            resident_bytes_max=max((sample.resident_bytes for sample in samples), default=0),
            samples=tuple(samples),
        )


def _wait(
    process: subprocess.Popen[bytes],
    beside: Sequence[int],
    before_s: float,
    samples: list[Usage],
    deadline_s: float,
    tick: Callable[[Usage], str | None],
) -> tuple[int | None, str, Usage]:
    while True:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            cpu_s = used.ru_utime + used.ru_stime
            return (
                process.returncode,
                "",
                Usage(at_s=time.monotonic(), cpu_s=cpu_s, resident_bytes=0),
            )
        seen = usage([process.pid, *beside])
        samples.append(
            Usage(
                at_s=seen.at_s,
                cpu_s=seen.cpu_s - before_s,
                resident_bytes=max(seen.resident_bytes, peak(process.pid)),
            )
        )
        stopped = "time" if seen.at_s > deadline_s else tick(samples[-1])
        if stopped:
            return None, stopped, Usage(at_s=seen.at_s, cpu_s=0.0, resident_bytes=0)
        time.sleep(TICK_S)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop a command that still runs, and the rest of its group."""
    if process.returncode is None:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        until_s = time.monotonic() + GRACE_S
        while time.monotonic() < until_s:  # until new parents have reaped them
            os.killpg(process.pid, 0)
            time.sleep(TICK_S / 10)
    process.wait()
