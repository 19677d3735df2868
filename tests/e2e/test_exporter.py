"""The exporter on its deployed stack: files do not depend on the number of invocations."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from operator import itemgetter
from typing import Any

import pytest

from localstack.processes import identify
from tests.chaos import processes
from tests.e2e.stand import Crawled, Stand, until
from tests.sites import graph

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(300)]

PAGES = 60
# Lambda stops a function that invokes itself after 16 rounds, unless loops are allowed.
CHUNKS_MIN = 18
# A chunk starts only with 60 s left. With a shorter timeout, each invocation makes one.
SHORT_S = 50
QUIET = "2001-02-03"
WORK = "exports/_work/"
KILLS = 3


@pytest.fixture(scope="module")
def crawled(stand: Stand) -> Crawled:
    """Crawl records to export, while the stack is otherwise idle."""
    links = [f"/{n}" for n in range(PAGES)]
    with graph.serve_in_background({path: graph.page(path, links) for path in links}) as site:
        done = stand.crawl(f"{site.url}/0", "--name", "exported", "--delay", "0")
    stand.wait_idle()
    return done


@pytest.fixture(scope="module")
def today(crawled: Crawled) -> str:
    """Return the crawl's day, which also has other tests' records."""
    return str(crawled.rows[0]["fetched_at"])[: len("2026-11-21")]


@pytest.fixture(scope="module")
def quiet_day(stand: Stand, crawled: Crawled) -> str:
    """Copy the crawl's records to a day of their own; return the day."""
    table = stand.outputs["PagesTable"]
    with stand.client("dynamodb") as dynamodb:
        pages = dynamodb.get_paginator("scan").paginate(
            TableName=table,
            FilterExpression="crawl = :crawl",
            ExpressionAttributeValues={":crawl": {"S": crawled.result["crawl"]}},
        )
        for item in [item for page in pages for item in page["Items"]]:
            shard = item["day"]["S"].partition("#")[2]
            copy = {**item, "day": {"S": f"{QUIET}#{shard}"}}
            dynamodb.put_item(TableName=table, Item=copy)
    return QUIET


def begin(stand: Stand, day: str) -> None:
    with stand.client("lambda") as functions:
        answer = functions.invoke(
            FunctionName=stand.outputs["ExporterFunction"], Payload=json.dumps({"day": day})
        )
        said = answer["Payload"].read()
    assert "FunctionError" not in answer, f"{said!r}\n{stand.log()}"
    assert json.loads(said) == {"days": [day]}


def invoke(stand: Stand, day: str) -> dict[str, bytes]:
    begin(stand, day)
    until(lambda: not files(stand, f"{WORK}dt={day}/"), "the export is complete", log=stand.log)
    return exported(stand, day)


def files(stand: Stand, prefix: str) -> dict[str, bytes]:
    with stand.client("s3") as s3:
        bucket = stand.outputs["Bucket"]
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        keys = [item["Key"] for page in pages for item in page.get("Contents", ())]
        found = {}
        for key in keys:
            try:
                found[key] = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
            except s3.exceptions.NoSuchKey:
                continue  # Deleted meanwhile.
        return found


def exported(stand: Stand, day: str) -> dict[str, bytes]:
    return {
        key.removeprefix("exports/"): body
        for key, body in files(stand, "exports/").items()
        if f"dt={day}" in key and not key.startswith(WORK)
    }


def rows(found: Mapping[str, bytes], day: str) -> list[dict[str, Any]]:
    """Read a day's pages in its manifest's order; the manifest must list exactly these files."""
    manifest = json.loads(found[f"manifests/dt={day}.json"])
    assert set(found) == {f"manifests/dt={day}.json", *map(itemgetter("path"), manifest["files"])}
    read: list[dict[str, Any]] = []
    counts: dict[str, int] = {}
    for file in manifest["files"]:
        body = found[file["path"]]
        assert (len(body), sha256(body).hexdigest()) == (file["bytes"], file["sha256"])
        if file["table"] == "pages":
            counts[file["format"]] = counts.get(file["format"], 0) + file["rows"]
            if file["format"] == "jsonl":
                read += map(json.loads, gzip.decompress(body).splitlines())
    assert set(counts.values()) == {manifest["rows"]["pages"]} == {len(read)}
    return read


