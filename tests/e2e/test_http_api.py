"""The HTTP API through the gateway, with requests signed like a client's."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.e2e.caller import JSON, Caller, Reply, undisturbed
from tests.e2e.stand import Stand, names, until
from tests.sites import graph

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

PROBLEM = "application/problem+json"
CHILDREN = 6


@pytest.fixture(scope="module")
def caller(stand: Stand) -> Caller:
    return Caller(stand)


@pytest.fixture
def quiet(stand: Stand) -> Iterator[None]:
    with undisturbed(stand):
        yield


def definition(site: str, **more: Any) -> dict[str, Any]:
    return {"seeds": [f"{site}/"], "politeness": {"delay": "0s", "concurrency": 4}, **more}


def finished(caller: Caller, stand: Stand, crawl_id: str) -> dict[str, Any]:
    def ended() -> dict[str, Any] | None:
        body: dict[str, Any] = caller.ask("GET", f"/crawls/{crawl_id}").body
        return body if body["crawl"]["state"] == "finished" else None

    found = until(ended, f"{crawl_id} is finished", log=stand.log)
    assert found is not None
    return found


def test_crawl_from_start_to_end(stand: Stand, caller: Caller) -> None:
    links = [f"/{number}" for number in range(CHILDREN)]
    scripts = {path: graph.page(path) for path in links}
    scripts["/"] = graph.page("Home", [*links, "/gone"])
    scripts["/gone"] = graph.page("Gone", status=404)
    with graph.serve_in_background(scripts) as site:
        started = caller.ask("POST", "/crawls", definition(site.url, name="over-http"))
        crawl_id = started.body["id"]
        ended = finished(caller, stand, crawl_id)

        assert started.status == 201
        assert started.headers["Location"] == f"crawls/{crawl_id}"
        assert ended["crawl"]["stop"] == "finished"
        assert (ended["claimed"], ended["outcomes"]["fetched"]) == (CHILDREN + 2, CHILDREN + 1)
        assert sum(ended["reasons"]["failed"].values()) == 1
        assert crawl_id in [crawl["id"] for crawl in caller.ask("GET", "/crawls").body["crawls"]]

        rows, target = [], f"/crawls/{crawl_id}/pages?limit=3"
        page = caller.ask("GET", target)
        while True:
            rows += page.body["pages"]
            if page.body["next"] is None:
                break
            page = caller.ask("GET", f"{target}&cursor={page.body['next']}")
        assert names([row["url"] for row in rows], site.url) == sorted(["/", "/gone", *links])

        told = caller.ask("GET", f"/explain?url={site.url}/gone&crawl={crawl_id}")
        assert (told.body["fate"], told.body["record"]["status"]) == ("ended", 404)
        again = caller.ask("POST", f"/crawls/{crawl_id}/retry", {"host": site.url})
        (run,) = again.body["crawls"]
        assert (again.status, run["name"]) == (201, "over-http")
        assert finished(caller, stand, run["id"])["claimed"] == 1
        assert caller.ask("POST", f"/crawls/{crawl_id}/pause").status == 409


def test_crawl_is_paused_edited_and_resumed(stand: Stand, caller: Caller) -> None:
    scripts = {f"/{number}": graph.page(f"{number}") for number in range(CHILDREN)}
    scripts["/"] = graph.page("Home", list(scripts))
    with graph.serve_in_background(scripts) as site:
        slow = definition(site.url, politeness={"delay": "2s"})
        crawl_id = caller.ask("POST", "/crawls", slow).body["id"]
        until(lambda: "/" in site.log.paths(), "the seed is asked for", log=stand.log)
        assert caller.ask("POST", f"/crawls/{crawl_id}/pause").body["state"] == "paused"
        edited = caller.ask("PATCH", f"/crawls/{crawl_id}", {"politeness": {"delay": "10ms"}})
        assert edited.status == 200
        assert caller.ask("POST", f"/crawls/{crawl_id}/resume").body["state"] == "running"

        assert finished(caller, stand, crawl_id)["outcomes"]["fetched"] == CHILDREN + 1


@pytest.mark.usefixtures("quiet")
def test_concurrent_requests_with_one_key_start_one_crawl(stand: Stand, caller: Caller) -> None:
    """Both requests return that crawl (case 80)."""
    headers = {**JSON, "Idempotency-Key": "once"}
    body = {"seeds": ["http://127.0.0.1:1/"]}

    def start(_: int) -> Reply:
        return caller.ask("POST", "/crawls", body, headers=headers)

    with ThreadPoolExecutor(2) as pool:
        replies = list(pool.map(start, range(2)))
    replies.append(start(2))

    assert sorted(reply.status for reply in replies) == [200, 200, 201]
    assert len({reply.body["id"] for reply in replies}) == 1
    sent = {message["Body"] for message in stand.take(stand.outputs["PackQueueUrl"])}
    assert len(sent) == 1


def test_posted_seeds_are_crawled(stand: Stand, caller: Caller) -> None:
    with graph.serve_in_background({f"/{n}": graph.page(f"{n}") for n in range(3)}) as site:
        with stand.client("s3") as s3:
            lines = f"# two of them\n{site.url}/1\n\n{site.url}/2\n"
            s3.put_object(Bucket=stand.outputs["Bucket"], Key="seeds/two", Body=lines.encode())
        posted = caller.ask("POST", "/seeds", {"url": f"{site.url}/0"})
        listed = caller.ask("POST", "/seeds", {"s3": "seeds/two"})

        assert (posted.status, posted.content_type) == (202, "application/json")
        assert posted.body == {"crawl": "default", "accepted": 1}
        assert (listed.status, listed.body["accepted"]) == (202, 2)
        wanted = {"/0", "/1", "/2"}
        until(lambda: wanted <= set(site.log.paths()), "the seeds are asked for", log=stand.log)
        stand.wait_idle()


GOOD = "http://127.0.0.1:1/good"


@pytest.mark.usefixtures("quiet")
def test_gateway_refusals_are_problems(stand: Stand, caller: Caller) -> None:
    """Unknown route or missing signature: 403, and no seed is queued (case 79)."""
    before = stand.queued()
    replies = [
        caller.ask("GET", "/"),
        caller.ask("GET", "/nowhere"),
        caller.ask("DELETE", "/crawls/x"),
        caller.ask("GET", "/crawls/x/pages/1"),
        caller.ask("GET", "/crawls", signed=False),
        caller.ask("POST", "/seeds", {"url": GOOD}, signed=False),
    ]

    for reply in replies:
        assert (reply.status, reply.content_type) == (403, PROBLEM)
        assert (reply.body["title"], reply.body["status"]) == ("Forbidden", 403)
    assert stand.queued() == before
