"""WARC records: warcio reads them, their offsets, and tombstones of erased ones."""

from __future__ import annotations

import io
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from orbweaver.frontier import warc

URL = "https://example.com/a?b=ü"
AT_MS = 1_795_251_600_123
HEADERS = {
    "Content-Type": "text/html",
    "content-encoding": "br",
    "Transfer-Encoding": "chunked",
    "Content-Length": "17",
    "X-Odd": "two\r\nlines ü",
}


def answer(url: str = URL, body: bytes = b"<p>body", *, truncated: bool = False) -> bytes:
    return warc.response(url, AT_MS, status=200, headers=HEADERS, body=body, truncated=truncated)


def file_of(*members: bytes) -> bytes:
    about = {"software": "orbweaver", "isPartOf": "crawl-1"}
    return warc.warcinfo("a.warc.gz", AT_MS, about) + b"".join(members)


def test_warcio_reads_records_with_valid_digests() -> None:
    text = warc.conversion(URL, AT_MS, {"text": "läuft"}, stored=True)
    stream = io.BytesIO(file_of(answer(truncated=True), text))
    seen = []
    response_id = None
    for record in ArchiveIterator(stream, check_digests="raise"):
        body = record.content_stream().read()
        headers = record.rec_headers
        seen.append(record.rec_type)
        assert headers.get_header("WARC-Date") == "2026-11-21T09:00:00Z"
        if record.rec_type == "response":
            response_id = headers.get_header("WARC-Record-ID")
            assert headers.get_header("WARC-Target-URI") == URL
            assert headers.get_header("WARC-Truncated") == "length"
            assert body == b"<p>body"
            http = record.http_headers
            assert http.get_statuscode() == "200"
            assert http.get_header("Content-Length") == "7"
            assert http.get_header("X-Crawler-content-encoding") == "br"
            assert http.get_header("X-Crawler-Transfer-Encoding") == "chunked"
            assert http.get_header("X-Odd") == "two  lines ü"
        if record.rec_type == "conversion":
            assert json.loads(body) == {"text": "läuft"}
            assert headers.get_header("WARC-Refers-To") == response_id
    assert seen == ["warcinfo", "response", "conversion"]


def test_header_values_are_stored_as_received() -> None:
    headers = {"x-utf8": "a\u200cb\xa0\tc\x85", "X-Latin": "caf\xe9"}
    stored = warc.response(
        URL,
        AT_MS,
        status=200,
        headers=headers,
        body=b"",
        truncated=False,
        octets={"X-Latin": b"caf\xe9\r\nInjected: 1"},
    )
    head = warc.read(stored).payload
    assert b"\r\nx-utf8: a\xe2\x80\x8cb\xc2\xa0\tc\xc2\x85\r\n" in head
    assert b"\r\nX-Latin: caf\xe9  Injected: 1\r\n" in head


def test_record_is_read_back() -> None:
    record = warc.read(answer())
    assert (record.type, record.url, record.body()) == ("response", URL, b"<p>body")
    text = warc.read(warc.conversion(URL, AT_MS, {"a": 1}, stored=False))
    assert json.loads(text.payload) == {"a": 1}
    with pytest.raises(warc.WarcError, match="holds no answer"):
        text.body()


@given(st.lists(st.binary(max_size=200_000), max_size=5), st.booleans())
def test_each_member_can_be_read_alone(bodies: list[bytes], truncated: bool) -> None:
    whole = file_of(*(answer(f"https://h/{place}", body) for place, body in enumerate(bodies)))
    found = list(warc.members(whole))
    assert sum(member.length for member in found) == len(whole)
    for place, body in enumerate(bodies):
        member = found[place + 1]
        cut = whole[member.offset : member.offset + member.length]
        assert warc.read(cut) == member.record
        assert (member.record.url, member.record.body()) == (f"https://h/{place}", body)


@given(st.integers(0, 200_000))
def test_tombstone_has_given_length(more: int) -> None:
    length = warc.TOMBSTONE_BYTES_MIN + more
    stone = warc.tombstone(length)
    assert len(stone) == length
    assert warc.is_tombstone(warc.read(stone))


