"""Imports resources that a removed stack has left, such as its tables.

The next deployment of the same stack, account and region imports them. New tables would lack the
claims of earlier crawls (URLs already queued) and their counts. A failed import is an error with
instructions to use new resources instead. removal.py writes the file that lists these resources.

Source: docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/import-resources-existing-stack.html,
…/AWSSimpleQueueService/latest/APIReference/API_DeleteQueue.html.
"""

from __future__ import annotations

import json
import tempfile
import time
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from localstack import layout
from localstack.errors import LocalStackError
from localstack.removal import resource_exists

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from localstack.removal import Lend, Say

    Left = dict[str, dict[str, str]]  # logical id to identifiers, in the format of `cdk import`

QUEUE_NAME_S = 60.0
# Added to SQS's minute. It allows for a wrong clock, and for the time between the deletion of the
# queues and the deletion of the stack.
MARGIN_S = 5.0
LISTS_MAX = 20


def place(stack: str, lend: Lend) -> Path:
    """Return the path of the file that lists the resources left by a stack.

    The name of the stack, the account and the region determine the path.
    """
    with lend("sts") as sts:
        account, region = sts.get_caller_identity()["Account"], sts.meta.region_name
    return layout.LEFT / f"{stack}-{account}-{region}.json"


def adoptable(
    file: Path, declared: Collection[str], deployed: Collection[str], lend: Lend, say: Say
) -> Left:
    """Return the resources in `file` that exist and must be imported.

    `declared` are the resources in the template, `deployed` the resources of the stack. A
    resource must be imported if it is declared and not deployed.
    """
    found = {}
    for logical, identifier in _left(file).items():
        if logical not in declared or logical in deployed:
            continue
        if resource_exists(identifier, lend):
            found[logical] = identifier
        else:
            say(f"{next(iter(identifier.values()))} is not there any more, and begins anew")
    return found


def _left(file: Path) -> Left:
    found: Left = json.loads(file.read_text()) if file.exists() else {}
    return found


def pause_s(stack: str, lend: Lend, now: datetime) -> float:
    """Return for how many seconds SQS still refuses the names of a removed stack's queues."""
    states = ["DELETE_COMPLETE", "ROLLBACK_COMPLETE"]
    with lend("cloudformation") as cloudformation:
        pages = cloudformation.get_paginator("list_stacks").paginate(StackStatusFilter=states)
        removed = [
            one["DeletionTime"]
            for page in islice(pages, LISTS_MAX)
            for one in page["StackSummaries"]
            if one["StackName"] == stack and one.get("DeletionTime")
        ]
    if not removed:
        return 0.0
    past_s: float = (now - max(removed)).total_seconds()
    return max(0.0, QUEUE_NAME_S + MARGIN_S - past_s)


def wait(stack: str, lend: Lend, say: Say) -> None:
    """Wait until SQS accepts the queue names of the stack: up to 60 s after their deletion."""
    if seconds := pause_s(stack, lend, datetime.now(tz=UTC)):
        say(f"waiting {seconds:.0f} s: SQS holds names of queues back for a minute after removal")
        time.sleep(seconds)


def adopt(
    file: Path,
    declared: Collection[str],
    deployed: Collection[str],
    run: Callable[[Path], None],
    lend: Lend,
    say: Say,
) -> None:
    """Import the resources in `file` that the template declares and the stack does not have.

    `run` imports them. Its argument is a mapping file for `cdk import`.
    """
    # A resource that the template does not declare is kept in `file`. Example: a user pool, until a
    # deployment hosts the console again.
    if adopted := adoptable(file, declared, deployed, lend, say):
        say(f"taking up {len(adopted)} resources that an earlier stack has left")
        with tempfile.TemporaryDirectory() as scratch:
            mapping = Path(scratch) / "mapping.json"
            mapping.write_text(json.dumps(adopted))
            try:
                run(mapping)
            except LocalStackError as error:
                fix = f"to begin with new ones instead, remove {file}"
                raise LocalStackError(f"{error}\n{fix}") from error
    waiting = {name: one for name, one in _left(file).items() if name not in declared}
    if not waiting:
        file.unlink(missing_ok=True)
        return
    file.write_text(json.dumps(waiting, indent=2) + "\n")
    names = ", ".join(next(iter(one.values())) for one in waiting.values())
    say(f"this deployment has no place for {names}: one with the same keys takes them up again")


def bootstrapped(qualifier: str, lend: Lend) -> bool:
    """Return whether `cdk bootstrap` has run in the account with this qualifier."""
    name = f"/cdk-bootstrap/{qualifier}/version"
    try:
        with lend("ssm") as ssm:
            ssm.get_parameter(Name=name)
    except ClientError as error:
        if error.response["Error"]["Code"] == "ParameterNotFound":
            return False
        raise LocalStackError(f"Cannot ask for the parameter {name}: {error}") from error
    return True
