"""Dead letters by command line: list by cause, redrive, purge."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.stand import Stand, names, until
from tests.sites import graph

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(300)]

CRAWL = "buried"


def causes(stand: Stand) -> dict[str, Any]:
    ran = stand.orbweaver("dlq", "list", "--json")
    found = [json.loads(line) for line in ran.out.splitlines()]
    return {group["cause"]: group for group in found if group["type"] == "cause"}


def letters(stand: Stand) -> int:
    """Count the dead letters without receiving them, which takes seconds."""
    name = "ApproximateNumberOfMessages"
    with stand.client("sqs") as sqs:
        found = sqs.get_queue_attributes(
            QueueUrl=stand.outputs["DeadLetterQueueUrl"], AttributeNames=[name]
        )
    return int(found["Attributes"][name])


def test_dead_letters_are_redriven_or_purged(stand: Stand) -> None:
    links = ["/1", "/2", "/3"]
    scripts = {path: graph.page("Linked") for path in [*links, "/late"]}
    with graph.serve_in_background({**scripts, "/": graph.page("Home", links)}) as site:
        early = json.dumps({"url": f"{site.url}/late?key=hunter2", "crawl": CRAWL})
        stand.send('{"urls": 5}', early)
        until(lambda: letters(stand) == 2, "two dead letters", log=stand.log)
        found = causes(stand)
        unknown = found.pop("unknown crawl")
        (malformed,) = found.values()
        assert malformed["sample"]["body"] == "{urls: number}"
        assert (unknown["letters"], unknown["sample"]["crawl"]) == (1, CRAWL)
        told = stand.orbweaver("dlq", "show", unknown["sample"]["id"], "--json").out
        assert json.loads(told)["urls"] == [f"{site.url}/late?…"]
        assert "hunter2" not in told

        ran = stand.orbweaver("dlq", "redrive", "--all", "--json")
        assert ran.result["sent"] == 0
        assert ran.result["skipped"] == {"malformed": 1, "unknown crawl": 1}

        started = stand.orbweaver(
            "start", f"{site.url}/", "--id", CRAWL, "--name", CRAWL, "--json", "--delay", "2s"
        )
        assert started.result["crawl"] == CRAWL
        stand.orbweaver("pause", CRAWL)  # So that the crawl exists during the redrive.
        ran = stand.orbweaver("dlq", "redrive", "--reason", "unknown crawl", "--json")
        assert ran.result["sent"] == 1
        stand.orbweaver("resume", CRAWL)
        status = stand.orbweaver("status", CRAWL, "--watch", "--json").result
        assert (status["state"], status["stop"]) == ("finished", "finished")
        pages = stand.orbweaver("pages", CRAWL, "--json", "--outcome", "fetched").out
        urls = [json.loads(line)["url"] for line in pages.splitlines()]
        assert names(urls, site.url) == ["/", *links, "/late?key=hunter2"]

    assert letters(stand) == 1
    assert "give --yes" in stand.orbweaver("dlq", "purge", code=2).err
    assert "1 dead letter deleted" in stand.orbweaver("dlq", "purge", "--yes").out
    assert letters(stand) == 0
