"""Context of a synthesis that CDK's own command line starts, such as `npx cdk deploy`.

- `orbweaver deploy` plans before it synthesizes, and sets a mark (`orbweaver:stack`). Without the
  mark, the app makes the same plan here: kept settings, switched-off workers, concurrency.
- If CDK has credentials, it passes account and region to the app. Without them this module sends
  no request, so `cdk ls` and `cdk synth` work offline.
- CDK does not pass `--profile` to an app. If the app finds credentials of another account, that is
  an error.
- With `keep_settings=no`, there is no plan and no request to AWS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from localstack import cdk, deployment, removal
from localstack.errors import LocalStackError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


ACCOUNT, REGION = "CDK_DEFAULT_ACCOUNT", "CDK_DEFAULT_REGION"
KEEP = "keep_settings"
WITHOUT = f"-c {KEEP}=no synthesizes from the context alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The context keys to synthesize with, and whether the stack is deployed already."""

    context: Mapping[str, str]
    stack_exists: bool


def plan(
    given: Mapping[str, str],
    context: Mapping[str, object],
    environment: Mapping[str, str],
    *,
    say: Callable[[str], object],
) -> Planned:
    """Plan a synthesis.

    `given` are the keys from the command line, `context` is CDK's whole context.
    """
    mark = context.get(deployment.MARK)
    offline = not environment.get(ACCOUNT) or given.get(KEEP) == "no"
    if mark is not None or offline or context.get("target") == "local":
        return Planned(context=given, stack_exists=mark == deployment.EXISTS)
    environment = {**environment, "AWS_REGION": environment[REGION]}
    _check_account(environment)
    try:
        planned = deployment.plan(given, environment)
    except LocalStackError as error:
        raise LocalStackError(f"{error}\n{WITHOUT}") from error
    for line in planned.told:
        say(line)
    exists = planned.context.get(deployment.MARK) == deployment.EXISTS
    if not exists:
        _say_left(planned.name, environment, say=say)
    return Planned(context=planned.context, stack_exists=exists)


def _check_account(environment: Mapping[str, str]) -> None:
    try:
        with cdk.client("sts", environment) as sts:
            found = sts.get_caller_identity()["Account"]
    except (BotoCoreError, ClientError) as error:
        fix = "set AWS_PROFILE instead of --profile"
        raise LocalStackError(f"Cannot ask AWS as CDK does ({error}): {fix}\n{WITHOUT}") from error
    if found != environment[ACCOUNT]:
        raise LocalStackError(
            f"CDK deploys to the account {environment[ACCOUNT]}, but the credentials in the"
            f" environment are of {found}: set AWS_PROFILE instead of --profile\n{WITHOUT}"
        )


def _say_left(name: str, environment: Mapping[str, str], *, say: Callable[[str], object]) -> None:
    """Report that only `orbweaver deploy` imports data that an earlier stack has left."""
    file = removal.left_file(name, lambda service: cdk.client(service, environment))
    if file.exists():
        say(
            f"an earlier stack has left data ({file}): `orbweaver deploy` takes it up again,"
            " `cdk deploy` begins with new tables"
        )
