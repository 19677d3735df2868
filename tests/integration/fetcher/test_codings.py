"""Content codings: decoding, limits and errors."""

from __future__ import annotations

import gzip
import random
import time
import tracemalloc
import zlib
from collections.abc import Callable
from functools import cache, partial

import brotli
import pytest
from backports import zstd
from hypothesis import given
from hypothesis import strategies as st

from orbweaver.adapters.web.decompression import ACCEPT_ENCODING, CodingError, Decoding, codings_of
from orbweaver.model.http_exchange import Failure, Response
from orbweaver.model.outcome import Reason
from tests.corpora import corpus
from tests.integration.fetcher.origin import SOON_S, answer, chunked, fetching, request, serving
from tests.sites.steps import Act, Step

MIB = 1024 * 1024
PAGE = b"<title>A page</title>" + random.Random(1).randbytes(200_000).hex().encode()


def raw_deflate(body: bytes) -> bytes:
    """Compress to deflate without zlib's header."""
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(body) + packer.flush()


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "GZip": gzip.compress,
    "deflate": zlib.compress,
    "deflate ": raw_deflate,
    "br": partial(brotli.compress, quality=4),
    "zstd": zstd.compress,
    "identity": bytes,
    "gzip, gzip": lambda body: gzip.compress(gzip.compress(body)),
    "deflate, gzip": lambda body: gzip.compress(zlib.compress(body), mtime=0),
    "gzip, br, zstd": lambda body: zstd.compress(
        brotli.compress(gzip.compress(body, mtime=0), quality=4)
    ),
}


async def fetched(*steps: Step, cap: int = 5 * MIB) -> Response | Failure:
    async with serving(steps) as origin, fetching() as fetcher:
        return await fetcher.fetch(request(origin.url(), body_bytes_max=cap))


@pytest.mark.parametrize("coding", PACK)
async def test_codings_are_decoded(coding: str) -> None:
    result = await fetched(answer(PACK[coding](PAGE), f"Content-Encoding: {coding}"))
    assert isinstance(result, Response)
    assert result.body == PAGE
    assert not result.truncated


async def test_coding_lines_and_transfer_codings_are_decoded() -> None:
    lines = ["Content-Encoding: gzip", "Content-Encoding: br"]
    packed = brotli.compress(gzip.compress(PAGE, mtime=0))
    result = await fetched(answer(packed, *lines))
    assert isinstance(result, Response)
    assert result.body == PAGE
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"
    packed = gzip.compress(PAGE, mtime=0)
    result = await fetched(head, b"%x\r\n%s\r\n0\r\n\r\n" % (len(packed), packed))
    assert isinstance(result, Response)
    assert result.body == PAGE


def test_accept_encoding_names_installed_codings() -> None:
    assert ACCEPT_ENCODING == "gzip, deflate, br, zstd"


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        pytest.param("compress", b"\x1f\x9d\x90" + PAGE, id="forgotten"),
        pytest.param("gzip, gzip, gzip, gzip", PAGE, id="too many"),
        pytest.param("gzip", PAGE, id="plain as gzip"),
        pytest.param("br", PAGE, id="plain as br"),
        pytest.param("zstd", PAGE, id="plain as zstd"),
        pytest.param("deflate", b"\xff" * 100, id="noise as deflate"),
        pytest.param("gzip", gzip.compress(PAGE, mtime=0)[:-8] + bytes(8), id="bad checksum"),
        pytest.param("deflate", zlib.compress(PAGE)[:-4] + bytes(4), id="bad zlib checksum"),
        pytest.param("gzip", gzip.compress(b"", mtime=0) * 50_000, id="50,000 empty members"),
        pytest.param(
            "zstd",
            zstd.compress(bytes(200 * MIB), options={zstd.CompressionParameter.window_log: 27}),
            id="window of 128 MiB",
        ),
    ],
)
async def test_undecodable_body_has_own_reason(coding: str, body: bytes) -> None:
    """Wrong or unsupported codings (cases 48 and 49)."""
    result = await fetched(answer(body, f"Content-Encoding: {coding}"))
    assert isinstance(result, Failure), result
    assert result.reason is Reason.ENCODING


