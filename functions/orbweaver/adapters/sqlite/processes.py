"""Processes that work on a store: which are alive, and which have died.

Each process locks a file of its own, and the kernel releases the lock when the process ends. So
reused process ids do no harm, and no timeout declares a sleeping process dead.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from orbweaver.adapters.sqlite.store import StoreUnusable

FOLDER = "processes"


class StoreProcesses:
    """The processes of a store. `own` is the id of this process while it is registered."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER
        self.own = ""

    @contextmanager
    def taking_part(self, mark: str = "") -> Iterator[str]:
        """Register this process with its mark while the block runs, and yield its id."""
        own = f"{os.getpid()}-{token_hex(4)}"
        self._make_folder()
        path, begun = self._folder / own, self._folder / f".{own}"
        number = os.open(begun, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(number, fcntl.LOCK_EX)
            os.write(number, mark.encode())
            begun.rename(path)  # so that the file is locked as soon as others see it
            self.own = own
            yield own
        finally:
            self.own = ""
            path.unlink(missing_ok=True)
            os.close(number)

    def beat(self) -> None:
        """Record that this process is alive now."""
        if self.own:
            with suppress(OSError):  # the next one may succeed
                os.utime(self._folder / self.own)

    def silent_ms(self, wall_ms: int) -> int:
        """Return the time since the last beat of a killed process. 0: none is left or one is alive.

        `wall_ms` is the time of the machine's clock.
        """
        if self.count_alive():
            return 0
        beats = []
        for path in self._files():
            with suppress(FileNotFoundError):
                beats.append(path.stat().st_mtime_ns // 1_000_000)
        return max(0, wall_ms - max(beats, default=wall_ms))

    def ended(self) -> Iterator[str]:
        """Yield the id of each process that died.

        If several processes ask, only one of them gets the id.
        """
        for path in self._files():
            with _opened(path) as number:
                if number is not None and _try_lock(number):
                    yield path.name
                    path.unlink(missing_ok=True)

    def count_alive(self) -> int:
        """Count the processes that work on the store, this one included."""
        return len(self.pids())

    def pids(self) -> tuple[int, ...]:
        """List the system's process ids of the processes that work on the store."""
        found = []
        for path in self._files():
            is_alive = path.name == self.own
            if not is_alive:
                try:
                    with _opened(path) as opened:
                        is_alive = opened is not None and not _try_lock(opened)
                except PermissionError:  # belongs to another user, and may be alive
                    is_alive = True
            if is_alive:
                found.append(int(path.name.partition("-")[0]))
        return tuple(found)

    def marks(self) -> dict[int, str]:
        """Return the marks of running processes of this user, by process id."""
        found, alive = {}, self.pids()
        for path in self._files():
            with suppress(OSError):
                found[int(path.name.partition("-")[0])] = path.read_text()
        return {pid: mark for pid, mark in found.items() if pid in alive}

    def _make_folder(self) -> None:
        try:
            self._folder.mkdir(exist_ok=True)
        except FileExistsError as error:
            raise _unusable(self._folder) from error

    def _files(self) -> list[Path]:
        try:
            return sorted(path for path in self._folder.iterdir() if path.name[0] != ".")
        except FileNotFoundError:
            return []
        except NotADirectoryError as error:
            raise _unusable(self._folder) from error


def _unusable(folder: Path) -> StoreUnusable:
    said = "it must be a folder, where processes say that they work on the store"
    return StoreUnusable(f"{folder}: {said}. Move the file away, or name another store")


@contextmanager
def _opened(path: Path) -> Iterator[int | None]:
    try:
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    try:
        yield number
    finally:
        os.close(number)


def _try_lock(number: int) -> bool:
    """Lock a file and return True, or return False if another process has locked it."""
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
