"""Access log and control paths of sites, and the ways to run a site."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.sites import bookshop, child, graph
from tests.sites.server import HOST, Answer

from .conftest import Client


async def _send_raw(url: str, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(HOST, int(url.rpartition(":")[2]))
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
    await writer.drain()
    return reader, writer


async def test_each_request_is_logged_with_its_fields(client: Client) -> None:
    before_ms = time.time_ns() // 1_000_000
    async with graph.serve({"/a": graph.page("A")}) as site:
        await client.get(site.url + "/a?b=%20c")
        await client.get(site.url + "/b", method="HEAD")
    after_ms = time.time_ns() // 1_000_000 + 1
    first, second = site.log.records()
    assert (first.method, first.path, first.status) == ("GET", "/a?b=%20c", 200)
    assert (second.method, second.path, second.status) == ("HEAD", "/b", 404)
    assert first.user_agent == "test-client"
    assert before_ms <= first.at_ms <= second.at_ms <= after_ms
    assert (first.seq, second.seq) == (1, 2)
    assert (first.in_flight, second.in_flight) == (1, 1)


async def test_log_distinguishes_connections(client: Client) -> None:
    closing = Answer(headers=(("Connection", "close"),))
    async with graph.serve({"/": graph.page("Home"), "/bye": closing}) as site:
        for path in ("/", "/", "/bye", "/"):
            await client.get(site.url + path)
    assert [record.connection for record in site.log.records()] == [1, 1, 1, 2]


async def test_requests_in_flight_are_logged_on_arrival(client: Client) -> None:
    async with graph.serve({"/slow": graph.page("Slow", delay_s=60)}) as site:
        _, writer = await _send_raw(site.url, "/slow")
        while not site.log.records():
            await client.get(site.url + "/_site/log.json")
        await client.get(site.url + "/other")
        writer.close()
        await writer.wait_closed()
    assert [(r.path, r.in_flight) for r in site.log.records()] == [("/slow", 1), ("/other", 2)]


async def test_dropped_connection_is_logged_with_status_0(client: Client) -> None:
    scripts = {"/": [Answer(dropped=True), graph.page("At last")]}
    async with graph.serve(scripts) as site:
        reader, writer = await _send_raw(site.url, "/")  # aiohttp would repeat the request
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()
        assert (await client.get(site.url + "/")).status == 200
    assert [record.status for record in site.log.records()] == [0, 200]


async def test_control_paths_read_and_reset_log(client: Client) -> None:
    async with bookshop.serve(books=30) as shop:
        for path in ("/", "/busy/1", "/style.css"):
            await client.get(shop.url + path)
        log = json.loads((await client.get(shop.url + "/_site/log.json")).body)
        newer = json.loads((await client.get(shop.url + "/_site/log.json?after=2")).body)
        assert [row["path"] for row in log] == ["/", "/busy/1", "/style.css"]
        assert newer == log[2:]
        for name, value in (
            ("expected", shop.expected().as_json()),
            ("books", shop.books()),
            ("titles", shop.titles()),
        ):
            got = await client.get(f"{shop.url}/_site/{name}.json")
            assert json.loads(got.body) == value
        assert shop.log.paths() == ["/", "/busy/1", "/style.css"]
        await client.get(shop.url + "/_site/reset")
        assert shop.log.records() == ()
        await client.get(shop.url + "/")
        assert shop.log.records()[0].seq == 4


def test_site_in_background_ends_with_block() -> None:
    with graph.serve_in_background({"/": graph.page("Home")}) as site:
        with urlopen(site.url) as answer:  # noqa: S310  # our own http URL
            assert b"Home" in answer.read()
        assert site.log.paths() == ["/"]
    with pytest.raises(OSError, match="refused"):
        urlopen(site.url)  # noqa: S310  # same


def test_site_in_child_process_has_log_and_reset() -> None:
    with child.start("bookshop", "--books", "30", "--slow-s", "0.1") as shop:
        with urlopen(shop.url + "/about/") as answer:  # noqa: S310  # our own http URL
            assert answer.status == 200
        (record,) = shop.log()
        assert (record.path, record.status) == ("/about/", 200)
        assert shop.log(after=record.seq) == ()
        here = bookshop.Bookshop(books=30).expected(shop.url)
        assert bookshop.Expected.from_json(shop.control("expected.json")) == here
        shop.reset()
        assert shop.log() == ()
    with pytest.raises(OSError, match="refused"):
        urlopen(shop.url)  # noqa: S310  # same


def test_directory_in_child_process(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<title>Here</title>")
    with (
        child.start("static", str(tmp_path)) as site,
        urlopen(site.url) as answer,  # noqa: S310  # our own http URL
    ):
        assert b"Here" in answer.read()


def test_child_failing_to_start_raises_exit_code(tmp_path: Path) -> None:
    with (
        pytest.raises(RuntimeError, match="ended with code 1"),
        child.start("static", str(tmp_path / "absent")),
    ):
        pass


def test_site_without_input_serves_until_sigterm() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.sites.bookshop", "--books", "30"],
        cwd=child.ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        served = child.Child(url, process.pid)
        for _ in range(20):  # each call would fail if the site had ended
            served.control("expected.json")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


@pytest.mark.thorough
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT, None], ids=str)
def test_child_ends_on_signal_or_closed_input(end: signal.Signals | None) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.sites.bookshop", "--books", "30"],
        cwd=child.ROOT,
        env={**os.environ, child.LEASHED: "yes"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["url"].startswith("http://127.0.0.1:")
        if end is None:
            process.stdin.close()
        else:
            process.send_signal(end)
        assert process.wait(20) == 0