@pytest.mark.parametrize(
    "coding",
    ["none", "utf-8", "UTF8", "binary", "8bit", "lzma", "compress", "x-none", "identity", ","],
)
@pytest.mark.parametrize("accept", [frozenset({"text/html"}), frozenset({"*/*"})])
async def test_unknown_coding_is_ignored(coding: str, accept: frozenset[str]) -> None:
    """A page or robots.txt is used as it is, as browsers do."""
    said = answer(PAGE, f"Content-Encoding: {coding}", "Content-Type: text/html")
    async with serving([said]) as origin, fetching() as fetcher:
        result = await fetcher.fetch(request(origin.url(), accept=accept))
    assert isinstance(result, Response), result
    assert (result.body, result.truncated) == (PAGE, False)


async def test_known_coding_beside_unknown_is_decoded() -> None:
    said = answer(gzip.compress(PAGE, mtime=0), "Content-Encoding: gzip, utf-8")
    result = await fetched(said)
    assert isinstance(result, Response), result
    assert result.body == PAGE


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "gzip, gzip"])
async def test_truncated_coded_body_is_kept_and_marked(coding: str) -> None:
    """If the server does not declare it complete, the connection broke (case 49)."""
    packed = PACK[coding](PAGE)[:-2000]
    line = f"Content-Encoding: {coding}"
    for steps in ((answer(packed, line),), (chunked(packed, lines=[line]), b"0\r\n\r\n")):
        result = await fetched(*steps)
        assert isinstance(result, Response)
        assert result.truncated
        assert result.body
        assert PAGE.startswith(result.body)
    result = await fetched(f"HTTP/1.1 200 OK\r\n{line}\r\n\r\n".encode(), packed, Act.CLOSE)
    assert isinstance(result, Failure)
    assert result.reason is Reason.DISCONNECTED


async def test_empty_truncated_coded_body_is_not_kept() -> None:
    """No byte could be decoded (case 49)."""
    result = await fetched(answer(gzip.compress(PAGE, mtime=0)[:9], "Content-Encoding: gzip"))
    assert isinstance(result, Failure)
    assert result.reason is Reason.ENCODING


@cache
def bomb(coding: str) -> bytes:
    zeros, count = bytes(MIB), 64
    if coding == "br":
        packer = brotli.Compressor(quality=5)
        return b"".join(packer.process(zeros) for _ in range(count)) + bytes(packer.finish())
    if coding == "zstd":
        frame = zstd.ZstdCompressor()
        return b"".join(frame.compress(zeros) for _ in range(count)) + frame.flush()
    if coding == "gzip, gzip":
        return gzip.compress(bomb("gzip"), mtime=0)
    if coding == "gzip, gzip, gzip":
        return gzip.compress(bomb("gzip, gzip"), mtime=0)
    stream = zlib.compressobj(wbits=31 if coding == "gzip" else 15)
    return b"".join(stream.compress(zeros) for _ in range(count)) + stream.flush()


@pytest.mark.parametrize(
    "coding", ["gzip", "deflate", "br", "zstd", "gzip, gzip", "gzip, gzip, gzip"]
)
async def test_bombs_are_truncated(coding: str) -> None:
    """Decoding stops soon, within 32 MiB of memory (case 48)."""
    steps = (answer(bomb(coding), f"Content-Encoding: {coding}"),)
    async with serving(steps) as origin, fetching() as fetcher:
        tracemalloc.start()
        started = time.monotonic()
        try:
            result = await fetcher.fetch(request(origin.url(), body_bytes_max=5 * MIB))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert isinstance(result, Response), result
    assert result.truncated
    assert result.body == bytes(5 * MIB)
    assert peak < 32 * MIB
    assert time.monotonic() - started < SOON_S


