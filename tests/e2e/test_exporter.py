"""The exporter function on its deployed stack: the same files however it is run."""

from __future__ import annotations

import gzip
import hashlib
import json
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.stand import until
from tests.sites import graph

if TYPE_CHECKING:
    from tests.e2e.stand import Crawled, Stand

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

PAGES = 60
# Lambda halts a function that invokes itself after 16 rounds, unless its loops are allowed.
PARTS_MIN = 18
# A part is begun only with 30 s left: with no more in all, every invocation writes just one.
SHORT_S = 30
QUIET = "2001-02-03"
STATES = "exports/_work/"


@pytest.fixture(scope="module")
def crawled(stand: Stand) -> Crawled:
    """Have a crawl whose records are there to be exported, and nothing else under way."""
    links = [f"/{n}" for n in range(PAGES)]
    with graph.serve_in_background({path: graph.page(path, links) for path in links}) as site:
        done = stand.crawl(f"{site.url}/0", "--name", "exported", "--delay", "0")
    stand.wait_idle()
    return done


@pytest.fixture(scope="module")
def today(crawled: Crawled) -> str:
    """Name the day of the crawl, on which other tests have left their records too."""
    return str(crawled.rows[0]["fetched_at"])[: len("2026-11-21")]


@pytest.fixture(scope="module")
def quiet_day(stand: Stand, crawled: Crawled) -> str:
    """Copy the crawl's records to a day of their own; its name."""
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


def invoke(stand: Stand, day: str) -> dict[str, Any]:
    """Have a day exported; what the function returned."""
    with stand.client("lambda") as functions:
        answer = functions.invoke(
            FunctionName=stand.outputs["ExporterFunction"], Payload=json.dumps({"day": day})
        )
        said = answer["Payload"].read()
    assert "FunctionError" not in answer, f"{said!r}\n{stand.log()}"
    body: dict[str, Any] = json.loads(said)
    return body


def files(stand: Stand, prefix: str) -> dict[str, bytes]:
    """Download what lies in the bucket below a prefix."""
    with stand.client("s3") as s3:
        bucket = stand.outputs["Bucket"]
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        keys = [item["Key"] for page in pages for item in page.get("Contents", ())]
        return {
            key.removeprefix(prefix): s3.get_object(Bucket=bucket, Key=key)["Body"].read()
            for key in keys
        }


def exported(stand: Stand, day: str) -> dict[str, bytes]:
    """Download the files of a day."""
    return files(stand, f"exports/dt={day}/")


def lines(found: dict[str, bytes]) -> list[bytes]:
    """Read a day's rows in the order of its manifest, which must fit the files."""
    parts = json.loads(found["manifest.json"])["parts"]
    assert set(found) == {"manifest.json", *(part["name"] for part in parts)}
    read: list[bytes] = []
    for part in parts:
        body = found[part["name"]]
        assert hashlib.sha256(body).hexdigest() == part["sha256"]
        read += gzip.decompress(body).splitlines()
    return read


def test_a_day_exported_twice_is_the_same_to_the_byte(
    stand: Stand, crawled: Crawled, today: str
) -> None:
    """Files and manifest follow from the records alone; they hold what the crawl has recorded."""
    said = invoke(stand, today)
    once = exported(stand, today)
    invoke(stand, today)

    rows = [json.loads(line) for line in lines(once)]
    assert said == {"day": today, "rows": len(rows)}
    mine = [row for row in rows if row["crawl"] == crawled.result["crawl"]]
    recorded = [row for row in crawled.rows if row["fetched_at"].startswith(today)]
    assert sorted(mine, key=itemgetter("url")) == sorted(recorded, key=itemgetter("url"))
    assert exported(stand, today) == once


def test_a_day_too_long_for_one_run_goes_on_by_itself(stand: Stand, quiet_day: str) -> None:
    """Cut short after every part, the function invokes itself until the day is done.

    It takes more rounds than Lambda's recursive loop detection lets pass, which the emulator
    enforces for functions that invoke themselves.
    """
    invoke(stand, quiet_day)
    whole = exported(stand, quiet_day)
    expected = lines(whole)
    step = len(expected) // PARTS_MIN
    cut = {"ORBWEAVER_PART_ROWS_MAX": step}
    with stand.reconfigured(stand.outputs["ExporterFunction"], cut, timeout_s=SHORT_S):
        assert invoke(stand, quiet_day) == {"continued": quiet_day}
        until(
            lambda: "manifest.json" in exported(stand, quiet_day) and not files(stand, STATES),
            "the export is complete",
            log=stand.log,
        )
        found = exported(stand, quiet_day)

    assert len(found) - 1 == -(-len(expected) // step) >= PARTS_MIN
    assert lines(found) == expected
    invoke(stand, quiet_day)
    assert exported(stand, quiet_day) == whole
