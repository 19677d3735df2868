"""Answers of sites with a scripted answer per path."""

from __future__ import annotations

import time

from tests.sites import graph
from tests.sites.server import Answer, Asked

from .conftest import Client


async def test_sequence_is_answered_in_turn_until_reset(client: Client) -> None:
    async with graph.serve({"/": [Answer(status=503), Answer(status=429), Answer()]}) as site:
        for _ in range(2):
            statuses = [(await client.get(site.url + "/")).status for _ in range(4)]
            assert statuses == [503, 429, 200, 200]
            await client.get(site.url + "/_site/reset")


async def test_script_function_gets_request(client: Client) -> None:
    def echo(asked: Asked) -> Answer:
        return Answer(body=f"{asked.method} {asked.target} {asked.headers['X-Word']}".encode())

    async with graph.serve({"/echo": echo}) as site:
        got = await client.get(site.url + "/echo?q=1", X_Word="loom")
    assert got.body == b"GET /echo?q=1 loom"


async def test_script_of_path_and_query_wins(client: Client) -> None:
    scripts = {"/a": Answer(body=b"path"), "/a?x=1": Answer(body=b"query")}
    async with graph.serve(scripts) as site:
        bodies = [(await client.get(site.url + p)).body for p in ("/a", "/a?x=1", "/a?x=2")]
        assert bodies == [b"path", b"query", b"path"]
        assert (await client.get(site.url + "/b")).status == 404
        site.scripts["/b"] = Answer(status=204)
        assert (await client.get(site.url + "/b")).status == 204


async def test_answer_is_delayed(client: Client) -> None:
    async with graph.serve({"/": graph.page("Slow", delay_s=0.05)}) as site:
        start = time.monotonic()
        await client.get(site.url + "/")
        assert time.monotonic() - start >= 0.05


async def test_helpers_write_escaped_pages_and_robots(client: Client) -> None:
    scripts = {
        "/": graph.page("A <b> & c", ['/x?a=1&b="2"'], text="1 < 2", headers=[("X-A", "b")]),
        "/robots.txt": graph.robots("User-agent: *\nDisallow: /x\n"),
        **graph.chain(2),
        **graph.redirects(2, status=307),
    }
    async with graph.serve(scripts) as site:
        home = await client.get(site.url + "/")
        assert b"<title>A &lt;b&gt; &amp; c</title>" in home.body
        assert b'href="/x?a=1&amp;b=&quot;2&quot;"' in home.body
        assert home.headers["X-A"] == "b"
        assert b'href="/chain/1"' in (await client.get(site.url + "/chain/0")).body
        assert b"href" not in (await client.get(site.url + "/chain/2")).body
        assert (await client.get(site.url + "/chain/3")).status == 404
        hop = await client.get(site.url + "/hop/1")
        assert (hop.status, hop.headers["Location"]) == (307, "/hop/2")
        assert (await client.get(site.url + "/hop/2")).status == 200
        assert b"Disallow" in (await client.get(site.url + "/robots.txt")).body
