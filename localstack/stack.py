"""The whole stack on this machine: an emulator with the deployed CDK app.

- If a command fails or is interrupted, it stops the processes that it has started, and no others.
- While a command uses an emulator, it holds a shared lock on the instance's file `users`. The
  command that started the emulator waits for this lock before it stops the emulator.
- The emulator stores the fingerprint of its deployment (in an SSM parameter). If the fingerprint is
  unchanged, no deployment runs.
"""

from __future__ import annotations

import contextlib
import fcntl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from localstack import assembly, cdk, deployment, emulator, guard, installed, layout
from localstack.errors import LocalStackError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from localstack.cdk import Say

FINGERPRINT = "/orbweaver/local/fingerprint"
CONTEXT = {"target": "local"}  # from infra/config.py; a caller's own values override it
USERS = "users"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A stack that runs on this machine."""

    emulator: emulator.Emulator
    outputs: Mapping[str, str]

    def environment(self) -> dict[str, str]:
        return self.emulator.environment()


def up(
    *,
    port: int = emulator.PORT,
    fresh: bool = False,
    context: Mapping[str, str] | None = None,
    defaults: Mapping[str, str] | None = None,
    say: Say = lambda _: None,
) -> Stack:
    """Start a stack that continues after this process.

    `fresh` deletes existing state and settings.
    """
    if fresh:
        down(port, say=say)
    with running(port) as found:
        used = found or _start(port, say, fresh=fresh)
        try:
            outputs = bring_up_to_date(used, context, defaults=defaults, say=say)
            used.release()
        except BaseException:
            if found is None:
                # The state is kept, except with port 0: the port is random, so later commands would
                # not find the state.
                used.keep = port != 0
                used.stop()
            raise
    return Stack(emulator=used, outputs=outputs)


@contextlib.contextmanager
def temporary(
    *,
    port: int = 0,
    keep: bool = False,
    context: Mapping[str, str] | None = None,
    settings: Mapping[str, str] | None = None,
    say: Say = lambda _: None,
) -> Iterator[Stack]:
    """Run a new stack during the block.

    With `keep`, its state is kept for a later `up` on its port.
    """
    started = _start(port, say, keep=keep, fresh=keep, settings=settings)
    try:
        outputs = bring_up_to_date(started, context, say=say)
        yield Stack(emulator=started, outputs=outputs)
    finally:
        started.stop()


@contextlib.contextmanager
def running(port: int) -> Iterator[emulator.Emulator | None]:
    """Use the running emulator of a port during the block, or None."""
    found = emulator.find(port) if port else None
    if found is None:
        yield None
        return
    with guard.locked(found.directory / USERS, fcntl.LOCK_SH):
        # Another command may have stopped the emulator before the lock was free.
        yield emulator.find(port)


@contextlib.contextmanager
def shared(port: int, *, say: Say) -> Iterator[tuple[emulator.Emulator, bool]]:
    """Use a port's emulator during the block. Yields it, and whether this command started it."""
    with running(port) as found:
        if found is not None:
            yield found, False
            return
        started = _start(port, say)
        try:
            yield started, True
        finally:
            _leave(started, say)


def _leave(started: emulator.Emulator, say: Say) -> None:
    """Wait until no command uses the emulator, then stop it, unless `local up` has released it."""
    users = started.directory / USERS
    try:
        with guard.locked(users, fcntl.LOCK_EX | fcntl.LOCK_NB):
            pass
    except BlockingIOError:
        say("another command uses the emulator: waiting for its end (Ctrl-C stops the emulator)")
    with guard.locked(users):
        now = emulator.find(started.port)
        if now is None or now.process != started.process or now.released:
            started.hand_over()
        else:
            say("stopping the emulator")
            started.stop()


def down(port: int = emulator.PORT, *, say: Say = lambda _: None) -> bool:
    """Stop the emulator of a port. Returns False if no emulator is running there."""
    found = emulator.find(port)
    if found is None:
        return False
    say(f"stopping the emulator on port {port}")
    found.stop()
    return True


def bring_up_to_date(
    on: emulator.Emulator,
    context: Mapping[str, str] | None = None,
    *,
    defaults: Mapping[str, str] | None = None,
    reset: bool = False,
    working: bool = False,
    say: Say = lambda _: None,
) -> dict[str, str]:
    """Deploy to an emulator if something has changed, and return the outputs.

    The settings of the last deployment are kept, unless `context` overrides them or `reset` removes
    them. `defaults` are for settings that are not given and not kept. With `working`, a stack whose
    workers are off is an error.
    """
    environment = on.environment()
    installed.ensure_project()
    # One deployment at a time. If a second command waits for the lock, it then finds the
    # fingerprint unchanged.
    with guard.locked(on.directory / "deploy"), cdk.client("ssm", environment) as ssm:
        given = dict(context or {})
        usual = {**CONTEXT, **(defaults or {})}
        planned = deployment.plan(given, environment, defaults=usual, reset=reset)
        if planned.off and working:
            raise LocalStackError(
                "The workers of this stack are switched off: run `orbweaver workers on` first"
            )
        wanted = assembly.fingerprint(layout.ROOT, planned.context)
        outputs = _outputs(environment, wanted) if _deployed(ssm) == wanted else None
        if outputs is None:
            outputs = deployment.deploy(planned, environment, say=say)
            ssm.put_parameter(Name=FINGERPRINT, Value=wanted, Type="String", Overwrite=True)
        deployment.switch(given, outputs, environment)
    return outputs


def _deployed(ssm: Any) -> str | None:
    try:
        return str(ssm.get_parameter(Name=FINGERPRINT)["Parameter"]["Value"])
    except ClientError:
        return None


def _outputs(environment: Mapping[str, str], key: str) -> dict[str, str] | None:
    """Return the outputs of a cached assembly's stack, or None if it is incomplete."""
    kept = layout.ASSEMBLIES / key
    if not (kept / "manifest.json").exists():
        return None
    return cdk.stack_outputs(assembly.stack_of(kept)[0], environment)


def _start(
    port: int,
    say: Say,
    *,
    keep: bool = True,
    fresh: bool = False,
    settings: Mapping[str, str] | None = None,
) -> emulator.Emulator:
    installed.ensure_cdk(say)  # for an installed package without Node, this raises an error
    installed.ensure_emulator(say)
    say("starting the emulator")
    started = emulator.start(port=port, keep=keep, fresh=fresh, settings=settings)
    if started.lost_since_s is not None:
        say(emulator.describe_loss(started.port, started.lost_since_s))
    return started
