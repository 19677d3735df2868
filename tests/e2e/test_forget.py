"""Erasure: only expiring items contain the erased URL, and a running crawl skips it."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from pyarrow import parquet as pq

from tests.e2e.stand import TABLES, Stand, until
from tests.sites import graph

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(300)]

PATH = "/people/jane-roe-1971"
WORK = "exports/_work/"
QUEUES = ("CrawlQueueUrl", "PackQueueUrl", "ExpressQueueUrl", "DeadLetterQueueUrl")


def texts_of(value: Any) -> Iterator[str]:
    """Return every text in an attribute, decompressed."""
    match value:
        case dict():
            for name, member in value.items():
                yield str(name)
                yield from texts_of(member)
        case list():
            for member in value:
                yield from texts_of(member)
        case bytes():
            try:
                yield zlib.decompress(value).decode("utf-8", "replace")
            except zlib.error:
                yield value.decode("utf-8", "replace")
        case _:
            yield str(value)


def unpacked(key: str, body: bytes) -> str:
    if key.endswith(".parquet"):
        return str(pq.read_table(io.BytesIO(body)).to_pylist())
    if body.startswith(b"\x1f\x8b"):
        body = gzip.decompress(body)
    return body.decode("utf-8", "replace")


def items(stand: Stand) -> Iterator[tuple[str, str]]:
    for table in TABLES:
        for item in stand.scan(table):
            yield f"{table} {str(item)[:200]}", "\n".join(texts_of(item))


def messages(stand: Stand) -> Iterator[tuple[str, str]]:
    """Read every visible message and put it back."""
    with stand.client("sqs") as sqs:
        for queue in QUEUES:
            found = []
            while taken := sqs.receive_message(
                QueueUrl=stand.outputs[queue], MaxNumberOfMessages=10, VisibilityTimeout=60
            ).get("Messages", []):
                found += taken
            for message in found:
                yield queue, message["Body"]
                sqs.change_message_visibility(
                    QueueUrl=stand.outputs[queue],
                    ReceiptHandle=message["ReceiptHandle"],
                    VisibilityTimeout=0,
                )


def places(stand: Stand) -> list[str]:
    files = ((key, unpacked(key, body)) for key, body in stand.files())
    everything = (*items(stand), *messages(stand), *files)
    return [place for place, text in everything if PATH in text]


def records(stand: Stand, crawl: str) -> list[dict[str, Any]]:
    lines = stand.orbweaver("pages", crawl, "--json").out.splitlines()
    return [json.loads(line) for line in lines]


def export(stand: Stand, day: str) -> None:
    """Export the day with the stack's own exporter, to its end."""
    stand.export_day(day)
    manifest = f"exports/manifests/dt={day}.json"

    def is_done() -> bool:
        present = [key for key, _ in stand.files("exports/")]
        return manifest in present and not any(WORK in key for key in present)

    until(is_done, manifest, timeout_s=120, log=stand.log)


def test_erased_url_is_found_nowhere(stand: Stand) -> None:
    pages = {
        "/": graph.page("/", [PATH, "/about"]),
        PATH: graph.page(PATH, ["/about"]),
        "/about": graph.page("/about", ["/"]),
    }
    with graph.serve_in_background(pages) as site:
        url = f"{site.url}{PATH}"
        options = ("--delay", "0", "--no-sitemaps", "--wait", "--json")
        crawl = stand.orbweaver("start", f"{site.url}/", *options).result["crawl"]
        rows = records(stand, crawl)
        assert url in {row["url"] for row in rows}
        export(stand, str(rows[0]["fetched_at"])[: len("2026-11-21")])
        with stand.client("sqs") as sqs:
            body = json.dumps({"url": url, "crawl": "nobody"})
            sqs.send_message(QueueUrl=stand.outputs["DeadLetterQueueUrl"], MessageBody=body)
        before = places(stand)
        kinds = {place.split(" ")[0].split("/")[0] for place in before}
        assert kinds >= {"UrlsTable", "PagesTable", "PacksTable", "bodies", "exports"}
        assert "DeadLetterQueueUrl" in kinds
        counted = stand.orbweaver("forget", "--url", url, "--dry-run", "--json").result
        assert counted["forgotten"]["records"] == 1
        assert len(places(stand)) == len(before)
        done = stand.orbweaver("forget", "--url", url, "--mentions", "--yes", "--json").result
        assert done["left"] == []
        assert {place.split(" ")[0] for place in places(stand)} <= {"PacksTable", *QUEUES}
        again = stand.orbweaver("forget", "--url", url, "--mentions", "--yes", "--json").result
        assert again["forgotten"] == {}
        _erase_while_running(stand, f"{site.url}/", url)
    assert done["forgotten"]["records"] == 1
    assert done["forgotten"]["dead_letters"] == 1
    left = {row["url"] for row in records(stand, crawl)}
    assert left == {f"{site.url}/", f"{site.url}/about"}


def _erase_while_running(stand: Stand, seed: str, url: str) -> None:
    """Erase a URL that waits for its host's slot. The crawl ends without a request for it."""
    options = ("--delay", "60", "--no-sitemaps", "--window", "0s", "--json")
    crawl = stand.orbweaver("start", seed, *options).result["crawl"]
    until(lambda: records(stand, crawl), "the first page", log=stand.log)
    stand.orbweaver("forget", "--url", url, "--yes", "--json")
    status = stand.orbweaver("status", crawl, "--watch", "--json").result
    assert status["state"] == "finished", stand.log()
    assert {row["url"] for row in records(stand, crawl)} == {seed, f"{seed}about"}
    assert status["reasons"]["skipped"] == {"erased": 1}
