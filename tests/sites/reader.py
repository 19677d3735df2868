"""Reads the links of an HTML page for `walk`, with Python's own parser and urllib.

The charset is detected as in browsers (byte order mark, header, meta), else UTF-8, else
windows-1252.
"""

from __future__ import annotations

import codecs
import contextlib
import re
from html.parser import HTMLParser
from urllib.parse import quote, urldefrag, urljoin, urlsplit, urlunsplit

TRACKING = re.compile(r"(?:utm_[a-z]+|gclid|fbclid)=")
META_BYTES = 1024
META_CHARSET = re.compile(rb"""<meta[^>]+?charset\s*=\s*["']?\s*([^\s"'/>;]+)""", re.IGNORECASE)
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Labels with a wider meaning on the web than in Python (WHATWG Encoding Standard, 4.2).
LABELS = {
    "iso-8859-1": "cp1252",
    "latin1": "cp1252",
    "us-ascii": "cp1252",
    "shift_jis": "cp932",
    "euc-kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
}
# As in web URLs: escapes, and characters that need none, do not change.
SAFE = "%/:=&?~#+!$,;'@()*[]|"


class _Reader(HTMLParser):
    """Collects a page's references, its first base, and its robots directives."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.references: list[tuple[str, bool]] = []  # With its nofollow flag.
        self.base: str | None = None
        self.wishes = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Read a tag; the first of repeated attributes counts."""
        if tag not in {"a", "area", "base", "link", "meta"}:
            return
        values = {name: value or "" for name, value in reversed(attrs)}
        relations = values.get("rel", "").lower().split()
        if tag == "link" and not {"next", "prev", "previous"}.intersection(relations):
            return
        if tag == "meta":
            if values.get("name", "").lower() == "robots":
                self.wishes += "," + values.get("content", "")
        elif "href" in values and tag == "base":
            self.base = values["href"] if self.base is None else self.base
        elif "href" in values:
            self.references.append((values["href"], "nofollow" in relations))


def links(
    url: str, body: bytes, *, content_type: str, x_robots_tag: str, follow_nofollow: bool
) -> list[str]:
    """Return the http(s) URLs that a page links to, in order, each once."""
    reader = _Reader()
    reader.feed(decode(body, content_type))
    reader.close()
    wishes = reader.wishes + "," + x_robots_tag
    if "nofollow" in wishes.lower() and not follow_nofollow:
        return []
    base = urljoin(url, (reader.base or "").strip())
    references = dict.fromkeys(
        href.partition("#")[0].strip()
        for href, nofollow in reader.references
        if follow_nofollow or not nofollow
    )
    found: dict[str, None] = {}
    for reference in references:
        with contextlib.suppress(ValueError):  # Not a URL, for example "http://[/".
            link = normal(urljoin(base, reference))
            if link.startswith(("http://", "https://")):
                found[link] = None
    return list(found)


def decode(body: bytes, content_type: str) -> str:
    """Decode a page by its byte order mark, header or meta, or else as UTF-8 or windows-1252."""
    for mark, codec in MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(codec, "replace")
    header = re.search(r"charset=[\"']?([^\s;\"']+)", content_type)
    meta = META_CHARSET.search(body[:META_BYTES])
    labels = [header[1]] if header else []
    labels += [meta[1].decode("ascii", "replace")] if meta else []
    for label in labels:
        name = label.lower()
        with contextlib.suppress(LookupError):
            return body.decode(LABELS.get(name, name), "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body.decode("cp1252", "replace")


def normal(url: str) -> str:
    """Return a URL without fragment and tracking parameters, in ASCII."""
    scheme, host, path, query, _ = urlsplit(urldefrag(url).url)
    kept = "&".join(p for p in query.split("&") if not TRACKING.match(p))
    path, query = quote(path or "/", safe=SAFE), quote(kept, safe=SAFE.replace("'", ""))
    return urlunsplit((scheme, host.lower(), path, query, ""))
