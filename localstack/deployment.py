"""Plans a deployment: which settings of the last deployment it keeps, and which it changes.

The context of the last deployment is kept, except for keys that are given again. An empty value
removes a key, so that cdk.json or the default applies. `reset` removes all. If the workers are
switched off, they remain off, unless `worker_enabled` is given. Concurrency limits are never kept,
because each deployment checks the account again.

A new account has a Lambda concurrency of ten. If event sources could use all of it, the API would
be throttled. Limits that the deployment's command or cdk.json sets are not changed, with a warning
if they are too high. All other limits share the remaining concurrency, at least two each (an event
source's minimum). A fifth of the concurrency is left for functions without a limit: API, starter,
notifier.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from localstack import cdk, deployed, layout
from localstack.errors import LocalStackError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from localstack.cdk import Say


# Context key for the settings to keep, as in app.py.
KEY = "orbweaver:context"
NEVER = ("stack_name", "target", "worker_enabled", "keep_settings")
# Context key that shows the app that a deployment was planned, and its values: whether the stack
# exists.
MARK, EXISTS, NEW = cdk.MARK, "exists", "new"
ENABLED = "worker_enabled"
WORKER = "WorkerFunction"
TRIES, PAUSE_S = 30, 1.0
SUFFIX, RENDERER, RENDERING = "_concurrency_max", "renderer_", "rendering"
LEAST = 2
ROOM_MIN, ROOM_MAX = 3, 50
QUOTA = "Service Quotas, AWS Lambda, Concurrent executions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """CDK's context, and messages to show before the deployment.

    `off`: the workers are switched off, and remain off.
    """

    name: str
    context: Mapping[str, str]
    told: tuple[str, ...] = ()
    off: bool = False


def plan(
    given: Mapping[str, str],
    environment: Mapping[str, str],
    *,
    defaults: Mapping[str, str] | None = None,
    reset: bool = False,
) -> Plan:
    """Plan the deployment of a stack. `given` are the keys that the user gave, also `stack_name`.

    `defaults` apply to keys that are not given or kept. `reset` keeps no settings.
    """
    name = given.get("stack_name") or usual_name()
    described = deployed.describe(name, environment)
    kept = (
        {} if described is None or not described.exists else _kept(name, environment, reset=reset)
    )
    wanted = _merged({} if reset else kept, given)
    named = {key: given[key] for key in NEVER if given.get(key)}
    if named.get(ENABLED) == "yes" and ENABLED not in _file():
        del named[ENABLED]  # this is the default, and the cached assembly is without the key
    context = {**(defaults or {}), **wanted, **named}
    told = differences(kept, wanted)
    off = False
    if described is not None and described.exists and ENABLED not in given:
        off = switched_off(described.outputs.get(WORKER), environment)
    if off:
        context[ENABLED] = "no"
        told.append("the workers are switched off and stay off: `orbweaver workers on`")
    if not cdk.is_emulator(environment):
        chosen, said = choose_from_account(environment, {**_file(), **wanted})
        context |= chosen
        told += said
    if {key: value for key, value in context.items() if key not in NEVER} != wanted:
        context[KEY] = json.dumps(wanted, sort_keys=True)
    if not cdk.is_emulator(environment):
        context[MARK] = EXISTS if described is not None and described.exists else NEW
    return Plan(name=name, context=context, told=tuple(told), off=off)


def deploy(
    wanted: Plan,
    environment: Mapping[str, str],
    *,
    say: Say,
    yes: bool = False,
) -> dict[str, str]:
    for line in wanted.told:
        say(line)
    return cdk.deploy(environment, wanted.context, say=say, yes=yes)


def switch(
    given: Mapping[str, str], outputs: Mapping[str, str], environment: Mapping[str, str]
) -> None:
    """Enable or disable the workers as the given context requires.

    CloudFormation does not notice if a command has switched them since the last deployment.
    """
    if given.get(ENABLED) and WORKER in outputs:
        _switch(outputs[WORKER], environment, on=given[ENABLED] == "yes")


def differences(kept: Mapping[str, str], wanted: Mapping[str, str]) -> list[str]:
    """Describe which settings a deployment keeps, sets, changes and removes, one per line."""
    same = [f"{key}={wanted[key]}" for key in sorted(wanted) if kept.get(key) == wanted[key]]
    lines = [f"keeps what the stack was deployed with: {', '.join(same)}"] if same else []
    for key in sorted({*kept, *wanted}):
        before, after = kept.get(key), wanted.get(key)
        if before is None:
            lines.append(f"sets {key}={after}")
        elif after is None:
            lines.append(f"drops {key}={before}")
        elif before != after:
            lines.append(f"changes {key}={before} to {after}")
    return lines


def switched_off(function: str | None, environment: Mapping[str, str]) -> bool:
    found = deployed.read_sources(function, environment) if function else ()
    return bool(found) and all(source.is_off for source in found)


def _kept(name: str, environment: Mapping[str, str], *, reset: bool) -> dict[str, str]:
    try:
        return deployed.context_of(name, environment)
    except LocalStackError as error:
        if reset:
            return {}
        fix = "--reset-context deploys without what it was deployed with"
        raise LocalStackError(f"{error}\n{fix}") from error


def _merged(kept: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    return {
        key: value
        for key, value in {**kept, **given}.items()
        if value != "" and key not in NEVER and key != KEY
    }


def usual_name() -> str:
    """Return the name of the stack for deployments that give no name."""
    return _file().get("stack_name") or deployed.STACK


def _file() -> dict[str, str]:
    try:
        context = json.loads((layout.ROOT / "cdk.json").read_text()).get("context", {})
    except (OSError, ValueError):
        return {}
    return {key: str(value) for key, value in context.items()}


def _switch(function: str, environment: Mapping[str, str], *, on: bool) -> None:
    for source in deployed.read_sources(function, environment):
        for _ in range(TRIES):
            if source.is_off != on or deployed.switch(source, environment, on=on):
                break
            time.sleep(PAUSE_S)
        else:
            raise LocalStackError(
                f"The event source of {source.queue} takes no update: run"
                f" `orbweaver workers {'on' if on else 'off'}`"
            )


def default_limits(*, renders: bool) -> dict[str, int]:
    """Return the default of each concurrency limit, by context key (`worker_concurrency_max`, …).

    `renders`: include the limit of the renderer.
    """
    from infra.config import Config

    return {
        item.name: int(str(item.default))
        for item in fields(Config)
        if item.metadata and item.name.endswith(SUFFIX)
        if renders or not item.name.startswith(RENDERER)
    }


def choose_from_account(
    environment: Mapping[str, str], given: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Read the account's concurrency, and choose limits that fit into it.

    Returns the chosen limits, and messages for the user. `given` are the settings of the
    deployment.
    """
    try:
        with cdk.client("lambda", environment) as client:
            found = client.get_account_settings()["AccountLimit"]
    except (BotoCoreError, ClientError) as error:
        return {}, [f"Lambda's quota cannot be read ({error}): the usual limits stay"]
    quota = int(found["UnreservedConcurrentExecutions"])
    limits = default_limits(renders=given.get(RENDERING) == "yes")
    return choose(quota, limits, {key: value for key, value in given.items() if key in limits})


