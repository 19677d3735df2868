"""Bytes of the hostile site, as a raw socket reads them."""

from __future__ import annotations

import asyncio
import gzip
import re
import ssl
import zlib
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest

from tests.integration.fetcher.authority import authority
from tests.sites.hostile import codings, content, links, robots, statuses, traps
from tests.sites.hostile.expected import PLACES, ROWS
from tests.sites.hostile.model import FOLDERS, Row
from tests.sites.hostile.site import BY_NAME, Hostile, trusted
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


OWN = [row for row in ROWS if row.ours and BY_NAME[row.place].tls is None]
PAGES = [row for row in OWN if row.say is None and BY_NAME[row.place].greet is None]


@pytest.mark.thorough
@pytest.mark.parametrize("row", PAGES, ids=lambda row: f"{row.place}{row.path}")
async def test_plain_rows_are_pages_with_children_and_ghosts(site: Hostile, row: Row) -> None:
    head, body = split(await read(site, row.place, row.path))
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert f"<title>{row.path}</title>".encode() in body
    assert re.findall(rb'href="([^"]+)"', body) == [
        path.encode() for path in (*row.children, *row.ghosts)
    ]


@pytest.mark.parametrize(
    ("target", "begins"),
    [
        ("/lengths/negative", b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: -3"),
        ("/chunks/no-number", b"HTTP/1.1 200 OK"),
        ("/garbage/http-0.9", b"<html>"),
        ("/garbage/icy", b"ICY 200 OK"),
        ("/garbage/ssh", b"SSH-2.0"),
        ("/garbage/five-digits", b"HTTP/1.1 99999 OK"),
        ("/garbage/zeros", b"\0\0\0"),
        ("/bytes/nul", b"HTTP/1.1 200 OK\r\nX: a\0b"),
        ("/bytes/cr", b"HTTP/1.1 200 OK\r\nX: a\rb"),
        ("/moved/308", b"HTTP/1.1 308 Permanent\r\nContent-Length: 0\r\nLocation: /moved/goal"),
        ("/nothing/204", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("/nothing/206", b"HTTP/1.1 206 Partial Content"),
        ("/nowhere", b"HTTP/1.1 404 Not Found"),
    ],
)
async def test_answers_start_with_written_bytes(site: Hostile, target: str, begins: bytes) -> None:
    assert (await read(site, "main", target)).startswith(begins)


async def test_non_ascii_location_is_sent_as_bytes(site: Hostile) -> None:
    head, _ = split(await read(site, "main", "/astray/non-ascii"))
    assert b"Location: /astray/goal-\xc3\xa9" in head


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


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("place", "target"), [("drip-head", "/slow/head"), ("drip-body", "/slow/body")]
)
async def test_slow_answers_send_few_bytes_at_a_time(
    site: Hostile, place: str, target: str
) -> None:
    reader, writer = await asyncio.open_connection(HOST, site.ports[place])
    writer.write(f"GET {target} HTTP/1.1\r\n\r\n".encode())
    sizes = [len(await asyncio.wait_for(reader.read(READ_BYTES), 2)) for _ in range(4)]
    writer.close()
    assert 0 < max(sizes[1:]) < 10


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


async def test_busy_hosts_send_retry_after(site: Hostile) -> None:
    first = await read(site, "busy-seconds", "/busy")
    assert f"Retry-After: {statuses.REST_S}".encode() in first
    assert (await read(site, "busy-seconds", "/busy")).startswith(b"HTTP/1.1 200")
    dates = []
    for place in ("busy-date", "busy-past"):
        said = (await read(site, place, "/busy")).decode()
        dates.append(parsedate_to_datetime(said.partition("Retry-After: ")[2].splitlines()[0]))
    assert dates[1] < dates[0]
    for _ in range(3):
        assert (await read(site, "storm-503", "/busy")).startswith(b"HTTP/1.1 503")
    assert b"Retry-After: 315360000" in await read(site, "ten-years", "/busy")


@pytest.mark.parametrize("name", robots.FILES)
async def test_robots_files_have_their_size_and_bytes(site: Hostile, name: str) -> None:
    said = await read(site, f"robots-{name}", "/robots.txt", 2 * MIB)
    _, body = split(said)
    match name:
        case "early-600" | "late-600":
            assert len(body) > 600 * 1000
        case "utf-16":
            assert body.startswith(b"\xff\xfeU\0")
        case "cr":
            assert b"\n" not in body
        case "404" | "403":
            assert f"HTTP/1.1 {name}".encode() in said


async def test_robots_chain_has_six_redirects(site: Hostile) -> None:
    target, hops = "/robots.txt", 0
    while b"Location: " in (said := await read(site, "robots-6-hops", target)):
        target, hops = said.partition(b"Location: ")[2].splitlines()[0].decode(), hops + 1
    assert hops == 6
    assert robots.RULES.encode() in said


@pytest.mark.thorough
@pytest.mark.parametrize("place", [place.name for place in PLACES if place.trap])
async def test_traps_link_on_without_end(site: Hostile, place: str) -> None:
    target = "/"
    met = {target}
    for _ in range(5):
        said = await read(site, place, target)
        assert said == await read(site, place, target)
        found = [link.decode() for link in re.findall(rb'href="([^"]+)"', said)]
        target = re.sub(r"^https?://[^/]+|&amp;", lambda m: "&" if m[0][0] == "&" else "", found[0])
        if not target.startswith("/"):
            target = f"{max(met, key=len)}{target}"
        if place != "wildcard":
            assert target not in met
        met.add(target)


async def test_same_content_trap_returns_equal_pages(site: Hostile) -> None:
    assert await read(site, "same", "/a/") == await read(site, "same", "/b/c/")
    assert await read(site, "lost", "/a") != await read(site, "lost", "/b")


async def test_only_good_certificates_are_trusted(site: Hostile, tmp_path: Path) -> None:
    context = ssl.create_default_context(cafile=str(trusted(tmp_path)))
    for place in PLACES:
        if place.tls is None or place.tls_version_max:
            continue
        bad = place.name.removeprefix("tls-") not in {"good", "chain", "secure"}
        try:
            _, writer = await asyncio.open_connection(HOST, site.ports[place.name], ssl=context)
        except ssl.SSLError:
            assert bad, place.name
        else:
            writer.close()
            # OpenSSL accepts a certificate that has only a common name, unless it is configured.
            assert not bad or place.name == "tls-common-name", place.name
    assert authority("trusted").pem.startswith(b"-----BEGIN CERTIFICATE-----")


async def test_connections_are_refused_ignored_or_greeted(site: Hostile) -> None:
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(HOST, site.ports["refusing"])
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.open_connection(HOST, site.ports["hole"]), QUIET_S)
    assert (await read(site, "tls-plain")).startswith(b"HTTP/1.1 400")
    assert await read(site, "tls-hang-up") == b""


async def test_log_records_turns_and_secret_headers(site: Hostile) -> None:
    _, writer = await asyncio.open_connection(HOST, site.ports["main"])
    writer.write(b"GET /x HTTP/1.1\r\nCookie: id=1\r\nAUTHORIZATION: b\r\n\r\n")
    await writer.drain()
    await read(site, "main", "/x")
    heard = [one for one in site.log.of("main") if one.target == "/x"]
    assert sorted(one.turn for one in heard) == [1, 2]
    assert {one.secrets for one in heard} == {(), ("authorization", "cookie")}
    writer.close()


async def test_start_page_links_every_list_and_place(site: Hostile) -> None:
    body = (await read(site, "main")).decode()
    for url in site.seeds("polite") + site.seeds("bold") + site.seeds("patient"):
        assert url == site.url("main") or url in body
    for case in {row.case for row in ROWS if row.place == "main" and row.linked}:
        assert f'"/{FOLDERS[case]}/"' in body


def test_link_limit_is_below_trap_limit() -> None:
    """Otherwise a single page would be the trap."""
    assert links.LINKS_TAKEN < traps.FOLDER_URLS_MAX
