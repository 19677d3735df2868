"""Messages that users send to the queue: valid URLs are crawled, others become dead letters."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

import pytest

from tests.e2e.stand import Stand, names, until
from tests.sites import graph
from tests.sites.graph import Graph

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def wait_asked(stand: Stand, site: Graph, *paths: str) -> None:
    """Wait until a site received all these requests and their URLs are settled."""
    wanted = set(paths)
    until(lambda: wanted <= set(site.log.paths()), f"{wanted} are asked for", log=stand.log)
    stand.wait_idle()


def fetched(stand: Stand, site: Graph) -> list[str]:
    ran = stand.orbweaver("pages", "default", "--json", "--outcome", "fetched")
    urls = [json.loads(line)["url"] for line in ran.out.splitlines()]
    return names([url for url in urls if url.startswith(site.url + "/")], site.url)


@contextlib.contextmanager
def held(stand: Stand) -> Iterator[None]:
    """Disable the worker for a block, as the kill switch does."""
    source = stand.outputs["SeedEventSource"]
    with stand.client("lambda") as functions:
        functions.update_event_source_mapping(UUID=source, Enabled=False)
        try:
            yield
        finally:
            functions.update_event_source_mapping(UUID=source, Enabled=True)


def test_urls_are_crawled_and_malformed_message_is_dead_lettered_alone(stand: Stand) -> None:
    malformed = '{"urls": 5}'
    scripts = {"/": graph.page("Home", ["/next"]), "/next": graph.page("Next", ["/"])}
    with graph.serve_in_background({**scripts, "/right": graph.page("Right")}) as site:
        with held(stand):  # So that one invocation gets all three.
            stand.send(f"{site.url}/", malformed, json.dumps({"url": f"{site.url}/right"}))
        wait_asked(stand, site, "/", "/next", "/right")
        letters = until(
            lambda: stand.take(stand.outputs["DeadLetterQueueUrl"]), "a dead letter", log=stand.log
        )

        assert fetched(stand, site) == ["/", "/next", "/right"]
    assert [letter["Body"] for letter in letters] == [malformed]
    reason = letters[0]["MessageAttributes"]["reason"]["StringValue"]
    assert reason.startswith("urls must be a list")