def test_every_record_is_long_enough_for_tombstone() -> None:
    least = [
        answer("http://a/", b""),
        warc.response("http://a/", 0, status=200, headers={}, body=b"", truncated=False),
        warc.conversion("http://a/", 0, {}, stored=False),
        warc.request("http://a/", 0, warc.record_id("a"), "[]") or b"",
    ]
    assert min(map(len, least)) >= warc.TOMBSTONE_BYTES_MIN
    with pytest.raises(warc.WarcError, match="or more, not 20"):
        warc.tombstone(20)


def test_tombstone_keeps_offsets_of_later_records() -> None:
    whole = file_of(answer("https://h/secret", b"x" * 5_000), answer("https://h/kept"))
    secret, kept = list(warc.members(whole))[1:]
    end = secret.offset + secret.length
    after = whole[: secret.offset] + warc.tombstone(secret.length) + whole[end:]
    assert [member.record for member in warc.members(after)][2] == kept.record
    found = [
        record.rec_type for record in ArchiveIterator(io.BytesIO(after), check_digests="raise")
    ]
    assert found == ["warcinfo", "metadata", "response"]
    unpacked = b"".join(member.record.payload for member in warc.members(after))
    assert b"secret" not in unpacked
    assert b"secret" not in after


NEGATIVE = b"WARC/1.1\r\nWARC-Type: x\r\nContent-Length: -4\r\n\r\nab\r\n\r\n\r\n\r\n"


@pytest.mark.parametrize("text", ["a\tb\n", 'a"\\n', "\x00\x1f\x7f", "\u00e4\u2028", "a"])
def test_long_text_is_escaped_in_links(text: str) -> None:
    document = {"v": 1, "targets": text * 300, "rel": {text: [1]}, "texts": text}
    stored = warc.links_record("https://example.org/", 0, document)
    assert json.loads(warc.read(stored).payload) == document


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"no gzip", "no gzip member at byte 0"),
        (file_of()[:-3], "is cut short"),
        (zlib.compress(b"hello", wbits=31), "no WARC record"),
        (zlib.compress(b"WARC/1.1\r\nWARC-Type: x\r\n\r\n", wbits=31), "without 'content-length'"),
        (zlib.compress(NEGATIVE, wbits=31), "a WARC record of '-4' bytes"),
        (
            zlib.compress(
                b"WARC/1.1\r\nWARC-Type: x\r\nContent-Length: 9\r\n\r\n1\r\n\r\n", wbits=31
            ),
            "a record of 9 bytes has 1",
        ),
    ],
)
def test_damaged_record_is_reported_with_place(body: bytes, said: str) -> None:
    with pytest.raises(warc.WarcError, match=said):
        list(warc.members(body))


ASKED = (("Host", "example.com"), ("User-Agent", "bot/1 ü"), ("Cookie", "redacted"))


def test_request_fields_are_stored_and_exported_as_record() -> None:
    member = warc.response(
        URL, AT_MS, status=200, headers={}, body=b"x", truncated=False, asked=ASKED
    )
    record = warc.read(member)
    assert record.body() == b"x"
    field = record.headers[warc.REQUEST_FIELD.lower()]
    assert json.loads(field) == [list(pair) for pair in ASKED]
    made = warc.request(URL, AT_MS, record.headers["warc-record-id"], field)
    assert made is not None
    (asked,) = ArchiveIterator(io.BytesIO(made))
    assert asked.rec_type == "request"
    assert asked.rec_headers.get_header("WARC-Concurrent-To") == record.headers["warc-record-id"]
    assert asked.rec_headers.get_header("WARC-Target-URI") == URL
    assert asked.rec_headers.get_header("WARC-Date") == "2026-11-21T09:00:00Z"
    assert asked.http_headers.protocol == "GET"
    assert asked.http_headers.get_header("Host") == "example.com"


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("https://h/", "GET / HTTP/1.1"),
        ("https://h:8443/a//b?c=/d", "GET /a//b?c=/d HTTP/1.1"),
        ("http://[::1]:8000/%20", "GET /%20 HTTP/1.1"),
    ],
)
def test_request_target_is_in_origin_form(url: str, line: str) -> None:
    made = warc.request(url, AT_MS, "<urn:x>", "[]")
    assert made is not None
    assert warc.read(made).payload == f"{line}\r\n\r\n".encode()


@pytest.mark.parametrize("field", ["", "{", "1", "[1]", '["abc"]', '[["a"]]', "null"])
def test_invalid_request_field_makes_no_request_record(field: str) -> None:
    assert warc.request(URL, AT_MS, "<urn:x>", field) is None
