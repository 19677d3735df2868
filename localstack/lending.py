"""One emulator for several commands: the last command that uses it stops it.

- A command holds a shared lock on the instance's file `users` while it uses the emulator. The
  kernel releases the lock however the process ends, so no list of processes is needed.
- Commands enter and leave under the lock of the file `gate`, so no command stops an emulator that
  another has just found.
- A command stops only an emulator that a command started for itself. An emulator of `local up` runs
  until `local down`, a temporary one ends with its starter.
"""

from __future__ import annotations

import contextlib
import fcntl
from typing import TYPE_CHECKING

from localstack import emulator, guard, installed, layout

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from localstack.cdk import Say


@contextlib.contextmanager
def lend(
    *, port: int, say: Say, instances: Path | None = None
) -> Iterator[tuple[emulator.Emulator, bool]]:
    """Use a port's emulator during the block. Yields it, and whether this command started it."""
    instances = layout.INSTANCES if instances is None else instances
    with contextlib.ExitStack() as use:
        with gate(port, instances):
            found = emulator.find(port, instances=instances) if port else None
            started = found is None
            if found is None:
                installed.ensure_emulator(say)
                say("starting the emulator")
                found = emulator.start(port=port, keep=True, instances=instances)
                found.lend()
                if found.missing is not None:
                    say(found.missing.describe(found.port))
            users = use.enter_context((found.directory / guard.USERS).open("a"))
            fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield found, started
        finally:
            with gate(found.port, instances):
                use.close()
                _leave(found, instances, say)


@contextlib.contextmanager
def gate(port: int, instances: Path) -> Iterator[None]:
    """Hold the lock for entering or leaving an instance. Port 0 has no instance yet."""
    if not port:
        yield
        return
    folder = instances / str(port)
    folder.mkdir(parents=True, exist_ok=True)
    with guard.locked(folder / guard.GATE):
        yield


def _leave(used: emulator.Emulator, instances: Path, say: Say) -> None:
    """Stop a lent emulator, unless another command uses it."""
    current = emulator.find(used.port, instances=instances)
    if current is None or current.process != used.process:
        used.hand_over()  # another process has stopped or replaced it
        return
    if current.ends_with == guard.DOWN:
        used.release()
        return
    if current.ends_with == guard.STARTER:
        return
    with (used.directory / guard.USERS).open("a") as users:
        if guard.take(users):
            say("stopping the emulator")
            used.stop()
        else:
            say("another command uses the emulator, which stops with the last one")
            used.hand_over()
