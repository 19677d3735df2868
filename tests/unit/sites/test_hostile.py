"""Bytes of the hostile site, as a raw socket reads them.

The crawl of tests/e2e/test_hostile.py shows that each URL has its expected end. Here is only what
other bytes with the same end would hide.
"""

from __future__ import annotations

import asyncio
import gzip
import re
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import pytest

from tests.sites.hostile import codings, content, links, traps
from tests.sites.hostile.site import Hostile
from tests.sites.server import HOST

MIB = 1024 * 1024
READ_BYTES = 65_536
QUIET_S = 1.0  # a connection that is silent for this long has ended


@pytest.fixture(scope="module")
def site() -> Iterator[Hostile]:
    served = Hostile()
    with served.in_background():
        yield served
        assert not [server.faults for server in served.servers.values() if server.faults]


async def read(site: Hostile, place: str, target: str = "/", bytes_max: int = MIB) -> bytes:
    """Send a request; return the answer until its end, a silence or `bytes_max`."""
    reader, writer = await asyncio.open_connection(HOST, site.ports[place])
    host = f"127.0.0.1:{site.ports[place]}"
    writer.write(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    parts: list[bytes] = []
    try:
        while sum(map(len, parts)) < bytes_max:
            part = await asyncio.wait_for(reader.read(READ_BYTES), QUIET_S)
            if not part:
                break
            parts.append(part)
            if whole(b"".join(parts[:1]), sum(map(len, parts))):
                break
    except (TimeoutError, ConnectionResetError):
        pass
    finally:
        writer.close()
    return b"".join(parts)


def whole(start: bytes, size: int) -> bool:
    """Return True if an answer of this size with this start is complete."""
    head, end, _ = start.partition(b"\r\n\r\n")
    length = re.findall(rb"Content-Length: ([0-9]+)\r", head + b"\r")
    return bool(end) and len(length) == 1 and size == len(head) + 4 + int(length[0])


def split(said: bytes) -> tuple[bytes, bytes]:
    head, _, body = said.partition(b"\r\n\r\n")
    return head, body


async def test_large_heads_are_sent(site: Hostile) -> None:
    head, _ = split(await read(site, "main", "/heads/200-lines"))
    assert head.count(b"\r\nX: v") == 200
    assert len(await read(site, "main", "/heads/70-kb")) > 70_000
    assert b"\r\n\r\n" not in await read(site, "main", "/heads/endless", 5 * MIB)


async def test_1000_early_hints_precede_answer(site: Hostile) -> None:
    said = await read(site, "main", "/garbage/1000-hints")
    assert said.count(b"HTTP/1.1 103") == 1_000
    assert said.count(b"HTTP/1.1 200") == 1


@pytest.mark.parametrize("target", ["/endless/chunks", "/endless/no-length"])
async def test_endless_bodies_exceed_any_limit(site: Hostile, target: str) -> None:
    assert len(await read(site, "main", target, 8 * MIB)) >= 8 * MIB


@pytest.mark.parametrize("coding", codings.BOMBS)
async def test_bombs_decode_to_more_than_64_mib(site: Hostile, coding: str) -> None:
    head, body = split(await read(site, "main", f"/bombs/{coding.replace(', ', '-')}"))
    assert f"Content-Encoding: {coding}".encode() in head
    assert len(body) < 80_000
    if coding == "gzip":
        decoded = zlib.decompressobj(31).decompress(body)
        assert len(decoded) > 64 * MIB
        assert b"/bombs/seen-in-gzip" in decoded[:100]


async def test_broken_gzip_bodies_fail_to_decode(site: Hostile) -> None:
    _, members = split(await read(site, "main", "/bombs/members", 4 * MIB))
    assert members.count(b"\x1f\x8b\x08") == codings.MEMBERS
    _, body = split(await read(site, "main", "/spoilt/bad-checksum"))
    with pytest.raises(gzip.BadGzipFile):
        gzip.decompress(body)
    _, body = split(await read(site, "main", "/spoilt/cut"))
    with pytest.raises(EOFError):
        gzip.decompress(body)


async def test_page_of_a_million_links_is_complete(site: Hostile) -> None:
    said = await read(site, "main", "/many/many", 64 * MIB)
    assert said.count(b"<a href=") == links.LINKS


async def test_pages_have_extreme_shapes(site: Hostile) -> None:
    """Shapes: 50 MB in a line, 200,000 nested elements, 100,000 attributes."""
    head, body = split(await read(site, "main", "/shapes/line", 60 * MIB))
    assert len(body) == content.LINE_MIB * MIB
    assert b"\n" not in body
    assert f"Content-Length: {len(body)}".encode() in head
    assert (await read(site, "main", "/shapes/divs", 4 * MIB)).count(b"<div>") == 200_000
    assert (await read(site, "main", "/shapes/attributes", 4 * MIB)).count(b"=") >= 100_000


async def test_busy_hosts_send_their_retry_after(site: Hostile) -> None:
    dates = []
    for place in ("busy-date", "busy-past"):
        said = (await read(site, place, "/busy")).decode()
        dates.append(parsedate_to_datetime(said.partition("Retry-After: ")[2].splitlines()[0]))
    assert dates[1] < datetime.now(UTC) < dates[0]
    assert b"Retry-After: 315360000" in await read(site, "ten-years", "/busy")


@pytest.mark.parametrize("name", ["early-600", "late-600", "utf-16", "cr"])
async def test_robots_files_have_their_size_and_bytes(site: Hostile, name: str) -> None:
    _, body = split(await read(site, f"robots-{name}", "/robots.txt", 2 * MIB))
    match name:
        case "utf-16":
            assert body.startswith(b"\xff\xfeU\0")
        case "cr":
            assert b"\n" not in body
        case _:
            assert len(body) > 600 * 1000


async def test_same_content_trap_returns_equal_pages(site: Hostile) -> None:
    assert await read(site, "same", "/a/") == await read(site, "same", "/b/c/")
    assert await read(site, "lost", "/a") != await read(site, "lost", "/b")


async def test_log_records_turns_and_secret_headers(site: Hostile) -> None:
    _, writer = await asyncio.open_connection(HOST, site.ports["main"])
    writer.write(b"GET /x HTTP/1.1\r\nCookie: id=1\r\nAUTHORIZATION: b\r\n\r\n")
    await writer.drain()
    await read(site, "main", "/x")
    heard = [one for one in site.log.of("main") if one.target == "/x"]
    assert sorted(one.turn for one in heard) == [1, 2]
    assert {one.secrets for one in heard} == {(), ("authorization", "cookie")}
    writer.close()


def test_link_limit_is_below_trap_limit() -> None:
    """Otherwise a single page would be the trap."""
    assert links.LINKS_TAKEN < traps.FOLDER_URLS_MAX
