"""WARC 1.1 (ISO 28500:2017): write, read, list and erase records.

Every record is a gzip member of its own (annex D) and is read by one range request. Times are in
UTC, to the second. Digests are SHA-256 in base 32.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from isal import isal_zlib

from orbweaver.model.request_url import split_request
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from orbweaver.model.http_exchange import Headers

Kind = Literal["warcinfo", "request", "response", "conversion", "resource", "metadata"]
VERSION = "WARC/1.1"
# This level compresses a page in a tenth of the time of zlib's default. The file is a sixth larger.
LEVEL = 2
GZIP_WBITS = 31
# Headers that are stored under names of our own, as Common Crawl does, because they describe the
# body as sent. `Content-Length` is the length of the stored body.
RENAMED = ("content-encoding", "transfer-encoding", "content-length")
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_LONG_TEXT_CHARS = 200
_ESCAPES = ((b"\\", b"\\\\"), (b'"', b'\\"'), (b"\n", b"\\n"), (b"\t", b"\\t"))
# Further characters that JSON escapes.
_CONTROLS = bytes(set(range(0x20)) - set(b"\n\t"))
JSON_TYPE, PICTURE_TYPE = "application/json", "image/webp"
CR_LF = b"\r\n"
# Field of a response's record with the request's headers as JSON pairs. So a page needs only one
# record. Exports make a `request` record of the field.
REQUEST_FIELD = "X-Crawler-Request"
# Gzip member header (RFC 1952): flag of a comment, and number of bytes between flag and comment.
COMMENTED, HEADER_REST = 0x10, 6
CHUNK_BYTES = 65_536
TOMBSTONE_BODY = b"forgotten"
_LENGTH = re.compile(r"[0-9]{1,15}")
_NO_OCTETS: Mapping[str, bytes] = MappingProxyType({})


class WarcError(ValueError):
    """Bytes are no valid WARC record. The message contains the reason."""


@value_class
class Record:
    """A record as read, with header names in lower case."""

    type: str
    headers: Mapping[str, str]
    payload: bytes

    @property
    def url(self) -> str | None:
        return self.headers.get("warc-target-uri")

    def body(self) -> bytes:
        """Return the body of a response, without its head. Raises WarcError for other records."""
        head, found, body = self.payload.partition(CR_LF * 2)
        if self.type != "response" or not found:
            raise WarcError(f"a {self.type} of {len(head)} bytes holds no answer")
        return body


@value_class
class Member:
    """A record with its offset and length in a file."""

    offset: int
    length: int
    record: Record


# --- write --------------------------------------------------------------------------------------


def record_id(*parts: str) -> str:
    """Return a record id that is the same for the same parts."""
    digest = hashlib.blake2b(
        "\0".join(parts).encode("utf-8", "replace"), digest_size=16
    ).hexdigest()
    fields = (digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:])
    return f"<urn:uuid:{'-'.join(fields)}>"


def warcinfo(name: str, at_ms: int, about: Mapping[str, str]) -> bytes:
    """Return the first record of a file. `about` describes its creator and purpose."""
    body = b"".join(_line(f"{key}: {value}") for key, value in about.items())
    headers = {
        "WARC-Record-ID": record_id("warcinfo", name),
        "WARC-Filename": name,
        "Content-Type": "application/warc-fields",
    }
    return _member("warcinfo", at_ms, headers, body)


def response(  # noqa: PLR0913 - facts of a response
    url: str,
    at_ms: int,
    *,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    truncated: bool,
    octets: Mapping[str, bytes] = _NO_OCTETS,
    asked: Headers = (),
    sha256: bytes | None = None,
) -> bytes:
    """Return the record of a response. Its body is decoded, and `sha256` is its digest, if known.

    `octets` are header values that are not UTF-8, as received. `asked` are the request's headers,
    with redacted secrets.
    """
    head = [_line(f"HTTP/1.1 {status} {_phrase(status)}")]
    for name, value in headers.items():
        shown = f"X-Crawler-{name}" if name.lower() in RENAMED else name
        raw = octets.get(name)
        head.append(_line(f"{shown}: {value}") if raw is None else _raw_line(shown, raw))
    head.append(_line(f"Content-Length: {len(body)}"))
    named = {
        "WARC-Record-ID": record_id("response", url, str(at_ms)),
        "WARC-Target-URI": url,
        "Content-Type": "application/http;msgtype=response",
        "WARC-Payload-Digest": digest_of(body, sha256),
    }
    if truncated:
        named["WARC-Truncated"] = "length"
    if asked:
        named[REQUEST_FIELD] = _pairs(asked)
    return _member("response", at_ms, named, *head, CR_LF, body)


@lru_cache(maxsize=64)
def _pairs(headers: Headers) -> str:
    # All requests of a crawl to a host have the same headers, unless a condition is added.
    return json.dumps(headers, separators=(",", ":"))


def request(url: str, at_ms: int, response_id: str, asked: str) -> bytes | None:
    """Build the record of a request from its response's record, or None if `asked` is invalid.

    `asked` is the `REQUEST_FIELD` of the response's record, `response_id` that record's id.
    """
    try:
        pairs = [(str(name), str(value)) for name, value in json.loads(asked)]
    except (ValueError, TypeError):
        return None
    address, post = split_request(url)
    target = address.partition("://")[2]
    path = target[len(target.partition("/")[0]) :] or "/"
    method = "GET" if post is None else "POST"
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in pairs)]
    named = {
        "WARC-Record-ID": record_id("request", url, str(at_ms)),
        "WARC-Target-URI": url,
        "WARC-Concurrent-To": response_id,
        "Content-Type": "application/http;msgtype=request",
    }
    body = b"" if post is None else post.text.encode()
    return _member("request", at_ms, named, b"".join(map(_line, lines)) + CR_LF + body)


def conversion(url: str, at_ms: int, document: Mapping[str, Any], *, stored: bool) -> bytes:
    """Return the record of a page's texts. `stored` means that its response is in the same file."""
    named = {
        "WARC-Record-ID": record_id("conversion", url, str(at_ms)),
        "WARC-Target-URI": url,
        "Content-Type": JSON_TYPE,
    }
    if stored:
        named["WARC-Refers-To"] = record_id("response", url, str(at_ms))
    return _member("conversion", at_ms, named, _json(document))


