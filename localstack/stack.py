"""The whole stack on this machine: an emulator with the deployed CDK app.

If a command fails or is interrupted, it stops the processes that it started, and no others. The
emulator stores the fingerprint of its deployment (in an SSM parameter). If the fingerprint is
unchanged, nothing is deployed.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from localstack import (
    assembly,
    cdk,
    deployment,
    emulator,
    guard,
    installed,
    layout,
    lending,
)
from localstack.errors import LocalStackError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from localstack.cdk import Say

FINGERPRINT = "/orbweaver/local/fingerprint"
CONTEXT = {"target": "local"}  # from infra/config.py; a caller's own values override it


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
    root: Path = layout.ROOT,
) -> Stack:
    """Start a stack that outlives this process. `fresh` discards the state and the settings."""
    with lending.gate(port, layout.INSTANCES):
        found = emulator.find(port) if port else None
        if found is not None and fresh:
            say("stopping the emulator that runs")
            found.stop()
            found = None
        if found is not None:
            found.release()
    if found is not None:
        outputs = bring_up_to_date(found, context, defaults=defaults, say=say, root=root)
        return Stack(emulator=found, outputs=outputs)
    with _started(port=port, keep=True, fresh=fresh, say=say) as started:
        outputs = bring_up_to_date(started, context, defaults=defaults, say=say, root=root)
        started.release()
    return Stack(emulator=started, outputs=outputs)


@contextlib.contextmanager
def temporary(
    *,
    port: int = 0,
    keep: bool = False,
    context: Mapping[str, str] | None = None,
    settings: Mapping[str, str] | None = None,
    say: Say = lambda _: None,
    root: Path = layout.ROOT,
) -> Iterator[Stack]:
    """Run a new stack during the block. If `keep`, its state stays on its port for a later `up`."""
    with _started(port=port, keep=keep, fresh=keep, say=say, settings=settings) as started:
        try:
            outputs = bring_up_to_date(started, context, say=say, root=root)
            yield Stack(emulator=started, outputs=outputs)
        finally:
            started.stop()


def down(port: int = emulator.PORT, *, say: Say = lambda _: None) -> bool:
    """Stop the emulator of a port. Returns False if none runs."""
    found = emulator.find(port)
    if found is None:
        return False
    say(f"stopping the emulator on port {port}")
    found.stop()
    return True


def bring_up_to_date(
    running: emulator.Emulator,
    context: Mapping[str, str] | None = None,
    *,
    defaults: Mapping[str, str] | None = None,
    reset: bool = False,
    working: bool = False,
    say: Say = lambda _: None,
    root: Path = layout.ROOT,
) -> dict[str, str]:
    """Deploy to an emulator if something changed, and return the outputs.

    The last deployment's settings are kept, unless `context` overrides them or `reset` drops them.
    `defaults` apply to the others. If `working`, a stack whose workers are off is an error.
    """
    environment = running.environment()
    installed.ensure_project()
    # One deployment at a time. A second one then finds the fingerprint unchanged.
    with guard.locked(running.directory / "deploy"), cdk.client("ssm", environment) as ssm:
        given = dict(context or {})
        usual = {**CONTEXT, **(defaults or {})}
        planned = deployment.plan(given, environment, defaults=usual, reset=reset, root=root)
        if planned.off and working:
            raise LocalStackError(
                "The workers of this stack are switched off: run `orbweaver workers on` first"
            )
        wanted = assembly.fingerprint(root, planned.context)
        outputs = _outputs(environment, wanted) if _deployed(ssm) == wanted else None
        if outputs is None:
            outputs = deployment.deploy(planned, environment, say=say, root=root)
            ssm.put_parameter(Name=FINGERPRINT, Value=wanted, Type="String", Overwrite=True)
        deployment.switch(given, outputs, environment)
    return outputs


def _deployed(ssm: Any) -> str | None:
    try:
        return str(ssm.get_parameter(Name=FINGERPRINT)["Parameter"]["Value"])
    except ClientError:
        return None


def _outputs(environment: Mapping[str, str], key: str) -> dict[str, str] | None:
    """Return the outputs of an assembly's stacks, or None unless all are complete."""
    kept = layout.ASSEMBLIES / key
    if not (kept / "manifest.json").exists():
        return None
    stacks = [cdk.stack_outputs(name, environment) for name in assembly.stack_names(kept)]
    if None in stacks:
        return None
    return {name: value for stack in stacks if stack for name, value in stack.items()}


@contextlib.contextmanager
def _started(
    *,
    port: int,
    keep: bool,
    fresh: bool = False,
    say: Say,
    settings: Mapping[str, str] | None = None,
) -> Iterator[emulator.Emulator]:
    installed.ensure_emulator(say)
    say("starting the emulator")
    started = emulator.start(port=port, keep=keep, fresh=fresh, settings=settings)
    if started.missing is not None:
        say(started.missing.describe(started.port))
    try:
        yield started
    except BaseException:
        # With port 0, later commands could not find the state, because the port is random.
        started.keep = keep and port != 0
        started.stop()
        raise
