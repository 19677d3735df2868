"""The deployed stack: emulator settings and warm functions."""

from __future__ import annotations

from pathlib import Path

import pytest

from localstack import processes
from tests.e2e.stand import Stand
from tests.sites import graph

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

TABLES = ("UrlsTable", "PagesTable", "HostsTable", "CrawlsTable", "PacksTable")
LOOPING = ("WorkerFunction", "ExporterFunction")


def test_tables_expire_and_functions_may_loop(stand: Stand) -> None:
    """The emulator ignores both settings in a template."""
    with stand.client("dynamodb") as dynamodb:
        lives = [
            dynamodb.describe_time_to_live(TableName=stand.outputs[name])["TimeToLiveDescription"]
            for name in TABLES
        ]
    with stand.client("lambda") as functions:
        loops = [
            functions.get_function_recursion_config(FunctionName=stand.outputs[name])
            for name in LOOPING
        ]

    wanted = {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires_at"}
    assert lives == [wanted] * len(TABLES)
    assert [loop["RecursiveLoop"] for loop in loops] == ["Allow"] * len(LOOPING)


def workers(stand: Stand) -> set[int]:
    name = stand.outputs["WorkerFunction"].encode()
    found = set()
    for pid in processes.members(stand.emulator.process.pid):
        if b"-" + name in Path(f"/proc/{pid}/cmdline").read_bytes():
            found.add(pid)
    return found


def test_warm_workers_run_second_crawl(stand: Stand) -> None:
    links = [f"/{n}" for n in range(30)]
    warmed: list[set[int]] = []
    for name in ("warm-first", "warm-second"):
        with graph.serve_in_background({path: graph.page(path, links) for path in links}) as site:
            crawled = stand.crawl(f"{site.url}/0", "--name", name, "--delay", "0")
        assert len(crawled.urls("fetched")) == len(links)
        warmed.append(workers(stand))

    assert warmed[0]
    assert warmed[0] <= warmed[1]
