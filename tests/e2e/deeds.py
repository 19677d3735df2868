"""Pieces of work ("deeds") for single functions, each with known permissions.

A deed is prepared with all permissions. Then it can be repeated any number of times, as a queue
redelivers a message. Tests invoke the functions directly; event sources are off.
"""

from __future__ import annotations

import base64
import itertools
import json
import time
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

from orbweaver.adapters.dynamodb.table import to_item
from orbweaver.extraction.extract import Field, ItemRule, ValueKind
from orbweaver.frontier import warc
from orbweaver.frontier.backlog import with_place
from orbweaver.frontier.messages import Pack, SeedsMessage, encode
from orbweaver.model import crawl_codec
from orbweaver.model.auth import OriginAuth, login_prefix
from orbweaver.model.crawl import DEFAULT_CRAWL, Crawl, State
from orbweaver.model.item import Item
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord, day_of, page_key
from orbweaver.model.page_record import to_fields as stored_fields
from orbweaver.model.target import Prior, Target
from tests.e2e.stand import Stand
from tests.sites.graph import Graph
from tests.sites.receiver import receiving

# Time offsets of an earlier crawl and of a new one.
EARLIER_MS = 60_000
DUE = "2001-02-03T04:05:06Z"
QUIET = "2001-02-03"
TEXTS = "2001-02-04"
FOREVER_S = 2**33


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Result of one invocation: true if it failed, and its log."""

    failed: bool
    said: str


def expect_done(answer: Answer) -> None:
    assert not answer.failed, answer.said


class Bench:
    """A stack, and a site that no worker has seen before."""

    shards = 16  # Shards of a day's page records, as in the stack.

    def __init__(self, stand: Stand, site: Graph, after: ExitStack) -> None:
        """Use a stack with a site; `after` restores changes."""
        self.stand = stand
        self.site = site
        self.after = after
        self._receives: Counter[str] = Counter()

    def crawl(self, name: str | None = None, *, ago_ms: int = 0, **fields: Any) -> Crawl:
        crawl_id = f"c-{uuid.uuid4().hex}"
        at_ms = time.time_ns() // 1_000_000 - ago_ms
        crawl = Crawl(id=crawl_id, name=name or crawl_id, started_at_ms=at_ms, seeds_planned=1)
        # The seed contains the site's address, which is not public.
        crawl = replace(crawl, **{"delay_ms": 0, "seeds": (f"{self.site.url}/",), **fields})
        self.define(crawl)
        return crawl

    def define(self, crawl: Crawl) -> None:
        """Store a crawl; replaces an existing one."""
        item = to_item({"k": crawl.id, **crawl_codec.to_fields(crawl)})
        with self.stand.client("dynamodb") as dynamodb:
            dynamodb.put_item(TableName=self.stand.outputs["CrawlsTable"], Item=item)

    def record(self, day: str, **fields: Any) -> None:
        at_ms = round(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() * 1000)
        known = {"crawl": "c", "depth": 0, "outcome": Outcome.FETCHED, "reason": Reason.OK}
        record = PageRecord(url=self.site.url, fetched_at=at_ms, **{**known, **fields})
        partition, key = page_key(record, self.shards)
        item = to_item(
            {**stored_fields(record), "day": partition, "k": key, "expires_at": FOREVER_S}
        )
        with self.stand.client("dynamodb") as dynamodb:
            dynamodb.put_item(TableName=self.stand.outputs["PagesTable"], Item=item)

    def forget_default(self) -> None:
        """Remove the crawl `default` of bare URLs, so that the worker must create it."""
        key = to_item({"k": DEFAULT_CRAWL})
        with self.stand.client("dynamodb") as dynamodb:
            dynamodb.delete_item(TableName=self.stand.outputs["CrawlsTable"], Key=key)

    def seeds(self, crawl: Crawl, *paths: str) -> str:
        references = tuple(self.site.url + path for path in paths)
        return encode(
            SeedsMessage(
                id=uuid.uuid4().hex,
                crawl=crawl.id,
                at_ms=crawl.started_at_ms,
                references=references,
                planned=True,
            )
        )

    def pack(
        self, crawl: Crawl, *paths: str, prior: Prior | None = None, waited: bool = False
    ) -> str:
        """Encode claimed URLs of a crawl as a message.

        `prior` refers to a record of the run before. `waited` gives the pack a place in the site's
        backlog.
        """
        targets = tuple(Target(url=self.site.url + path, depth=0, prior=prior) for path in paths)
        pack = Pack(id=uuid.uuid4().hex, crawl=crawl.id, at_ms=crawl.started_at_ms, targets=targets)
        return encode(with_place(pack) if waited else pack)

    def deliver(self, body: str) -> Answer:
        """Deliver a message to the worker, with a receive count one higher than before."""
        self._receives[body] += 1
        received = {"ApproximateReceiveCount": str(self._receives[body])}
        record = {"messageId": "message", "body": body, "attributes": received}
        reply, answer = self._invoke("Worker", {"Records": [record]})
        return replace(answer, failed=answer.failed or reply != {"batchItemFailures": []})

    def export(self, day: str) -> Answer:
        """Export a day; pass its orders on unless another function takes them."""
        answer = self._invoke("Exporter", {"day": day})[1]
        while not answer.failed:
            orders = self.stand.take(self.stand.outputs["ExportQueueUrl"])
            if not orders:
                break
            for order in orders:
                if not answer.failed:
                    answer = self._invoke("Exporter", {"Records": [{"body": order["Body"]}]})[1]
                    # The export exists even if its tables are not registered.
                    refused = "catalogue.refused" in answer.said
                    answer = replace(answer, failed=answer.failed or refused)
        return answer

    def post(self, body: dict[str, str]) -> Answer:
        return self.ask("POST", "/seeds", body, status=202)

    def ask(
        self, method: str, path: str, body: object = None, *, status: int = 200, **query: str
    ) -> Answer:
        event = {
            "httpMethod": method,
            "path": path,
            "headers": {"Content-Type": "application/json"},
            "queryStringParameters": query,
            "requestContext": {"requestId": uuid.uuid4().hex},
            "body": None if body is None else json.dumps(body),
        }
        reply, answer = self._invoke("Api", event)
        return replace(answer, failed=answer.failed or reply["statusCode"] != status)

    def fire(self, name: str, **parts: str) -> Answer:
        """Fire a schedule, always with the same time."""
        definition = {"name": name, "seeds": [self.site.url], **parts}
        return self._invoke("Starter", {"due": DUE, "definition": definition})[1]

    def notify(self, crawl: Crawl, expected: str) -> Answer:
        """Send the completion event of a crawl as the bus does."""
        reply, answer = self._invoke("Notifier", {"detail": {"crawl": crawl.id}})
        return replace(answer, failed=answer.failed or reply != {"webhook": expected})

    def _invoke(self, part: str, event: dict[str, Any]) -> tuple[Any, Answer]:
        name = self.stand.outputs["WorkerFunction"].removesuffix("worker") + part.lower()
        with self.stand.client("lambda") as functions:
            answer = functions.invoke(FunctionName=name, Payload=json.dumps(event), LogType="Tail")
            said = answer["Payload"].read().decode()
        log = base64.b64decode(answer.get("LogResult", "")).decode(errors="replace")
        failed = "FunctionError" in answer
        return json.loads(said), Answer(failed=failed, said=f"{said}\n{log}")


Act: TypeAlias = Callable[[], Answer]


def seeds_taken_in(bench: Bench) -> Act:
    """Claim and count seeds, and send them on as a pack (batch of URLs)."""
    body = bench.seeds(bench.crawl(), "/")
    return lambda: bench.deliver(body)


def express_seeds_taken_in(bench: Bench) -> Act:
    body = bench.seeds(bench.crawl(express=True), "/")
    return lambda: bench.deliver(body)


def seeds_of_a_slow_crawl_taken_in(bench: Bench) -> Act:
    """Claim seeds of a crawl with a delay: the pack waits for its host and is taken at once."""
    body = bench.seeds(bench.crawl(delay_ms=1), "/")
    return lambda: bench.deliver(body)


def page_that_waited_crawled(bench: Bench) -> Act:
    """Fetch a page in its slot; its pack leaves the host's backlog."""
    body = bench.pack(bench.crawl(delay_ms=1, seeds_planned=2), "/", waited=True)
    return lambda: bench.deliver(body)


