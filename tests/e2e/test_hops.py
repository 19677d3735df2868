"""Chains of more than 16 invocations: a crawl's worker feeds the queue that invokes it.

By default, Lambda stops a function after about 16 invocations in one chain of requests. The trace
header passes from an invocation to its messages, so invocations through queues count. MiniStack
(1.5.33) counts direct invocations only; `lineage/` adds the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e import enforced, strict
from tests.e2e.grants import Roles
from tests.e2e.stand import Stand, names, until
from tests.sites import graph

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(300)]

LINEAGE = Path(__file__).with_name("lineage")
LAMBDA_MAX = 16
LINKS = 40
REQUEUES_MIN = 30
BLOCK_S = 6
DEEP = ("--max-depth", str(LINKS), "--delay", "0")
CHAIN = [f"/chain/{n}" for n in range(LINKS + 1)]


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """Deploy the stack to an emulator that counts invocations and shortens delays."""
    folder = tmp_path_factory.mktemp("hops")
    file = folder / "permissions.jsonl"
    settings = {"PYTHONPATH": str(LINEAGE), "AUTH": "true", enforced.FILE: str(file)}
    with strict.standing(folder, settings) as stood:
        roles = Roles(stood)
        yield stood
        enforced.keep(roles, file)


@contextmanager
def loops(stand: Stand, wanted: str) -> Iterator[None]:
    name = stand.outputs["WorkerFunction"]
    with stand.client("lambda") as functions:
        before = functions.get_function_recursion_config(FunctionName=name)["RecursiveLoop"]
        functions.put_function_recursion_config(FunctionName=name, RecursiveLoop=wanted)
        try:
            yield
        finally:
            functions.put_function_recursion_config(FunctionName=name, RecursiveLoop=before)


def depths(stand: Stand) -> list[int]:
    """Return each worker invocation's depth in its chain, in order."""
    text = stand.emulator.log.read_text()
    return [int(depth) for depth in re.findall(r"depth (\d+)$", text, re.MULTILINE)]


def test_chain_of_forty_links_is_followed_to_end(stand: Stand) -> None:
    with stand.client("lambda") as functions:
        found = functions.get_function_recursion_config(
            FunctionName=stand.outputs["WorkerFunction"]
        )
    assert found["RecursiveLoop"] == "Allow"

    with graph.serve_in_background(graph.chain(LINKS)) as site:
        crawled = stand.start(site.url + CHAIN[0], "--name", "chain", *DEEP)

    assert names(crawled.urls("fetched"), site.url) == sorted(CHAIN)
    assert max(depths(stand)) > LINKS


def test_deferred_url_is_crawled_after_many_hops(stand: Stand) -> None:
    """Its host asks for a long pause.

    The queue shortens delays to a twentieth, so the pack (batch of URLs) returns far too early.
    Each return is one more invocation of the chain, and the URL is not requested before the pause
    ends.
    """
    busy = graph.page("Busy", status=429, headers=(("Retry-After", str(BLOCK_S)),))
    before = len(depths(stand))
    with graph.serve_in_background({"/": [busy, graph.page("Home")]}) as site:
        crawled = stand.start(f"{site.url}/", "--name", "put-off", "--delay", "0")
        asked = [record for record in site.log.records() if record.path == "/"]

    assert names(crawled.urls("fetched"), site.url) == ["/"]
    assert asked[1].at_ms - asked[0].at_ms >= BLOCK_S * 1_000
    assert len(asked) == 2
    assert max(depths(stand)[before:]) > REQUEUES_MIN


def test_terminated_loop_halts_crawl_until_redrive(stand: Stand) -> None:
    """With Lambda's default the chain ends after 16 invocations with an intact dead letter.

    With loops allowed, its redrive finishes the crawl.
    """
    with graph.serve_in_background(graph.chain(LINKS)) as site:
        with loops(stand, "Terminate"):
            words = ("start", site.url + CHAIN[0], "--name", "halted", *DEEP, "--json")
            crawl = stand.orbweaver(*words).result["crawl"]
            dead = stand.outputs["DeadLetterQueueUrl"]
            (letter,) = until(lambda: stand.take(dead), "a dead letter", log=stand.log)
            # The first invocation takes the seed, each later one a page.
            asked = [path for path in site.log.paths() if path != "/robots.txt"]
            assert asked == CHAIN[: LAMBDA_MAX - 1]
        stand.send(letter["Body"], queue="PackQueueUrl")
        ended = stand.orbweaver("status", crawl, "--watch", "--json")

    assert ended.result["state"] == "finished"
    assert ended.result["outcomes"]["fetched"] == LINKS + 1
