"""Chooses concurrency limits that fit into the account's Lambda concurrency.

A new account has a concurrency of ten. If event sources could use all of it, the API would be
throttled. Limits that the deployment's command or cdk.json sets are not changed, with a warning if
they are too high. All other limits share the remaining concurrency, at least two each (an event
source's minimum). A fifth of the concurrency is left for functions without a limit: API, starter,
notifier.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from localstack import cdk

if TYPE_CHECKING:
    from collections.abc import Mapping

SUFFIX, RENDERER, RENDERING = "_concurrency_max", "renderer_", "rendering"
LEAST = 2
ROOM_MIN, ROOM_MAX = 3, 50
QUOTA = "Service Quotas, AWS Lambda, Concurrent executions"


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
