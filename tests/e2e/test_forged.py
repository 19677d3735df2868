"""`sqs:SendMessage` on the seed queue permits nothing but seeds.

The emulator enforces IAM. A user with that one permission sends 1,000 forged bodies in batches of
ten and cannot send to the queues of packs (batches of URLs). The tables show the result.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from botocore.exceptions import ClientError

from localstack import cdk
from orbweaver.adapters.dynamodb.table import to_item
from orbweaver.frontier.messages import child_id
from orbweaver.model import crawl_codec
from orbweaver.model.crawl import default_crawl
from tests.e2e import strict
from tests.e2e.grants import Roles
from tests.e2e.stand import Stand, until
from tests.sites import graph
from tests.unit.forged import Forged, Forger, Victim

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(600)]

BODIES = 1_000
BUDGET = 12
CRAWL = "victim"
PAGES = ["/1", "/2", "/3"]
CALL_BYTES_MAX = 900_000
# The emulator's action names. AWS checks the single action in both cases.
ACTIONS = ["sqs:SendMessage", "sqs:SendMessageBatch"]


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with strict.standing(tmp_path_factory.mktemp("forged"), {"AUTH": "true"}) as stood:
        Roles(stood)
        yield stood


class Dropper:
    """A user with permission to send to the seed queue."""

    def __init__(self, stand: Stand) -> None:
        self._stand = stand
        with stand.client("sqs") as sqs:
            found = sqs.get_queue_attributes(
                QueueUrl=stand.outputs["CrawlQueueUrl"], AttributeNames=["QueueArn"]
            )
        statement = {
            "Effect": "Allow",
            "Action": ACTIONS,
            "Resource": found["Attributes"]["QueueArn"],
        }
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        with stand.client("iam") as iam:
            iam.create_user(UserName="dropper")
            iam.put_user_policy(UserName="dropper", PolicyName="One", PolicyDocument=policy)
            key = iam.create_access_key(UserName="dropper")["AccessKey"]
        self._environment = stand.environment | {
            "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
        }

    def send(self, *bodies: str, queue: str = "CrawlQueueUrl") -> int:
        """Send bodies; return the number of accepted ones (SQS refuses some characters)."""
        taken = 0
        with cdk.client("sqs", self._environment) as sqs:
            for some in _calls(bodies):
                entries = [{"Id": str(n), "MessageBody": body} for n, body in enumerate(some)]
                url = self._stand.outputs[queue]
                answer = sqs.send_message_batch(QueueUrl=url, Entries=entries)
                taken += len(answer.get("Successful", ()))
        return taken


def _calls(bodies: tuple[str, ...]) -> Iterator[list[str]]:
    some: list[str] = []
    for body in bodies:
        if len(some) == 10 or sum(len(one.encode()) for one in [*some, body]) > CALL_BYTES_MAX:
            yield some
            some = []
        some.append(body)
    if some:
        yield some


def test_sender_of_seeds_can_only_add_seeds(stand: Stand) -> None:
    """1,000 forged bodies and a redrive of all dead letters add only seeds.

    They target a queued and a running crawl, whose packs, state, budget, scope and claims must not
    change. The crawl `default` receives bare URLs.
    """
    with (
        graph.serve_in_background({}) as outside,
        graph.serve_in_background({"/": graph.page("Home", PAGES)}) as inside,
    ):
        seeds = child_id(CRAWL, 0)
        packs = (seeds, child_id(seeds, 0), child_id(child_id(seeds, 0), 0))
        victim = Victim(crawl=CRAWL, inside=inside.url, outside=outside.url, packs=packs)
        forged = list(Forger(7, victim).bodies(BODIES))
        away = graph.page("Away", status=302, headers=(("Location", f"{outside.url}/widened"),))
        inside.scripts |= {
            url.removeprefix(inside.url): away
            for one in forged
            for _, url in one.seeds
            if "/lead/" in url
        }
        _have_crawls(stand, inside.url)

        _send(stand, forged)
        _take_seeds(stand)
        assert stand.scan("UrlsTable") == []
        assert stand.scan("PacksTable") == []
        redriven = stand.orbweaver(
            *("dlq", "redrive", "--all", "--malformed", "--rate", "500", "--json")
        )
        assert redriven.result["sent"] > BODIES / 3
        _take_seeds(stand)
        assert stand.scan("UrlsTable") == []
        strict.switch(stand, enabled=True)
        until(lambda: stand.queued() == 0, "all is done", timeout_s=300, log=stand.log)
        ended = stand.orbweaver("status", CRAWL, "--json").result

    claimed = {(item["crawl"]["S"], item["url"]["S"]) for item in stand.scan("UrlsTable")}
    allowed = {seed for one in forged for seed in one.seeds}
    own = {(CRAWL, inside.url + path) for path in ("/", *PAGES)}
    assert claimed <= allowed | own
    assert len(claimed) > BUDGET
    assert ended["state"] == "finished"
    assert ended["claimed"] == sum(ended["outcomes"].values()) == BUDGET
    asked = {path for path in inside.log.paths() + outside.log.paths() if path != "/robots.txt"}
    urls = {url.removeprefix(inside.url).removeprefix(outside.url) for _, url in claimed}
    assert asked <= urls


def _have_crawls(stand: Stand, url: str) -> None:
    """Create both crawls, the named one queued, while no worker runs."""
    strict.switch(stand, enabled=False)
    bare = replace(default_crawl(time.time_ns() // 1_000_000), delay_ms=0, concurrency=16)
    item = to_item({"k": bare.id, **crawl_codec.to_fields(bare)})
    with stand.client("dynamodb") as dynamodb:
        dynamodb.put_item(TableName=stand.outputs["CrawlsTable"], Item=item)
    options = ("--max-pages", str(BUDGET), "--delay", "0", "--exclude", "/private/")
    stand.orbweaver("start", f"{url}/", "--name", CRAWL, "--id", CRAWL, *options)


def _send(stand: Stand, forged: Sequence[Forged]) -> None:
    """Send all bodies as a user with that permission only."""
    dropper = Dropper(stand)
    for queue in ("PackQueueUrl", "ExpressQueueUrl", "DeadLetterQueueUrl"):
        with pytest.raises(ClientError, match="AccessDenied"):
            dropper.send(forged[0].body, queue=queue)
    assert dropper.send(*(one.body for one in forged)) == BODIES


def _take_seeds(stand: Stand) -> None:
    """Let the worker process the seeds, but not the packs that they cause."""
    with stand.client("lambda") as functions:
        source = stand.outputs["SeedEventSource"]
        functions.update_event_source_mapping(UUID=source, Enabled=True)
        until(lambda: not _waiting(stand), "seeds are taken", timeout_s=120, log=stand.log)
        functions.update_event_source_mapping(UUID=source, Enabled=False)


def _waiting(stand: Stand) -> int:
    names = [f"ApproximateNumberOfMessages{name}" for name in ("", "NotVisible")]
    with stand.client("sqs") as sqs:
        found = sqs.get_queue_attributes(
            QueueUrl=stand.outputs["CrawlQueueUrl"], AttributeNames=names
        )["Attributes"]
    return sum(int(found[name]) for name in names)
