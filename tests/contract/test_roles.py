"""IAM roles without an emulator: every function's work runs against moto behind a permission check.

The check compares each request with the grants in tests/infra/roles.py, which tests/infra compares
with the template. Each used permission must be granted, and each granted one used. Work without any
one permission is denied. tests/e2e/test_least_privilege.py covers deployed roles and whole runs.
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

# Value of a name in the template.
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
    for name, called in WORDS.items():
        resource = resource.replace(name, called)
    resource = PSEUDO.sub("", resource)
    return resource.split(":", 5)[5] if resource.startswith("arn:") else resource


def role(name: str) -> str:
    found = ROLE.fullmatch(name)
    assert found is not None
    return found[found.lastindex or 1].lower()


def granted() -> frozenset[str]:
    """Return the template's grants, except for logs, which no function writes itself."""
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
    """Create the stack's parts in moto; anything that an earlier run left is removed."""
    urlopen(Request(f"{moto}/moto-api/reset", method="POST"), timeout=10).close()  # noqa: S310 - moto's own address
    with ExitStack() as kept:
        yield Account(moto, kept)


@pytest.fixture(scope="module")
def functions(account: Account) -> Iterator[Functions]:
    with pytest.MonkeyPatch.context() as patch:
        made = Functions(account, GRANTED, patch)
        yield made
        made.close()


@pytest.fixture(scope="module")
def records(account: Account, functions: Functions) -> None:
    with graph.serve_in_background({"/": graph.page("One"), "/1": graph.page("Two")}) as site:
        bench = Here(account, site, ExitStack())
        bench.functions = functions
        deeds.expect_done(bench.deliver(bench.pack(bench.crawl(), "/", "/1")))
    deeds.record_days(account)


@pytest.fixture
def bench(account: Account, functions: Functions, records: None) -> Iterator[Here]:
    with ExitStack() as after, graph.serve_in_background({"/": graph.page("Home")}) as site:
        made = Here(account, site, after)
        made.functions = functions
        yield made


CASES = [(grant, deed) for work in WORK for deed, grants in work.items() for grant in grants]


@pytest.mark.long
@pytest.mark.parametrize(("grant", "deed"), CASES, ids=[grant for grant, _ in CASES])
def test_work_without_one_permission_is_denied(
    bench: Here, grant: str, deed: Callable[[Here], Act]
) -> None:
    act = deed(bench)
    with bench.functions.without(grant):
        denied = act()
    refused = denied.said.partition(DENIED)[2].partition("\n")[0]
    done = act()

    assert covers(grant, refused), denied.said
    deeds.expect_done(done)


def test_roles_grant_exactly_used_permissions(bench: Here) -> None:
    """Grants that AWS itself uses are exempt."""
    for deed in {deed: None for work in WORK for deed in work}:
        deeds.expect_done(deed(bench)())
    book = Book(used=bench.functions.used, granted=GRANTED)

    assert book.denied == []
    used_by_aws = {grant for grant in USED_BY_AWS if " logs:" not in grant}
    assert set(book.spare) - ADVISORY == used_by_aws
