"""Imports the resources that an earlier, removed stack left behind, such as its tables.

The next deployment of the same stack, account and region imports them, because new tables would
lack the earlier claims (URLs already queued) and counts. A failed import is an error with
instructions to start over. removal.py writes the file of these resources.

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
from localstack.retained import resource_exists

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from localstack.removal import Say
    from localstack.retained import Lend

    Left = dict[str, dict[str, str]]  # logical id to identifiers, in the format of `cdk import`

QUEUE_NAME_S = 60.0
# Allows for a wrong clock, and for the time between the deletion of the queues and of the stack.
MARGIN_S = 5.0
LISTS_MAX = 20


def place(stack: str, root: Path, lend: Lend) -> Path:
    """Return the file that lists resources left by a stack of this name, account and region."""
    with lend("sts") as sts:
        account, region = sts.get_caller_identity()["Account"], sts.meta.region_name
    return root / layout.LEFT.relative_to(layout.ROOT) / f"{stack}-{account}-{region}.json"


def adoptable(
    file: Path, declared: Collection[str], deployed: Collection[str], lend: Lend, say: Say
) -> Left:
    """Return the listed resources that exist, and that the template declares but no stack has."""
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
    """Return for how many seconds SQS still refuses the queue names of a removed stack."""
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
    """Wait until SQS accepts the queue names. It refuses a deleted queue's name for 60 s."""
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
    """Import left resources with `run`, which takes a mapping file of `cdk import`."""
    # A resource that the template does not declare stays in `file`, such as a user pool until a
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
    """Return whether the account was bootstrapped with a qualifier."""
    name = f"/cdk-bootstrap/{qualifier}/version"
    try:
        with lend("ssm") as ssm:
            ssm.get_parameter(Name=name)
    except ClientError as error:
        if error.response["Error"]["Code"] == "ParameterNotFound":
            return False
        raise LocalStackError(f"Cannot ask for the parameter {name}: {error}") from error
    return True
