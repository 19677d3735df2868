"""A removed stack: with all that it held, or with what it held kept and taken up again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from localstack import stack
from orbweaver.cli.stack import LOCAL_CONTEXT
from tests.e2e.stand import Stand
from tests.sites import graph

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

PAGES = 5
TABLES = ("UrlsTable", "PagesTable", "HostsTable", "CrawlsTable", "PacksTable")


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Stand]:
    """Deploy a stack to an emulator that is this test's alone."""
    with stack.temporary(context=LOCAL_CONTEXT) as stood:
        yield Stand(stood, tmp_path)


def crawl(own: Stand) -> str:
    """Crawl pages with their bodies, put an export and an upload into the bucket; the id."""
    links = [f"/{n}" for n in range(PAGES)]
    with graph.serve_in_background({path: graph.page(path, links) for path in links}) as site:
        crawled = own.start(f"{site.url}/0", "--name", "left", "--delay", "0")
    assert len(crawled.urls("fetched")) == PAGES
    bucket = own.outputs["Bucket"]
    with own.client("s3") as s3:
        assert s3.list_objects_v2(Bucket=bucket, Prefix="bodies/")["KeyCount"] >= 1
        s3.put_object(Bucket=bucket, Key="exports/pages/part.jsonl", Body=b"{}")
        s3.create_multipart_upload(Bucket=bucket, Key="exports/pages/part.parquet")
    return str(crawled.result["crawl"])


def names(own: Stand) -> dict[str, list[Any]]:
    """List what an account holds, but for what CDK has there."""
    with (
        own.client("dynamodb") as dynamodb,
        own.client("s3") as s3,
        own.client("sqs") as sqs,
        own.client("lambda") as functions,
        own.client("logs") as logs,
        own.client("cloudformation") as cloudformation,
    ):
        buckets = [bucket["Name"] for bucket in s3.list_buckets()["Buckets"]]
        stacks = cloudformation.describe_stacks()["Stacks"]
        return {
            "tables": dynamodb.list_tables()["TableNames"],
            "buckets": [name for name in buckets if not name.startswith("cdk-")],
            "queues": sqs.list_queues().get("QueueUrls", []),
            "functions": functions.list_functions()["Functions"],
            "log groups": logs.describe_log_groups()["logGroups"],
            "stacks": [one["StackName"] for one in stacks if one["StackName"] != "CDKToolkit"],
        }


def test_nothing_is_left(own: Stand) -> None:
    """After a crawl with bodies and exports, with removal=destroy: nothing of any service."""
    crawl(own)
    ran = own.orbweaver("destroy", "--yes")
    assert "objects removed" in ran.err
    assert "these stay" not in ran.err
    assert {kind: found for kind, found in names(own).items() if found} == {}


@pytest.mark.long
def test_what_is_left_is_taken_up_again(own: Stand) -> None:
    """With removal=retain tables and bucket stay, protected, and are the next deployment's."""
    crawled = crawl(own)
    own.orbweaver("deploy", "-c", "removal=retain")
    with own.client("dynamodb") as dynamodb:
        tables = [own.outputs[name] for name in TABLES]
        described = [dynamodb.describe_table(TableName=name)["Table"] for name in tables]
    assert [table["DeletionProtectionEnabled"] for table in described] == [True] * len(TABLES)

    ran = own.orbweaver("destroy", "--yes", "-c", "removal=retain")
    left = names(own)
    assert sorted(left["tables"]) == sorted(tables)
    assert left["buckets"] == [own.outputs["Bucket"]]
    assert left["functions"] == left["queues"] == []
    for name in tables:
        assert f"aws dynamodb delete-table --table-name {name}" in ran.err
    assert f"aws s3 rb --force s3://{own.outputs['Bucket']}" in ran.err

    ran = own.orbweaver("deploy", "-c", "removal=retain")
    # Five tables, the bucket, and the role by which API Gateway writes logs.
    assert "taking up 7 resources" in ran.err
    assert names(own)["tables"] == left["tables"]
    assert names(own)["buckets"] == left["buckets"]
    assert own.orbweaver("status", crawled, "--json").result["claimed"] == PAGES
