"""Least privilege: with the emulator enforcing IAM, everything works, and nothing is spare.

Every function runs under its own role. Each permission of each role is taken away by itself, and
the piece of work that needs it is seen to be denied; given back, the same work is done.

What MiniStack (1.5.33) does not ask for cannot be shown so. It is listed in `NOT_ENFORCED`, with
what asks for it on AWS.

Source: docs.aws.amazon.com/service-authorization/latest/reference/.
"""

from __future__ import annotations

import itertools
import json
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.e2e import deeds, strict
from tests.e2e.caller import JSON, Caller
from tests.e2e.deeds import Bench
from tests.e2e.grants import Roles
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
LOGS = ("logs:CreateLogStream", "logs:PutLogEvents")

GLUE = ("GetTable", "CreateTable", "UpdateTable")

# What is denied without which grant.
NEEDED: dict[Deed, tuple[str, ...]] = {
    deeds.seeds_taken_in: (
        "worker sqs:SendMessage crawl",
        "worker dynamodb:BatchGetItem table/urls",
        "worker dynamodb:PartiQLInsert table/urls",
        "worker dynamodb:GetItem table/crawls",
        "worker dynamodb:UpdateItem table/crawls",
        "worker dynamodb:BatchGetItem table/packs",
        "worker dynamodb:PutItem table/packs",
        "worker dynamodb:UpdateItem table/packs",
    ),
    deeds.express_seeds_taken_in: ("worker sqs:SendMessage express",),
    deeds.last_page_crawled: (
        "worker dynamodb:BatchGetItem table/hosts",
        "worker dynamodb:UpdateItem table/hosts",
        "worker dynamodb:PutItem table/hosts",
        "worker dynamodb:BatchWriteItem table/pages",
        "worker s3:PutObject bucket/bodies/*",
        "worker dynamodb:BatchGetItem table/crawls",
        "worker events:PutEvents event-bus/default",
    ),
    deeds.lapsed_url_claimed: ("worker dynamodb:PutItem table/urls",),
    deeds.page_crawled_again: ("worker dynamodb:BatchGetItem table/pages",),
    deeds.cancelled_pack_abandoned: ("worker dynamodb:UpdateItem table/urls",),
    deeds.budget_overrun: (
        "worker dynamodb:DeleteItem table/urls",
        "worker dynamodb:GetItem table/packs",
    ),
    deeds.bare_url_taken_in: ("worker dynamodb:PutItem table/crawls",),
    deeds.malformed_message_buried: ("worker sqs:SendMessage dead-letters",),
    deeds.paused_pack_parked: ("worker dynamodb:ConditionCheckItem table/crawls",),
    deeds.day_exported: (
        "exporter dynamodb:Query table/pages",
        "exporter dynamodb:GetItem table/crawls",
        "exporter dynamodb:Scan table/crawls",
        "exporter s3:GetObject bucket/exports/*",
        "exporter s3:PutObject bucket/exports/*",
        "exporter s3:DeleteObject bucket/exports/*",
        "exporter s3:ListBucket bucket",
        "exporter sqs:SendMessage exports",
        "exporter events:PutEvents event-bus/default",
    ),
    deeds.texts_exported: ("exporter s3:GetObject bucket/bodies/*",),
    deeds.items_exported: tuple(f"exporter glue:{action} database/orbweaver" for action in GLUE),
    deeds.seeds_posted: (
        "api sqs:SendMessage crawl",
        "api dynamodb:GetItem table/crawls",
    ),
    deeds.express_seeds_posted: ("api sqs:SendMessage express",),
    deeds.seeds_posted_for_nobody: ("api dynamodb:PutItem table/crawls",),
    deeds.seeds_read_from_a_file: ("api s3:GetObject bucket/seeds/*",),
    deeds.crawls_listed: ("api dynamodb:Scan table/crawls",),
    deeds.crawl_shown: ("api dynamodb:BatchGetItem table/crawls",),
    deeds.crawl_resumed: (
        "api dynamodb:UpdateItem table/crawls",
        "api dynamodb:Query table/packs",
        "api dynamodb:BatchWriteItem table/packs",
    ),
    deeds.records_listed: ("api dynamodb:Query table/pages",),
    deeds.url_explained: (
        "api dynamodb:BatchGetItem table/urls",
        "api dynamodb:BatchGetItem table/hosts",
        "api dynamodb:BatchGetItem table/packs",
        "api dynamodb:BatchGetItem table/pages",
    ),
    deeds.recurring_crawl_started: (
        "starter dynamodb:Scan table/crawls",
        "starter dynamodb:PutItem table/crawls",
        "starter sqs:SendMessage crawl",
    ),
    deeds.express_recurring_crawl_started: ("starter sqs:SendMessage express",),
    deeds.recurring_crawl_started_twice: (
        "starter dynamodb:GetItem table/crawls",
        "starter dynamodb:BatchGetItem table/crawls",
    ),
    deeds.webhook_told: (
        "notifier dynamodb:GetItem table/crawls",
        "notifier dynamodb:BatchGetItem table/crawls",
        "notifier secretsmanager:GetSecretValue secret:webhook-key",
    ),
    deeds.webhook_refused: ("notifier sqs:SendMessage failed-calls",),
}