def last_page_crawled(bench: Bench) -> Act:
    """Fetch, record and count the only page of a crawl, which then ends."""
    crawl = bench.crawl()
    expect_done(bench.deliver(bench.seeds(crawl, "/")))
    body = bench.pack(crawl, "/")
    return lambda: bench.deliver(body)


def page_behind_login_crawled(bench: Bench) -> Act:
    """Fetch a page with a user from Secrets Manager and a password from SSM."""
    name = f"{login_prefix('Orbweaver')}{uuid.uuid4().hex}"
    with bench.stand.client("secretsmanager") as secrets, bench.stand.client("ssm") as ssm:
        secrets.create_secret(Name=name, SecretString="crawler")
        ssm.put_parameter(Name=f"/{name}", Value="password", Type="SecureString")
    login = OriginAuth(origin=bench.site.url, basic=(f"secret:{name}", f"ssm:/{name}"))

    def act() -> Answer:
        answer = bench.deliver(bench.pack(bench.crawl(auth=(login,)), "/"))
        return replace(answer, failed=answer.failed or "/" not in bench.site.log.paths())

    return act


def lapsed_url_claimed(bench: Bench) -> Act:
    """Claim a URL again whose claim by an earlier run has expired."""
    earlier = bench.crawl(ago_ms=EARLIER_MS)
    expect_done(bench.deliver(bench.seeds(earlier, "/")))
    body = bench.seeds(bench.crawl(earlier.name, window_s=0), "/")
    return lambda: bench.deliver(body)


