"""Write a sitemap of the sitemaps.org protocol 0.9, with an index if one file is not enough.

Source: sitemaps.org/protocol.html. A file has at most 50,000 URLs and 50 MB before compression.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO
from urllib.parse import quote, urljoin
from xml.sax.saxutils import escape

from orbweaver.model.value import value_class

URLS_MAX, BYTES_MAX = 50_000, 50 * 2**20
GZIP = ".gz"
_XMLNS = "http://www.sitemaps.org/schemas/sitemap/0.9"
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="' + _XMLNS + '">\n'
_END = "</{root}>\n"
_QUOTES = {"'": "&apos;", '"': "&quot;"}


@value_class
class SitemapFile:
    """A written file. `urls` is 0 for an index, `bytes` the size before compression."""

    path: Path
    urls: int
    dated: int
    bytes: int


@dataclass(slots=True)
class _OpenFile:
    """A file that is being written: the root element, and its elements so far."""

    file: BinaryIO
    root: str
    urls: int = 0
    dated: int = 0
    size_bytes: int = 0

    def __post_init__(self) -> None:
        self._write(_HEAD.format(root=self.root).encode())

    def has_room(self, element: bytes) -> bool:
        end = len(_END.format(root=self.root))
        return self.urls < URLS_MAX and self.size_bytes + len(element) + end <= BYTES_MAX

    def add(self, element: bytes, *, dated: bool) -> None:
        self._write(element)
        self.urls += 1
        self.dated += dated

    def close(self) -> None:
        self._write(_END.format(root=self.root).encode())
        self.file.close()

    def _write(self, body: bytes) -> None:
        self.file.write(body)
        self.size_bytes += len(body)


def write_sitemap(
    entries: Iterable[tuple[str, str | None]], out: Path, base: str
) -> tuple[SitemapFile, ...]:
    """Write entries (URL, lastmod) to `out`, or to several files with `out` as their index.

    `base` is the URL of the folder that serves the files. The files replace existing ones when all
    are complete. Without entries no file is written.
    """
    with TemporaryDirectory(prefix=".orbweaver-", dir=out.parent) as folder:
        written = [*_parts(entries, Path(folder), out.name)]
        if len(written) == 1:
            written[0].path.replace(out)
            return (_at(written[0], out),)
        if not written:
            return ()
        placed = []
        for number, part in enumerate(written, start=1):
            name = _numbered(out.name, number)
            part.path.replace(out.with_name(name))
            placed.append(_at(part, out.with_name(name)))
        index = _write_index(placed, Path(folder, out.name), base)
        index.path.replace(out)
        return (_at(index, out), *placed)


def _parts(
    entries: Iterable[tuple[str, str | None]], folder: Path, name: str
) -> Iterator[SitemapFile]:
    part, number, path = None, 0, folder
    for url, lastmod in entries:
        element = _element("url", url, lastmod)
        if part is not None and not part.has_room(element):
            yield _closed(part, path)
            part = None
        if part is None:
            number += 1
            path = folder / _numbered(name, number)
            part = _OpenFile(_opened(path), "urlset")
        part.add(element, dated=lastmod is not None)
    if part is not None:
        yield _closed(part, path)


def _write_index(parts: Iterable[SitemapFile], path: Path, base: str) -> SitemapFile:
    index = _OpenFile(_opened(path), "sitemapindex")
    for part in parts:
        index.add(_element("sitemap", urljoin(base, quote(part.path.name)), None), dated=False)
    index.urls = 0
    return _closed(index, path)


def _element(name: str, url: str, lastmod: str | None) -> bytes:
    date = "" if lastmod is None else f"<lastmod>{lastmod}</lastmod>"
    return f"<{name}><loc>{escape(url, _QUOTES)}</loc>{date}</{name}>\n".encode()


def _opened(path: Path) -> BinaryIO:
    if path.suffix != GZIP:
        return path.open("wb")
    # Without the time and the name, equal sitemaps have equal files.
    return gzip.GzipFile(path, "wb", mtime=0)  # type: ignore[return-value]


def _closed(part: _OpenFile, path: Path) -> SitemapFile:
    part.close()
    return SitemapFile(path=path, urls=part.urls, dated=part.dated, bytes=part.size_bytes)


def _at(file: SitemapFile, path: Path) -> SitemapFile:
    return SitemapFile(path=path, urls=file.urls, dated=file.dated, bytes=file.bytes)


def _numbered(name: str, number: int) -> str:
    """Return the name of a part: sitemap.xml.gz becomes sitemap-1.xml.gz."""
    stem, dot, suffix = name.partition(".")
    return f"{stem}-{number}{dot}{suffix}"
