"""The kill switch and retained settings of a deployment.

The test has its own stack with optional keys, because it switches the stack off during a crawl.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from localstack import deployed, stack
from orbweaver.cli.stack import LOCAL_CONTEXT
from tests.e2e.stand import Stand, until
from tests.sites import graph

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(400)]

# At this delay one 30-second worker cannot do all the work. Work in flight at the switch-off ends.
PAGES, DELAY = 45, "1s"
KEYS = {
    "alarm_email": "me@example.org",
    "body_retention_d": "7",
    "contact": "https://example.org/bot",
    "copy_bucket": "their-exports",
    "kms_key": "generate",
    "page_retention_d": "7",
    "webhook_secret": "generate",
    "worker_memory_mb": "512",
}


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """Deploy a stack with a receiver, a key, a webhook secret and other settings."""
    context = {**LOCAL_CONTEXT, **KEYS}
    with stack.temporary(context=context) as stood:
        yield Stand(stood, tmp_path_factory.mktemp("stand"))


def sources(stand: Stand) -> set[str]:
    with stand.client("lambda") as functions:
        found = functions.list_event_source_mappings(FunctionName=stand.outputs["WorkerFunction"])
    return {each["State"] for each in found["EventSourceMappings"]}


def resources(stand: Stand) -> dict[str, str]:
    with stand.client("cloudformation") as cloudformation:
        found = cloudformation.describe_stack_resources(StackName="Orbweaver")["StackResources"]
    return {each["LogicalResourceId"]: each["PhysicalResourceId"] for each in found}


def status(stand: Stand, crawl: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(stand.orbweaver("status", crawl, "--json").out)
    return told


def test_switch_survives_deployment_without_loss(stand: Stand) -> None:
    parts = resources(stand)
    links = [f"/{n}" for n in range(PAGES)]
    with graph.serve_in_background({path: graph.page(path, links) for path in links}) as site:
        begun = stand.orbweaver("start", f"{site.url}/0", "--delay", DELAY, "--json").result
        crawl = begun["crawl"]
        until(lambda: status(stand, crawl)["outcomes"]["fetched"] > 2, "pages are fetched")

        off = stand.orbweaver("workers", "off")
        assert "orbweaver workers on" in off.err
        assert sources(stand) == {"Disabled"}
        until(lambda: stand.in_work() == 0, "what was in work is done")
        before = status(stand, crawl)["outcomes"]["fetched"]
        assert before < PAGES

        changed = stand.orbweaver("deploy", "-c", "log_retention_d=30")
        for key, value in KEYS.items():
            assert f"{key}={value}" in changed.err
        assert "sets log_retention_d=30" in changed.err
        assert "stay off: `orbweaver workers on`" in changed.err
        assert sources(stand) == {"Disabled"}
        kept = deployed.context_of("Orbweaver", stand.environment)
        assert KEYS.items() | {("log_retention_d", "30")} <= kept.items()
        assert {name: resources(stand).get(name) for name in parts} == parts
        assert status(stand, crawl)["outcomes"]["fetched"] == before

        refused = stand.orbweaver(
            "crawl", f"{site.url}/0", "--port", str(stand.emulator.port), code=3
        )
        assert "run `orbweaver workers on` first" in refused.err

        stand.orbweaver("workers", "on")
        assert sources(stand) == {"Enabled"}
        stand.orbweaver("status", crawl, "--watch")
    ended = status(stand, crawl)
    assert (ended["state"], ended["outcomes"]["fetched"]) == ("finished", PAGES)