def links_record(url: str, at_ms: int, document: Mapping[str, Any]) -> bytes:
    """Return the record of a page's links."""
    named = {
        "WARC-Record-ID": record_id("metadata", url, str(at_ms)),
        "WARC-Target-URI": url,
        "Content-Type": JSON_TYPE,
    }
    return _member("metadata", at_ms, named, _json(document))


def _json(document: Mapping[str, Any]) -> bytes:
    """Return a JSON object. Its long texts are at its end.

    The json module takes up to twice as long for a long text.
    """
    others, texts = dict(document), []
    for name, value in document.items():
        if isinstance(value, str) and len(value) > _LONG_TEXT_CHARS:
            text = value.encode("utf-8", "replace")
            if len(text.translate(None, _CONTROLS)) == len(text):
                del others[name]
                for plain, escaped in _ESCAPES:
                    text = text.replace(plain, escaped)
                texts.append(b'"%b":"%b"' % (name.encode(), text))
    small = _ENCODER.encode(others).encode("utf-8", "replace")
    return b"{" + b",".join([small[1:-1], *texts] if others else texts) + b"}"


def screenshot_record(url: str, at_ms: int, image: bytes) -> bytes:
    """Return the record of a screenshot, whose response is earlier in the same file."""
    named = {
        "WARC-Record-ID": record_id("resource", url, str(at_ms)),
        "WARC-Target-URI": url,
        "WARC-Concurrent-To": record_id("response", url, str(at_ms)),
        "Content-Type": PICTURE_TYPE,
    }
    return _member("resource", at_ms, named, image)


def digest_of(body: bytes, sha256: bytes | None = None) -> str:
    """Return the digest of a body as WARC files have it. `sha256` is its digest, if known."""
    return "sha256:" + base64.b32encode(sha256 or hashlib.sha256(body).digest()).decode()


