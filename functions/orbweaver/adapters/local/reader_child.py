"""Child process that reads pages one by one, each within a budget of CPU time and memory.

Python code is interrupted after `SOFT_S` CPU seconds. At `CPU_S` the kernel kills a process that is
still inside a library. The address space can grow by `MEMORY_BYTES` per page.
"""

from __future__ import annotations

import importlib
import os
import resource
import signal
import socket
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from selectolax.lexbor import SelectolaxError

from orbweaver.adapters.local.custom_extractors import deployed
from orbweaver.adapters.local.reader_wire import LENGTH, ReadingEnd, decode_request, packed
from orbweaver.model.errors import is_fault, type_and_place
from orbweaver.worker.page_reading import CPU_S, MEMORY_BYTES, ReadingJob, bare, stages

if TYPE_CHECKING:
    from orbweaver.extraction.extract import Extractor

SOFT_S = 0.6
WALL_S = 20.0  # if the parent is gone, or the page's extractor sleeps
NICE = 10  # requests come before costly pages
# The process ends after a page that leaves more in memory, so that each page has its full budget.
KEPT_BYTES_MAX = 100 * 1024 * 1024
TRACE_CHARS_MAX = 4_000
# Limits of the address space while no page is read.
FREE = resource.getrlimit(resource.RLIMIT_AS)


class ReadingSpent(BaseException):
    """The page has used its CPU time. A BaseException, so that no error handler catches it."""


def main(extractor: str) -> None:
    """Read pages until the parent closes its end of the socket."""
    channel = socket.socket(fileno=os.dup(0))
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.nice(NICE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.signal(signal.SIGVTALRM, _raise_spent)
    with channel:
        _serve(channel, extractor)


def _serve(channel: socket.socket, extractor: str) -> None:
    extractors: Mapping[str, Extractor] | None = None
    base_bytes = _address_bytes()
    while True:
        job: ReadingJob | None = _receive_job(channel)
        if job is None:
            return
        _prepare(job)
        if extractors is None and job.items:
            extractors = deployed(extractor)
        end = _read(channel, job, extractors)
        del job
        retires = _address_bytes() > base_bytes + KEPT_BYTES_MAX
        _send(channel, replace(end, retires=retires))
        if retires:
            return


def _read(
    channel: socket.socket, job: ReadingJob, extractors: Mapping[str, Extractor] | None
) -> ReadingEnd:
    try:
        with _budget():
            is_first = True
            for reading in stages(job, extractors):
                if reading is None:
                    continue
                # Only the first message contains the page.
                _send(channel, bare(reading) if is_first else replace(reading, page=None))
                is_first = False
    except ReadingSpent:
        _lift_limits()  # the signal may have interrupted this step
        return ReadingEnd(why=f"more than {SOFT_S:g} s of CPU")
    except OSError:
        raise  # the parent is gone
    except BaseException as error:
        if lacks_memory(error):
            return ReadingEnd(why=f"more than {MEMORY_BYTES // 2**20} MB")
        if not is_fault(error):
            raise
        trace = traceback.format_exc()[-TRACE_CHARS_MAX:]
        return ReadingEnd(why=trace, fault=type_and_place(error))
    return ReadingEnd()


def lacks_memory(error: BaseException) -> bool:
    """Whether an error or one of its causes means that memory ran out."""
    cause: BaseException | None = error
    while cause is not None:
        # lexbor fails only for this reason. A MemoryError in its callbacks raises another error.
        if isinstance(cause, MemoryError | SelectolaxError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


@contextmanager
def _budget() -> Iterator[None]:
    most = _address_bytes() + MEMORY_BYTES
    if FREE[0] != resource.RLIM_INFINITY:
        most = min(most, FREE[0])
    resource.setrlimit(resource.RLIMIT_AS, (most, FREE[1]))
    signal.setitimer(signal.ITIMER_REAL, WALL_S)
    signal.setitimer(signal.ITIMER_PROF, CPU_S)
    signal.setitimer(signal.ITIMER_VIRTUAL, SOFT_S)
    try:
        yield
    finally:
        _lift_limits()


def _lift_limits() -> None:
    # Memory first, because the next steps need some.
    resource.setrlimit(resource.RLIMIT_AS, FREE)
    for timer in (signal.ITIMER_VIRTUAL, signal.ITIMER_PROF, signal.ITIMER_REAL):
        signal.setitimer(timer, 0)


def _raise_spent(_number: int, _frame: Any) -> None:
    raise ReadingSpent


def _prepare(job: ReadingJob) -> None:
    """Import the modules that a page needs, so that its budget does not pay for them."""
    if job.items:
        importlib.import_module("orbweaver.extraction.extract")
    if job.json:
        importlib.import_module("jsonpath")
    if job.keeping.texts:
        importlib.import_module("html_to_markdown")


def _address_bytes() -> int:
    pages = Path("/proc/self/statm").read_bytes().split()[0]
    return int(pages) * resource.getpagesize()


def _receive_job(channel: socket.socket) -> ReadingJob | None:
    said = _receive_part(channel)
    body = None if said is None else _receive_part(channel)
    if said is None or body is None:
        return None
    job: ReadingJob = decode_request(said)
    return replace(job, answer=replace(job.answer, body=body))


def _receive_part(channel: socket.socket) -> bytes | None:
    length = _receive_exactly(channel, LENGTH.size)
    return None if length is None else _receive_exactly(channel, LENGTH.unpack(length)[0])


def _receive_exactly(channel: socket.socket, number: int) -> bytes | None:
    room = bytearray(number)
    view, got = memoryview(room), 0
    while got < number:
        size = channel.recv_into(view[got:])
        if size == 0:
            return None
        got += size
    view.release()
    return bytes(room)


def _send(channel: socket.socket, value: Any) -> None:
    said = packed(value)
    channel.sendall(LENGTH.pack(len(said)) + said)