# What the emulator does by itself, under no role; and who asks for it on AWS.
NOT_ENFORCED = {
    # Lambda polls queues with the role of the function, and makes no event source without these.
    # docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
    "event sources": tuple(
        f"worker sqs:{action} {queue}"
        for action in ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")
        for queue in ("seeds", "crawl", "express")
    )
    + tuple(
        f"exporter sqs:{action} exports"
        for action in ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")
    ),
    # Glue asks for the catalogue and the table beside the database.
    # docs.aws.amazon.com/glue/latest/dg/glue-specifying-resource-arns.html
    "tables of items": tuple(
        f"exporter glue:{action} {part}"
        for action in GLUE
        for part in ("catalog", "table/orbweaver/items_*")
    ),
    # Lambda writes what a function prints with the role of the function.
    # docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs.html
    "logs": tuple(
        f"{role} {action} log-group:/aws/lambda/Orbweaver-{role}:*"
        for role in ("worker", "exporter", "api", "starter", "notifier")
        for action in LOGS
    ),
    # Lambda sends what failed for good to its destination with the role of the function.
    # docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
    "on-failure destination": (
        "exporter sqs:SendMessage failures",
        "starter sqs:SendMessage failed-calls",
    ),
    # S3 says of a file that is not there that it is denied, to whoever may not list the bucket.
    # docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
    "files that are not there": ("api s3:ListBucket bucket",),
    # EventBridge Scheduler invokes targets, and sends what failed away, with the schedule's role.
    # docs.aws.amazon.com/scheduler/latest/UserGuide/setting-up.html
    "schedule": (
        "schedule lambda:InvokeFunction function:Orbweaver-exporter",
        "schedule sqs:SendMessage failures",
        "firing lambda:InvokeFunction function:Orbweaver-starter",
        "firing sqs:SendMessage failed-calls",
    ),
}


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """Deploy the stack to an emulator that enforces IAM; its event sources are off."""
    with strict.standing(tmp_path_factory.mktemp("guarded"), {"AUTH": "true"}) as stood:
        strict.switch(stood, enabled=False)
        yield stood


@pytest.fixture(scope="module")
def roles(stand: Stand) -> Roles:
    """Return the stack's roles, as deployed."""
    return Roles(stand)


@pytest.fixture(scope="module")
def records(stand: Stand, roles: Roles) -> None:
    """Have days with page records to be exported."""
    with graph.serve_in_background({"/": graph.page("One"), "/1": graph.page("Two")}) as site:
        bench = Bench(stand, site, ExitStack())
        deeds.expect_done(bench.deliver(bench.pack(bench.crawl(), "/", "/1")))
    deeds.record_days(stand)