def page_crawled_again(bench: Bench) -> Act:
    """Fetch a page again; the record of the earlier run is read first."""
    earlier = bench.crawl(ago_ms=EARLIER_MS)
    expect_done(bench.deliver(bench.pack(earlier, "/")))
    prior = Prior(crawl=earlier.id, at_ms=earlier.started_at_ms)
    body = bench.pack(bench.crawl(earlier.name, window_s=0), "/", prior=prior)
    return lambda: bench.deliver(body)


def cancelled_pack_abandoned(bench: Bench) -> Act:
    """Mark a cancelled crawl's claims as abandoned, so that the next run can claim the URLs."""
    crawl = bench.crawl(state=State.STOPPING, stop="cancelled")
    body = bench.pack(crawl, "/", "/1")
    return lambda: bench.deliver(body)


def budget_overrun(bench: Bench) -> Act:
    """Return two of three claimed URLs because the budget is one."""
    body = bench.seeds(bench.crawl(pages_max=1), "/", "/1", "/2")
    return lambda: bench.deliver(body)


def bare_url_taken_in(bench: Bench) -> Act:
    """Turn a bare URL into seeds of the crawl `default`, which is created."""
    bench.forget_default()
    return lambda: bench.deliver(bench.site.url)


def malformed_message_buried(bench: Bench) -> Act:
    return lambda: bench.deliver("{")


def paused_pack_parked(bench: Bench) -> Act:
    body = bench.pack(bench.crawl(state=State.PAUSED), "/", "/1")
    return lambda: bench.deliver(body)


def day_exported(bench: Bench) -> Act:
    return lambda: bench.export(QUIET)


def texts_exported(bench: Bench) -> Act:
    """Read a page's stored main text and export it as a row."""
    key, document = f"bodies/c/dt={TEXTS}/{uuid.uuid4().hex}.warc.gz", {"text": "One"}
    member = warc.conversion(bench.site.url, 0, document, stored=False)
    with bench.stand.client("s3") as s3:
        s3.put_object(Bucket=bench.stand.outputs["Bucket"], Key=key, Body=member)
    bench.record(TEXTS, body_key=key, text_offset=0, text_length=len(member))
    return lambda: bench.export(TEXTS)


def items_exported(bench: Bench) -> Act:
    """Register the table of items that a rule extracts, then add a column."""
    fields = (Field(name="title", where="h1"), Field(name="price", where="p", type=ValueKind.PRICE))
    rule = ItemRule(name="book", match="/", fields=fields[:1])
    crawl = bench.crawl(f"shop{uuid.uuid4().hex[:8]}", items=(rule,))
    found = (Item(table="book", place=0, fields={"title": "One"}),)
    day = f"{1970 + next(_YEARS)}-01-01"
    bench.record(day, crawl=crawl.id, items=1, extracted=found)

    def deed() -> Answer:
        bench.define(replace(crawl, items=(rule,)))
        answer = bench.export(day)
        if not answer.failed:
            bench.define(replace(crawl, items=(replace(rule, fields=fields),)))
            answer = bench.export(day)
        return answer

    return deed


_YEARS = itertools.count(1)


def seeds_posted(bench: Bench) -> Act:
    body = {"url": bench.site.url, "crawl": bench.crawl().id}
    return lambda: bench.post(body)


def express_seeds_posted(bench: Bench) -> Act:
    body = {"url": bench.site.url, "crawl": bench.crawl(express=True).id}
    return lambda: bench.post(body)