def choose(
    quota: int, limits: Mapping[str, int], given: Mapping[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Choose limits that fit into the account's concurrency `quota`.

    `limits` are the defaults, `given` the limits that the user has set. Returns the limits to
    change, and messages for the user.
    """
    room = min(ROOM_MAX, max(ROOM_MIN, quota // 5))
    fixed = {key: int(value) for key, value in given.items() if value.isdecimal()}
    free = {key: value for key, value in limits.items() if key not in given}
    said = [f"Lambda runs up to {quota:,} functions at once in this account and region"]
    if sum(fixed.values()) + sum(free.values()) + room <= quota:
        return {}, said
    chosen = _share_out(quota - room - sum(fixed.values()), free)
    if chosen:
        words = ", ".join(f"{key}={value}" for key, value in chosen.items())
        said.append(f"so that the API keeps some of them: {words}; for more see {QUOTA}")
    total = sum(fixed.values()) + sum(chosen.values())
    if fixed and total + room > quota:
        words = ", ".join(f"{key}={value}" for key, value in fixed.items())
        said.append(
            f"warning: {words} as given: all limits together are {total:,}, which leaves"
            f" {max(0, quota - total):,} for API and others; they may be throttled"
        )
    return {key: str(value) for key, value in chosen.items()}, said


def _share_out(spare: int, limits: Mapping[str, int]) -> dict[str, int]:
    """Divide `spare` in proportion to `limits`.

    Each gets at least `LEAST` and at most its limit.
    """
    total = sum(limits.values()) or 1
    shares = {key: min(limit, max(LEAST, spare * limit // total)) for key, limit in limits.items()}
    while sum(shares.values()) > spare and max(shares.values(), default=0) > LEAST:
        largest = max(shares, key=lambda key: shares[key])
        shares[largest] -= 1
    return shares
