"""Write WARC 1.1 files with an index: the stored responses of pages.

The index is CDXJ: one line per response with its SURT (sort key), its time in 14 digits, and JSON
with its location. Sources: ISO 28500:2017; specs.webrecorder.net/cdxj/0.1.0.
"""

from __future__ import annotations

import heapq
import json
import re
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote_from_bytes, unquote_to_bytes

from orbweaver.exporting.formats.hashed_file import (
    Erased,
    ErasureFilter,
    FinishedFile,
    HashedFile,
    lines_left,
)
from orbweaver.frontier.link_table import member_without
from orbweaver.frontier.warc import (
    CR_LF,
    GZIP_WBITS,
    REQUEST_FIELD,
    is_tombstone,
    members,
    request,
    tombstone,
    warcinfo,
)
from orbweaver.model.page_record import PageRecord

ABOUT = {
    "software": "Orbweaver",
    "format": "WARC File Format 1.1",
    "conformsTo": "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
}
LINES_MAX = 20_000
HEAD_BYTES = 4_096
UNKNOWN_TYPE = "unk"  # media type in the index for a response without one


class WarcWriter:
    """Writes responses and their index. `name` is the name that the file has when it is complete.

    A `warcinfo` record comes first, then the stored responses byte for byte. So one range request
    reads a response. If the headers of a request were stored, a `request` record follows its
    response.
    """

    def __init__(self, sink: HashedFile, index: HashedFile, name: str) -> None:
        self._sink, self._index_sink, self._name = sink, index, name
        self._index = Index(index.folder)
        self.rows = 0

    @property
    def size(self) -> int:
        return self._sink.bytes

    def add(self, record: PageRecord, member: bytes) -> bool:
        """Append a stored response.

        Returns False if `member` is no response, such as a tombstone.
        """
        head = _head(member)
        if head.get("warc-type") != "response":
            return False
        if not self.rows:
            about = ABOUT | {"isPartOf": record.crawl}
            self._sink.write(warcinfo(self._name, record.fetched_at, about))
        media_type = (record.content_type or "").partition(";")[0].strip().lower()
        # Numbers in the index are strings: all programs write them so, and some programs require
        # it.
        entry = {
            "url": record.url,
            "mime": media_type or UNKNOWN_TYPE,
            "status": str(record.status),
            "digest": head["warc-payload-digest"],
            "length": str(len(member)),
            "offset": str(self._sink.bytes),
            "filename": self._name.rpartition("/")[2],
        }
        moment = datetime.fromtimestamp(record.fetched_at // 1000, tz=UTC)
        key = f"{surt(record.url)} {moment.strftime('%Y%m%d%H%M%S')}"
        self._index.add(f"{key} {json.dumps(entry)}\n".encode())
        self._sink.write(member)
        asked = head.get(REQUEST_FIELD.lower())
        if asked is not None:
            self._sink.write(
                request(record.url, record.fetched_at, head["warc-record-id"], asked) or b""
            )
        self.rows += 1
        return True

    def close(self) -> tuple[FinishedFile, ...]:
        """Finish the file and its index."""
        for line in self._index.lines():
            self._index_sink.write(line)
        self._index.close()
        return self._sink.made(self.rows), self._index_sink.made(self.rows)

    def discard(self) -> None:
        self._index.close()
        self._index_sink.discard()
        self._sink.discard()


class Index:
    """Sorts lines by their bytes. More than `LINES_MAX` lines are sorted in files and merged."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lines: list[bytes] = []
        self._runs: list[BinaryIO] = []

    def add(self, line: bytes) -> None:
        self._lines.append(line)
        if len(self._lines) == LINES_MAX:
            run = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - closed by `close`
            run.writelines(sorted(self._lines))
            run.seek(0)
            self._runs.append(run)
            self._lines.clear()

    def lines(self) -> Iterator[bytes]:
        """Return all lines in sorted order. Call it only once."""
        return iter(heapq.merge(*self._runs, sorted(self._lines)))

    def close(self) -> None:
        for run in self._runs:
            run.close()
        self._runs.clear()

    @staticmethod
    def erased(body: bytes, scope: ErasureFilter) -> Erased:
        return lines_left(body.splitlines(keepends=True), scope, _line_left, b"".join)


def _head(member: bytes) -> dict[str, str]:
    inflate = zlib.decompressobj(GZIP_WBITS)
    text = inflate.decompress(member, HEAD_BYTES)
    while CR_LF * 2 not in text:
        more = inflate.decompress(inflate.unconsumed_tail, HEAD_BYTES)
        if not more:
            break
        text += more
    lines = text.partition(CR_LF * 2)[0].decode("utf-8", "replace").split("\r\n")
    pairs = (line.partition(":") for line in lines[1:])
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


# --- erasing -------------------------------------------------------------------------------------


_GONE = {"conversion": "texts", "resource": "screenshots", "metadata": "links"}


def erased(body: bytes, scope: ErasureFilter) -> Erased:
    """Replace erased records by tombstones of the same length, so that all offsets stay valid."""
    kept = bytearray(body)
    gone: Counter[str] = Counter()
    # URLs of pages that were erased because they mention the selection. Their screenshots are
    # erased as well, because screenshots cannot be searched.
    pages: set[str | None] = set()
    rows = mentions = 0
    for member in members(body):
        record = member.record
        if is_tombstone(record):
            continue
        mentioned = not scope.url(record.url) and scope.bytes(record.payload)
        if record.type == "metadata" and not scope.url(record.url):
            # The row of a link belongs to its target, too. The other rows of the page remain.
            left = member_without(record, member.length, scope.url)
            if left is not None:
                kept[member.offset : member.offset + member.length] = left
                gone["links"] += 1
                continue
        pictured = record.type == "resource" and record.url in pages
        if scope.url(record.url) or pictured or (mentioned and scope.mentions):
            pages.add(record.url)
            end = member.offset + member.length
            kept[member.offset : end] = tombstone(member.length)
            if record.type != "request":  # erased together with its response
                gone[_GONE.get(record.type, "bodies")] += 1
            continue
        mentions += mentioned
        rows += record.type == "response"
    return Erased(body=bytes(kept) if gone else None, rows=rows, gone=gone, mentions=mentions)


def _line_left(line: bytes, scope: ErasureFilter) -> bytes | None:
    _, _, entry = line.decode().split(" ", 2)
    return None if scope.url(json.loads(entry)["url"]) else line


# --- sort keys of indexes ------------------------------------------------------------------------

DEFAULT_PORTS = {"http": "80", "https": "443"}
WWW = re.compile(r"www\d*\.")
# Only `#`, `%`, spaces and characters that are not printable ASCII stay escaped.
SAFE = "!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~"
# Session ids that ASP.NET puts into the path.
IN_PATH = (
    re.compile(r"(.*/)\((?:[a-z]\([0-9a-z]{24}\))+\)/([^?]+\.aspx.*)"),
    re.compile(r"(.*/)\([0-9a-z]{24}\)/([^?]+\.aspx.*)"),
)
IN_QUERY = (
    re.compile(r"(.*)jsessionid=[0-9a-z]{32}(?:&(.*))?$"),
    re.compile(r"(.*)phpsessid=[0-9a-z]{32}(?:&(.*))?$"),
    re.compile(r"(.*)sid=[0-9a-z]{32}(?:&(.*))?$"),
    re.compile(r"(.*)aspsessionid[a-z]{8}=[a-z]{24}(?:&(.*))?$"),
    re.compile(r"(.*)cfid=[^&]+&cftoken=[^&]+(?:&(.*))?$"),
)


# The host is reversed, so that a site's pages are adjacent. The key omits differences that most
# servers ignore: scheme, default port, `www.`, `www2.` and the like, a final slash, case of
# letters, session ids (by their names and lengths), the order of parameters, unnecessary escapes,
# repeated slashes, and dot segments. The Python package of the Internet Archive is under the AGPL
# and was last released in 2019. This is an independent function for canonical URLs (model/url.py),
# compared with that package over a million URLs.
def surt(url: str) -> str:
    """Return the SURT of a URL: the URL's sort key in indexes of web archives.

    `https://www.Example.com/b/?z=1&a` becomes `com,example)/b?a&z=1`. Archives look URLs up by this
    key (pywb, OpenWayback, Common Crawl's index). So it must equal their key exactly, including
    oddities.
    """
    scheme, _, rest = url.partition("://")
    authority, _, tail = rest.partition("/")
    path, _, query = tail.partition("?")
    key = f"{_host(scheme, authority)}){_path(path)}"
    query = _query(query)
    return f"{key}?{query}" if query else key


def _host(scheme: str, authority: str) -> str:
    host, colon, port = authority.rpartition(":")
    if not colon or not port.isdigit():  # no port, or the end of an IPv6 address
        host, port = authority, ""
    found = WWW.match(host)
    labels = host[found.end() if found else 0 :].strip("[].").split(".")
    name = ",".join(reversed(labels))
    return f"{name}:{port}" if port and port != DEFAULT_PORTS.get(scheme) else name


def _path(path: str) -> str:
    kept: list[bytes] = []
    for segment in _bare(path).split(b"/"):
        if segment == b".." and kept:
            kept.pop()
        elif segment != b".":
            kept.append(segment)
    text = "/" + _escaped(b"/".join(filter(None, kept)))
    for pattern in IN_PATH:
        text = pattern.sub(r"\1\2", text)
    return text


def _query(query: str) -> str:
    text = _escaped(_bare(query))
    for pattern in IN_QUERY:
        text = pattern.sub(r"\1\2", text, count=1)
    parameters = [parameter.split("=", 1) for parameter in text.split("&")]
    return "&".join("=".join(parts) for parts in sorted(parameters))


def _bare(text: str) -> bytes:
    """Remove all percent escapes, repeatedly, until no escape remains."""
    before, after = text.encode(), unquote_to_bytes(text)
    while before != after:
        before, after = after, unquote_to_bytes(after)
    return after


def _escaped(text: bytes) -> str:
    return quote_from_bytes(text, SAFE).lower()