@pytest.fixture
def bench(stand: Stand, roles: Roles, records: None) -> Iterator[Bench]:
    """Return the stack with a site that it has not seen."""
    with ExitStack() as after, graph.serve_in_background({"/": graph.page("Home")}) as site:
        yield Bench(stand, site, after)


def test_every_permission_is_accounted_for(roles: Roles) -> None:
    """Each is either shown to be needed or listed as one that the emulator does not ask for."""
    listed = [*itertools.chain(*NEEDED.values()), *itertools.chain(*NOT_ENFORCED.values())]

    assert sorted(listed) == sorted(roles.grants)


@pytest.fixture
def running(stand: Stand, roles: Roles) -> Iterator[None]:
    """Have the worker take messages by itself for the length of a test."""
    strict.switch(stand, enabled=True)
    yield
    strict.switch(stand, enabled=False)


@pytest.mark.usefixtures("running")
def test_a_whole_run_is_permitted(stand: Stand) -> None:
    """Under their own roles the functions crawl, try again, take seeds, set aside and export.

    Whatever was not permitted would end in the dead-letter queue, or not end at all.
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
        until(lambda: _stands(stand, manifest), "the day is exported", log=stand.log)

    assert names(crawled.urls("fetched"), site.url) == sorted(["/", "/busy", *links])
    assert crawled.result["retries"] == 1
    assert reply.status == 202
    assert [letter["Body"] for letter in letters] == ["{"]
    deeds.expect_done(exported)


def _stands(stand: Stand, key: str) -> bool:
    with stand.client("s3") as s3:
        found = s3.list_objects_v2(Bucket=stand.outputs["Bucket"], Prefix=key)
    return bool(found["KeyCount"])


def test_strangers_are_refused(stand: Stand) -> None:
    """Who is not known or not permitted, signs wrongly or says old words again is refused (79).

    A signature that does not hold is refused by the emulator's door, before its gateway and in
    other words than those of AWS.
    """
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
    assert stand.queued() == 0
    assert me.ask("POST", "/seeds", body).status == 202
    assert stand.take(stand.outputs["PackQueueUrl"])


def user_of(stand: Stand, action: str) -> tuple[str, str]:
    """Have a user who may do one thing; the keys."""
    name = action.rpartition(":")[2]
    statement = {"Effect": "Allow", "Action": action, "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    with stand.client("iam") as iam:
        iam.create_user(UserName=name)
        iam.put_user_policy(UserName=name, PolicyName="One", PolicyDocument=policy)
        key = iam.create_access_key(UserName=name)["AccessKey"]
    return key["AccessKeyId"], key["SecretAccessKey"]


@pytest.mark.usefixtures("running")
def test_the_emulator_does_not_ask_for_the_rest(stand: Stand, roles: Roles) -> None:
    """Messages are taken without what is listed so: what is asked for some day is `NEEDED`."""
    unasked = itertools.chain(*NOT_ENFORCED.values())
    with roles.without(*unasked), graph.serve_in_background({"/": graph.page("Home")}) as site:
        stand.send(f"{site.url}/")
        until(lambda: "/" in site.log.paths(), "the URL is asked for", log=stand.log)
        stand.wait_idle()


CASES = [(grant, deed) for deed, grants in NEEDED.items() for grant in grants]


@pytest.mark.parametrize(("grant", "deed"), CASES, ids=[grant for grant, _ in CASES])
def test_without_it_work_is_denied(bench: Bench, roles: Roles, grant: str, deed: Deed) -> None:
    """One permission less, and a piece of work fails and comes back; then the same is done."""
    act = deed(bench)
    with roles.without(grant):
        denied = act()
    done = act()

    assert denied.failed, denied.said
    assert DENIED in denied.said, denied.said
    deeds.expect_done(done)