def test_repeated_export_of_day_is_byte_identical(
    stand: Stand, crawled: Crawled, today: str
) -> None:
    once = invoke(stand, today)

    found = rows(once, today)
    mine = [row for row in found if row["crawl"] == crawled.result["crawl"]]
    recorded = [row for row in crawled.rows if row["fetched_at"].startswith(today)]
    assert sorted(mine, key=itemgetter("url")) == sorted(recorded, key=itemgetter("url"))
    assert invoke(stand, today) == once
    assert any("/parquet/" in path for path in once)


def test_long_day_export_continues_over_invocations(stand: Stand, quiet_day: str) -> None:
    whole = invoke(stand, quiet_day)
    expected = rows(whole, quiet_day)
    step = len(expected) // CHUNKS_MIN
    cut = {"ORBWEAVER_PART_ROWS_MAX": step, "ORBWEAVER_EXPORT_FORMATS": "csv,jsonl"}
    with stand.reconfigured(stand.outputs["ExporterFunction"], cut, timeout_s=SHORT_S):
        found = invoke(stand, quiet_day)

    names = [path for path in found if path.startswith("pages/jsonl/")]
    assert len(names) >= CHUNKS_MIN
    by_url = itemgetter("url")
    assert sorted(rows(found, quiet_day), key=by_url) == sorted(expected, key=by_url)
    assert len({path.rpartition("part-")[2][:2] for path in names}) > 1, "it is several units"
    assert sorted(_csv(found)) == sorted(map(by_url, expected))
    assert invoke(stand, quiet_day) == whole


def _csv(found: Mapping[str, bytes]) -> list[str]:
    read: list[str] = []
    for path, body in found.items():
        if path.startswith("pages/csv/"):
            text = (gzip.decompress(body) if path.endswith(".gz") else body).decode("utf-8-sig")
            read += [row["url"] for row in csv.DictReader(io.StringIO(text))]
    return read


def test_killed_exporter_resumes(stand: Stand, quiet_day: str) -> None:
    whole = invoke(stand, quiet_day)
    function = stand.outputs["ExporterFunction"]
    killed = 0
    with (
        stand.reconfigured(function, {"ORBWEAVER_PART_ROWS_MAX": 1}, timeout_s=SHORT_S),
        seen_again_after(stand, 5),
    ):
        begin(stand, quiet_day)
        while killed < KILLS and files(stand, f"{WORK}dt={quiet_day}/"):
            table = processes.table()
            for pid in processes.workers(table, stand.emulator.process.pid, function):
                killed += processes.kill(identify(pid))
            found = exported(stand, quiet_day)
            if f"manifests/dt={quiet_day}.json" in found:
                assert found == whole or rows(found, quiet_day)
        until(
            lambda: not files(stand, f"{WORK}dt={quiet_day}/"),
            "the export is complete",
            log=stand.log,
            timeout_s=200,
        )
        assert len(rows(exported(stand, quiet_day), quiet_day)) == len(rows(whole, quiet_day))
    assert killed
    assert invoke(stand, quiet_day) == whole


@contextmanager
def seen_again_after(stand: Stand, seconds: int) -> Iterator[None]:
    url, name = stand.outputs["ExportQueueUrl"], "VisibilityTimeout"
    with stand.client("sqs") as sqs:
        found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"]
        sqs.set_queue_attributes(QueueUrl=url, Attributes={name: str(seconds)})
        yield
        sqs.set_queue_attributes(QueueUrl=url, Attributes={name: found[name]})
