"""Roles in a closed loop, without an emulator: every piece of work of every function, guarded.

The real handlers, adapters and clients work against moto; in front of every request stands what
IAM asks for it and what the function's role grants, as the template says it (tests/infra/roles.py,
which tests/infra compares with the template). So nothing may be used that is not granted, nothing
granted that is not used, and without any one permission the work is denied. What the emulator adds
is the roles as they are deployed, and whole runs: tests/e2e/test_least_privilege.py.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

import pytest

from tests.e2e import deeds
from tests.e2e.needs import ADVISORY, NEEDED, ONLY_GUARDED, USED_BY_AWS
from tests.iam.account import DENIED, Account, Functions, Here
from tests.iam.book import Book, covers
from tests.iam.deliveries import COPIED
from tests.iam.hosting import HOSTED
from tests.iam.retrying import RETRIED
from tests.infra.roles import ALLOWED, COPYING, DELIVERING, HOSTING, NOTIFYING
from tests.sites import graph

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.e2e.deeds import Act

# What a name in the template stands for.
WORDS = {
    "<FrontierCrawl.Arn>": "crawl",
    "<FrontierExpress.Arn>": "express",
    "<FrontierSeeds.Arn>": "seeds",
    "<FrontierDeadLetters.Arn>": "dead-letters",
    "<ExporterOrders.Arn>": "exports",
    "<ExporterFailures.Arn>": "failures",
    "<ExporterProgramFunction.Arn>": "function:Orbweaver-exporter",
    "<StarterProgramFunction.Arn>": "function:Orbweaver-starter",
    "<FailedCallsQueue.Arn>": "failed-calls",
    "<DeliveryQueue.Arn>": "delivery",
    "<DeliveryDeadLetters.Arn>": "delivery-letters",
    "<NotifierSecret.Id>": "secret:webhook-key",
    "<StorageBucket.Arn>": "bucket",
    **{
        f"<Storage{name.title()}.Arn>": f"table/{name}"
        for name in ("urls", "pages", "hosts", "crawls", "packs")
    },
}
PSEUDO = re.compile(r"<AWS::\w+>")
ROLE = re.compile(r"(\w+?)(?:Program|(Schedule)|(Firing))Role")
ROLES = {
    **ALLOWED,
    "NotifierProgramRole": NOTIFYING,
    "DeliveryProgramRole": DELIVERING | COPYING,
    "ConsoleProgramRole": HOSTING,
}


def word(resource: str) -> str:
    """Say what a resource of the template is called."""
    for name, called in WORDS.items():
        resource = resource.replace(name, called)
    resource = PSEUDO.sub("", resource)
    return resource.split(":", 5)[5] if resource.startswith("arn:") else resource


def role(name: str) -> str:
    """Say what a role of the template is called."""
    found = ROLE.fullmatch(name)
    assert found is not None
    return found[found.lastindex or 1].lower()


def granted() -> frozenset[str]:
    """Spell what the template grants, but for logs, which no function writes by itself."""
    roles: Mapping[str, Mapping[str, set[str]]] = ROLES
    return frozenset(
        f"{role(name)} {action} {word(resource)}"
        for name, allowed in roles.items()
        for resource, actions in allowed.items()
        for action in actions
        if not action.startswith("logs:")
    )


GRANTED = granted()
WORK: list[Mapping[Any, tuple[str, ...]]] = [NEEDED, ONLY_GUARDED, COPIED, HOSTED, RETRIED]


@pytest.fixture(scope="module")
def account(moto: str) -> Iterator[Account]:
    """Have the stack's parts in moto, whatever this module left there when it was begun before."""
    urlopen(Request(f"{moto}/moto-api/reset", method="POST"), timeout=10).close()  # noqa: S310 - moto's own address
    with ExitStack() as kept:
        yield Account(moto, kept)


@pytest.fixture(scope="module")
def functions(account: Account) -> Iterator[Functions]:
    """Have the functions in this process, each under its role."""
    with pytest.MonkeyPatch.context() as patch:
        made = Functions(account, GRANTED, patch)
        yield made
        made.close()


@pytest.fixture(scope="module")
def records(account: Account, functions: Functions) -> None:
    """Have days with page records to be exported."""
    with graph.serve_in_background({"/": graph.page("One"), "/1": graph.page("Two")}) as site:
        bench = Here(account, site, ExitStack())
        bench.functions = functions
        deeds.expect_done(bench.deliver(bench.pack(bench.crawl(), "/", "/1")))
    deeds.record_days(account)


@pytest.fixture
def bench(account: Account, functions: Functions, records: None) -> Iterator[Here]:
    """Return the functions with a site that they have not seen."""
    with ExitStack() as after, graph.serve_in_background({"/": graph.page("Home")}) as site:
        made = Here(account, site, after)
        made.functions = functions
        yield made


CASES = [(grant, deed) for work in WORK for deed, grants in work.items() for grant in grants]


@pytest.mark.parametrize(("grant", "deed"), CASES, ids=[grant for grant, _ in CASES])
def test_without_it_work_is_denied(bench: Here, grant: str, deed: Callable[[Here], Act]) -> None:
    """One permission less, and a piece of work is denied just that; then the same is done."""
    act = deed(bench)
    with bench.functions.without(grant):
        denied = act()
    refused = denied.said.partition(DENIED)[2].partition("\n")[0]
    done = act()

    assert covers(grant, refused), denied.said
    deeds.expect_done(done)


def test_roles_grant_what_is_used_and_nothing_else(bench: Here) -> None:
    """All work together uses every grant but those that AWS uses itself, and no other."""
    for deed in {deed: None for work in WORK for deed in work}:
        deeds.expect_done(deed(bench)())
    book = Book(used=bench.functions.used, granted=GRANTED)

    assert book.denied == []
    used_by_aws = {grant for grant in USED_BY_AWS if " logs:" not in grant}
    assert set(book.spare) - ADVISORY == used_by_aws