@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        ("deflate", b"\0\0\0\xff\xff" * 3_000_000),
        ("deflate, gzip", gzip.compress(b"\0\0\0\xff\xff" * 3_000_000, mtime=0)),
        ("zstd", b"\x50\x2a\x4d\x18\xff\xff\x0f\0" + bytes(MIB)),
    ],
    ids=["empty blocks", "empty blocks within", "skipped frame"],
)
def test_endless_coded_bytes_without_output_are_refused(coding: str, packed: bytes) -> None:
    decoding = Decoding(codings_of(coding), 100_000)
    chunks = [packed[start : start + 65_536] for start in range(0, len(packed), 65_536)]
    with pytest.raises(CodingError, match="far more coded than decoded"):
        all(decoding.feed(chunk) for chunk in chunks)


def test_coded_and_decoded_sizes_have_separate_limits() -> None:
    """A coding can lengthen a body of maximum size, which is read completely."""
    body = PAGE[:100_000]
    decoding = Decoding(["deflate"], len(body))
    assert decoding.feed(b"\0\0\0\xff\xff" * 30_000 + zlib.compress(body, 0, wbits=-15))
    assert decoding.body == body


@pytest.mark.parametrize("coding", sorted(set(PACK) - {"identity"}))
def test_paused_decoder_produces_no_more_output(coding: str) -> None:
    body = bytes(3 * MIB)
    decoding = Decoding(codings_of(coding), 4 * MIB, 100_000)
    assert decoding.feed(PACK[coding](body))
    assert 100_000 < len(decoding.body) <= 100_000 + 2 * 65_536
    assert decoding.go_on()
    assert (decoding.body == body, decoding.halted, decoding.complete) == (True, False, True)


def test_junk_after_coded_stream_is_ignored() -> None:
    for coding in ("gzip", "deflate", "zstd"):
        decoding = Decoding([coding], MIB)
        decoding.feed(PACK[coding](PAGE) + b"\0\0junk")
        assert decoding.body == PAGE
    for coding in ("gzip", "zstd"):
        decoding = Decoding([coding], MIB)
        decoding.feed(PACK[coding](PAGE) + PACK[coding](b"more"))
        assert decoding.body == PAGE + b"more"
        assert decoding.complete


@given(st.binary(max_size=200), st.lists(st.sampled_from(["gzip", "deflate", "br", "zstd"])))
def test_random_bytes_give_value_or_coding_error(data: bytes, codings: list[str]) -> None:
    try:
        decoding = Decoding(codings, 50)
        for start in range(0, len(data), 7):
            if not decoding.feed(data[start : start + 7]):
                break
    except CodingError:
        return
    assert len(decoding.body) <= 50


@given(
    st.binary(max_size=2_000),
    st.sampled_from(sorted(PACK)),
    st.integers(1, 300),
    st.integers(0, 2_500),
    st.integers(0, 2_500),
)
def test_body_in_random_pieces_decodes_to_itself(
    body: bytes, coding: str, step: int, cap: int, halts_at: int
) -> None:
    packed = PACK[coding](body)
    decoding, halts = Decoding(codings_of(coding), cap, halts_at), 0
    for start in range(0, len(packed), step):
        goes_on = decoding.feed(packed[start : start + step])
        if decoding.halted:
            halts += 1
            goes_on = decoding.go_on()
        if not goes_on:
            break
    assert halts <= (halts_at < min(cap, len(body)))
    assert decoding.body == body[:cap]
    assert decoding.cut is (len(body) > cap)


@pytest.mark.parametrize(
    ("name", "coding"),
    [
        ("html-gzip", "gzip"),
        ("html-rawdeflate", "deflate"),
        ("html-zlibdeflate", "deflate"),
        ("html-br", "br"),
        ("html-zstd-static-content-size", "zstd"),
        ("html-zstd-static-no-content-size", "zstd"),
        ("html-zstd-streaming-no-content-size", "zstd"),
        ("html-gzip-deflate", "gzip, deflate"),
        ("html-gzip-deflate-gzip", "gzip, deflate, gzip"),
    ],
)
async def test_corpus(name: str, coding: str) -> None:
    path = corpus("compressed", f"{name}.bin")
    result = await fetched(answer(path.read_bytes(), f"Content-Encoding: {coding}"))
    assert isinstance(result, Response)
    assert result.body is not None
    assert result.body.lstrip().startswith(b"<!DOCTYPE")
    assert result.body.rstrip().endswith(b"</html>")
    assert not result.truncated
