"""Least privilege: with IAM enforced by the emulator, everything works, and no grant is unused.

Every function runs under its own role. Without any one permission, the deed (piece of work, see
deeds.py) that needs it is denied; with it, the same deed succeeds. `NOT_ENFORCED` lists permissions
that MiniStack (1.5.33) does not check, with their users on AWS. Source:
docs.aws.amazon.com/service-authorization/latest/reference/.
"""

from __future__ import annotations

import itertools
import json
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.e2e import deeds, enforced, strict
from tests.e2e.caller import JSON, Caller
from tests.e2e.deeds import Bench
from tests.e2e.grants import Roles
from tests.e2e.needs import ADVISORY, NEEDED, NOT_ENFORCED, ONLY_IN_CONTRACT
from tests.e2e.stand import names, until
from tests.sites import graph

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.e2e.deeds import Act
    from tests.e2e.stand import Stand

    Deed = Callable[[Bench], Act]

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(300)]

DENIED = "AccessDenied"
PAGES = 20


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """Deploy the stack to an emulator that enforces IAM, with event sources off."""
    folder = tmp_path_factory.mktemp("guarded")
    file = folder / "permissions.jsonl"
    settings = {"AUTH": "true", enforced.FILE: str(file)}
    with strict.standing(folder, settings) as stood:
        strict.switch(stood, enabled=False)
        yield stood
        enforced.keep(Roles(stood), file)


@pytest.fixture(scope="module")
def roles(stand: Stand) -> Roles:
    return Roles(stand)


@pytest.fixture(scope="module")
def records(stand: Stand, roles: Roles) -> None:
    with graph.serve_in_background({"/": graph.page("One"), "/1": graph.page("Two")}) as site:
        bench = Bench(stand, site, ExitStack())
        deeds.expect_done(bench.deliver(bench.pack(bench.crawl(), "/", "/1")))
    deeds.record_days(stand)


@pytest.fixture
def bench(stand: Stand, roles: Roles, records: None) -> Iterator[Bench]:
    with ExitStack() as after, graph.serve_in_background({"/": graph.page("Home")}) as site:
        yield Bench(stand, site, after)


def test_every_permission_is_needed_or_listed_as_unchecked(roles: Roles) -> None:
    listed = [*itertools.chain(*NEEDED.values()), *itertools.chain(*NOT_ENFORCED.values())]

    assert sorted(listed) == sorted(roles.grants - ADVISORY - ONLY_IN_CONTRACT)


@pytest.fixture
def running(stand: Stand, roles: Roles) -> Iterator[None]:
    strict.switch(stand, enabled=True)
    yield
    strict.switch(stand, enabled=False)


@pytest.mark.usefixtures("running")
def test_whole_run_is_permitted(stand: Stand) -> None:
    """Crawl, retry, seeds, dead letters and export.

    A denied request would cause a dead letter or no end.
    """
    links = [f"/{n}" for n in range(PAGES)]
    scripts = {path: graph.page(path, links) for path in links}
    scripts |= {"/": graph.page("Home", [*links, "/busy"]), "/posted": graph.page("Posted")}
    busy = [graph.page("Busy", status=503, headers=(("Retry-After", "1"),)), graph.page("Back")]
    with graph.serve_in_background({**scripts, "/busy": busy}) as site:
        crawled = stand.start(f"{site.url}/", "--name", "guarded", "--delay", "0.01")
        reply = Caller(stand).ask("POST", "/seeds", {"url": f"{site.url}/posted"})
        stand.send("{")
        until(lambda: "/posted" in site.log.paths(), "what was posted", log=stand.log)
        stand.wait_idle()
        letters = stand.take(stand.outputs["DeadLetterQueueUrl"])
        day = str(crawled.rows[0]["fetched_at"])[: len(deeds.QUIET)]
        exported = Bench(stand, site, ExitStack()).export(day)
        manifest = f"exports/manifests/dt={day}.json"
        until(lambda: dict(stand.files(manifest)), "the day is exported", log=stand.log)

    assert names(crawled.urls("fetched"), site.url) == sorted(["/", "/busy", *links])
    assert crawled.result["retries"] == 1
    assert reply.status == 202
    assert [letter["Body"] for letter in letters] == ["{"]
    deeds.expect_done(exported)


def test_unauthorised_requests_are_refused(stand: Stand) -> None:
    """Unknown, unauthorised, wrongly signed and replayed requests (79).

    The emulator refuses a bad signature before its gateway, with another message than AWS.
    """
    before = stand.queued()
    body = {"url": "http://127.0.0.1:1/"}
    text = json.dumps(body).encode()
    keys = user_of(stand, "execute-api:Invoke")
    me, idle = Caller(stand, keys), Caller(stand, user_of(stand, "execute-api:ManageConnections"))
    signed = me.signed("POST", f"{me.url}/seeds", text, JSON)
    old = signed | {"X-Amz-Date": "20260101T000000Z"}
    unknown, wrong = Caller(stand, ("AKIA" + "X" * 16, "x")), Caller(stand, (keys[0], "wrong"))
    replies = {
        "no signature": me.ask("POST", "/seeds", body, signed=False),
        "no signature of that kind": me.send(
            "POST", "/seeds", text, signed | {"Authorization": "Bearer x"}
        ),
        "a key that nobody has": unknown.ask("POST", "/seeds", body),
        "a wrong secret": wrong.ask("POST", "/seeds", body),
        "another body": me.send("POST", "/seeds", text.replace(b":1/", b":2/"), signed),
        "another time": me.send("POST", "/seeds", text, old),
        "a user who may do something else": idle.ask("POST", "/seeds", body),
    }

    assert {case: reply.status for case, reply in replies.items()} == dict.fromkeys(replies, 403)
    assert replies["no signature"].content_type == "application/problem+json"
    assert stand.queued() == before
    assert me.ask("POST", "/seeds", body).status == 202
    assert stand.take(stand.outputs["PackQueueUrl"])


def user_of(stand: Stand, action: str) -> tuple[str, str]:
    name = action.rpartition(":")[2]
    statement = {"Effect": "Allow", "Action": action, "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    with stand.client("iam") as iam:
        iam.create_user(UserName=name)
        iam.put_user_policy(UserName=name, PolicyName="One", PolicyDocument=policy)
        key = iam.create_access_key(UserName=name)["AccessKey"]
    return key["AccessKeyId"], key["SecretAccessKey"]


@pytest.mark.usefixtures("running")
def test_unchecked_permissions_are_still_unchecked(stand: Stand, roles: Roles) -> None:
    """Once the emulator checks a permission, it belongs in `NEEDED`."""
    unasked = itertools.chain(*NOT_ENFORCED.values())
    with roles.without(*unasked), graph.serve_in_background({"/": graph.page("Home")}) as site:
        stand.send(f"{site.url}/")
        until(lambda: "/" in site.log.paths(), "the URL is asked for", log=stand.log)
        stand.wait_idle()


CASES = [(grant, deed) for deed, grants in NEEDED.items() for grant in grants]


@pytest.mark.parametrize(("grant", "deed"), CASES, ids=[grant for grant, _ in CASES])
def test_work_without_one_permission_is_denied(
    bench: Bench, roles: Roles, grant: str, deed: Deed
) -> None:
    act = deed(bench)
    with roles.without(grant):
        denied = act()
    done = act()

    assert denied.failed, denied.said
    assert DENIED in denied.said, denied.said
    deeds.expect_done(done)
