"""A stack whose functions run under their roles: deployed as a user does it, then restricted.

`orbweaver.adapters.aws.permissions` records the functions' requests at their clients. At the end
they are compared with the roles' grants. `ORBWEAVER_BOOKS` names the folder that receives them for
the comparison over all stacks (tests/iam/__main__.py).
"""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from localstack import stack
from localstack.emulator import Emulator
from orbweaver.cli.stack import LOCAL_CONTEXT
from tests.e2e.grants import Roles
from tests.e2e.stand import Stand, until
from tests.iam import book

ENFORCING = Path(__file__).with_name("enforcing")
DENIED = "AccessDenied"
FILE, BOOKS = "ORBWEAVER_PERMISSIONS_FILE", "ORBWEAVER_BOOKS"


@contextmanager
def standing(folder: Path, context: Mapping[str, str] | None = None) -> Iterator[Stand]:
    """Deploy a stack for a block in which no request may be denied."""
    file = folder / "permissions.jsonl"
    settings = {"PYTHONPATH": str(ENFORCING), FILE: str(file)}
    with stack.temporary(context={**LOCAL_CONTEXT, **(context or {})}, settings=settings) as stood:
        stand = Stand(stood, folder)
        _enforce(stood.emulator)
        roles = Roles(stand)
        yield stand
        keep(roles, file)
        log = stood.emulator.log.read_text(errors="replace")
        denied = [line for line in log.splitlines() if DENIED in line]
        assert not denied, "\n".join(denied[:5])


def keep(roles: Roles, file: Path) -> None:
    """Compare used permissions with grants, and store both for the comparison over all stacks."""
    found = book.Book(used=book.read_uses(file, roles.word), granted=roles.grants)
    if BOOKS in os.environ:
        folder = Path(os.environ[BOOKS])
        folder.mkdir(parents=True, exist_ok=True)
        book.save(found, folder / f"{uuid4().hex}.json")
    assert found.denied == [], "used, and not granted"


def _enforce(emulator: Emulator) -> None:
    os.kill(emulator.process.pid, signal.SIGUSR2)
    until(lambda: _auth(emulator) == "enabled", "IAM is enforced")


def _auth(emulator: Emulator) -> str:
    with urllib.request.urlopen(f"{emulator.endpoint_url}/_ministack/health") as answer:  # noqa: S310 - on this machine
        return str(json.load(answer).get("auth"))