def seeds_posted_for_nobody(bench: Bench) -> Act:
    """Post seeds without a crawl; the crawl `default` is created."""
    bench.forget_default()
    return lambda: bench.post({"url": bench.site.url})


def recurring_crawl_started(bench: Bench) -> Act:
    """Fire a schedule, which begins a run of its crawl."""
    name = f"r-{uuid.uuid4().hex}"
    return lambda: bench.fire(name)


def express_recurring_crawl_started(bench: Bench) -> Act:
    name = f"r-{uuid.uuid4().hex}"
    return lambda: bench.fire(name, priority="high")


def recurring_crawl_started_twice(bench: Bench) -> Act:
    """Fire a schedule again; it finds the run that it began."""
    name = f"r-{uuid.uuid4().hex}"
    expect_done(bench.fire(name))
    return lambda: bench.fire(name)


def webhook_told(bench: Bench) -> Act:
    receiver = bench.after.enter_context(receiving())
    crawl = bench.crawl(state=State.FINISHED, webhook=receiver.url)
    return lambda: bench.notify(crawl, "delivered")


def webhook_refused(bench: Bench) -> Act:
    """Let a webhook refuse; the event goes to the failed calls."""
    receiver = bench.after.enter_context(receiving(410))
    crawl = bench.crawl(state=State.FINISHED, webhook=receiver.url)
    return lambda: bench.notify(crawl, "refused")


def seeds_read_from_a_file(bench: Bench) -> Act:
    with bench.stand.client("s3") as s3:
        bucket, lines = bench.stand.outputs["Bucket"], bench.site.url.encode()
        s3.put_object(Bucket=bucket, Key="seeds/listed", Body=lines)
    body = {"s3": "seeds/listed", "crawl": bench.crawl().id}
    return lambda: bench.post(body)


def absent_file_named(bench: Bench) -> Act:
    """Request an absent file of seeds; the answer is not found, not access denied."""
    body = {"s3": "seeds/nowhere", "crawl": bench.crawl().id}
    return lambda: bench.ask("POST", "/seeds", body, status=400)


def crawls_listed(bench: Bench) -> Act:
    return lambda: bench.ask("GET", "/crawls")


def crawl_shown(bench: Bench) -> Act:
    crawl = bench.crawl()
    return lambda: bench.ask("GET", f"/crawls/{crawl.id}")


def crawl_resumed(bench: Bench) -> Act:
    """Resume a paused crawl; its parked packs are sent."""
    crawl = bench.crawl(state=State.PAUSED)
    expect_done(bench.deliver(bench.pack(crawl, "/")))
    return lambda: bench.ask("POST", f"/crawls/{crawl.id}/resume")


def records_listed(bench: Bench) -> Act:
    crawl = bench.crawl()
    return lambda: bench.ask("GET", f"/crawls/{crawl.id}/pages")


def texts_listed(bench: Bench) -> Act:
    crawl = bench.crawl()
    stored = warc.conversion(bench.site.url, 0, {"text": "One", "markdown": "One"}, stored=False)
    key = f"bodies/{crawl.id}/dt=now/{uuid.uuid4().hex}.warc.gz"
    with bench.stand.client("s3") as s3:
        s3.put_object(Bucket=bench.stand.outputs["Bucket"], Key=key, Body=stored)
    at = {"body_key": key, "text_offset": 0, "text_length": len(stored)}
    bench.record(day_of(crawl.started_at_ms), crawl=crawl.id, **at)
    return lambda: bench.ask("GET", f"/crawls/{crawl.id}/texts")


def exports_listed(bench: Bench) -> Act:
    """List the files of a crawl's exports from their manifests."""
    crawl = bench.crawl()
    return lambda: bench.ask("GET", f"/crawls/{crawl.id}/exports")


def url_explained(bench: Bench) -> Act:
    crawl = bench.crawl(seeds=(f"{bench.site.url}/",))
    expect_done(bench.deliver(bench.seeds(crawl, "/")))
    return lambda: bench.ask("GET", "/explain", url=f"{bench.site.url}/", crawl=crawl.id)


def record_days(stand: Stand) -> None:
    """Copy two existing page records to a day of their own."""
    items = stand.scan("PagesTable")[:2]
    assert len(items) == 2
    with stand.client("dynamodb") as dynamodb:
        for item in items:
            copy = {**item, "day": {"S": f"{QUIET}#{item['day']['S'].partition('#')[2]}"}}
            dynamodb.put_item(TableName=stand.outputs["PagesTable"], Item=copy)