def _member(kind: Kind, at_ms: int, named: Mapping[str, str], *block: bytes) -> bytes:
    return _packed({"WARC-Type": kind, "WARC-Date": _moment(at_ms // 1000), **named}, *block)


@lru_cache(maxsize=16)
def _moment(at_s: int) -> str:
    return datetime.fromtimestamp(at_s, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _packed(named: Mapping[str, str], *block: bytes) -> bytes:
    headers = {**named, "Content-Length": str(sum(map(len, block)))}
    head = [_line(f"{name}: {value}") for name, value in headers.items()]
    # One copy of the block, which can have many megabytes.
    text = b"".join((_line(VERSION), *head, CR_LF, *block, CR_LF * 2))
    # No byte depends on the time or place of compression.
    packed: bytes = isal_zlib.compress(text, LEVEL, GZIP_WBITS)
    return packed


def _line(text: str) -> bytes:
    # Values of servers may contain line ends and any characters.
    return text.replace("\r", " ").replace("\n", " ").encode("utf-8", "replace") + CR_LF


def _raw_line(name: str, value: bytes) -> bytes:
    return name.encode() + b": " + value.replace(b"\r", b" ").replace(b"\n", b" ") + CR_LF


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


# --- read ---------------------------------------------------------------------------------------


def read(member: bytes) -> Record:
    """Read the single record of a member. Raises WarcError."""
    text, length = _inflated(member, 0)
    if length != len(member):
        raise WarcError(f"{len(member) - length} bytes stand behind the record")
    return _parsed(text)


def members(body: bytes) -> Iterator[Member]:
    """Read a file record by record. Raises WarcError if it is invalid."""
    offset = 0
    while offset < len(body):
        text, length = _inflated(body, offset)
        yield Member(offset=offset, length=length, record=_parsed(text))
        offset += length


def _inflated(body: bytes, offset: int) -> tuple[bytes, int]:
    """Decompress the member at an offset. Return its content and length."""
    inflate = zlib.decompressobj(GZIP_WBITS)
    pieces, end = [], offset
    try:
        while not inflate.eof and end < len(body):
            pieces.append(inflate.decompress(body[end : end + CHUNK_BYTES]))
            end = min(end + CHUNK_BYTES, len(body))
    except zlib.error as error:
        raise WarcError(f"no gzip member at byte {offset}: {error}") from error
    if not inflate.eof:
        raise WarcError(f"the gzip member at byte {offset} is cut short")
    return b"".join(pieces), end - offset - len(inflate.unused_data)


def _parsed(text: bytes) -> Record:
    head, found, block = text.partition(CR_LF * 2)
    version, *lines = head.decode("utf-8", "replace").split("\r\n")
    if not found or not version.startswith("WARC/"):
        raise WarcError(f"no WARC record: {text[:40]!r}")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines)
    }
    try:
        digits, kind = headers["content-length"], headers["warc-type"]
    except KeyError as error:
        raise WarcError(f"a WARC record without {error}") from error
    if _LENGTH.fullmatch(digits) is None:
        raise WarcError(f"a WARC record of {digits[:40]!r} bytes")
    length = int(digits)
    if block[length:] != CR_LF * 2:
        raise WarcError(f"a record of {length} bytes has {len(block) - 4}")
    return Record(type=kind, headers=headers, payload=block[:length])


# --- erase --------------------------------------------------------------------------------------


def tombstone(length: int) -> bytes:
    """Return a record of exactly `length` bytes that replaces an erased record.

    Later records of the file keep their offsets. Raises WarcError below `TOMBSTONE_BYTES_MIN`,
    which is shorter than any page's record.
    """
    room = length - TOMBSTONE_BYTES_MIN
    if room < 0:
        raise WarcError(f"a tombstone has {TOMBSTONE_BYTES_MIN} bytes or more, not {length}")
    return _filled(_TOMBSTONE, room)  # all tombstones of one length are equal


def shortened(record: Record, document: Mapping[str, Any], length: int) -> bytes:
    """Return a JSON record with other content and exactly `length` bytes, or else a tombstone."""
    headers = {name: value for name, value in record.headers.items() if name != "content-length"}
    member = _packed(headers, _json(document))
    return tombstone(length) if len(member) > length else _filled(member, length - len(member))


def _filled(member: bytes, room: int) -> bytes:
    """Return a member that is longer by `room` bytes: a comment in its gzip header."""
    if room == 0:
        return member
    fixed, flags, rest = member[:3], member[3] | COMMENTED, member[4:]
    comment = b"-" * (room - 1) + b"\0"
    return fixed + bytes([flags]) + rest[:HEADER_REST] + comment + rest[HEADER_REST:]


def is_tombstone(record: Record) -> bool:
    return record.type == "metadata" and record.payload == TOMBSTONE_BODY


_TOMBSTONE = _member(
    "metadata",
    0,
    {"WARC-Record-ID": record_id("tombstone"), "Content-Type": "text/plain"},
    TOMBSTONE_BODY,
)
TOMBSTONE_BYTES_MIN = len(_TOMBSTONE)
