"""Removed stacks: with all data, or with data that stays and that a new stack adopts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from localstack import stack
from orbweaver.cli.stack import LOCAL_CONTEXT
from tests.e2e.stand import TABLES, Stand
from tests.sites import graph

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(600)]

PAGES = 5


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Stand]:
    with stack.temporary(context=LOCAL_CONTEXT) as stood:
        yield Stand(stood, tmp_path)


def crawl(own: Stand) -> str:
    """Crawl pages with bodies, add an export and an upload; return the crawl id."""
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
    """List the account's resources, except CDK's own."""
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


def test_destroyed_stack_leaves_nothing(own: Stand) -> None:
    crawl(own)
    ran = own.orbweaver("destroy", "--yes")
    assert "objects removed" in ran.err
    assert "these stay" not in ran.err
    assert {kind: found for kind, found in names(own).items() if found} == {}


def test_retained_resources_are_adopted_by_next_deployment(own: Stand) -> None:
    crawled = crawl(own)
    own.orbweaver("deploy", "-c", "removal=retain")
    tables = [own.outputs[name] for name in TABLES]

    ran = own.orbweaver("destroy", "--yes", "-c", "removal=retain")
    left = names(own)
    assert sorted(left["tables"]) == sorted(tables)
    assert left["buckets"] == [own.outputs["Bucket"]]
    assert left["functions"] == left["queues"] == []
    for name in tables:
        assert f"aws dynamodb delete-table --table-name {name}" in ran.err
    assert f"aws s3 rb --force s3://{own.outputs['Bucket']}" in ran.err

    ran = own.orbweaver("deploy", "-c", "removal=retain")
    # Five tables, the bucket, and the role that API Gateway uses to write logs.
    assert "taking up 7 resources" in ran.err
    assert names(own)["tables"] == left["tables"]
    assert names(own)["buckets"] == left["buckets"]
    assert own.orbweaver("status", crawled, "--json").result["claimed"] == PAGES
