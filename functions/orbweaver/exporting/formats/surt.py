"""Compute SURTs: sort keys of URLs in indexes of web archives.

`https://www.Example.com/b/?z=1&a` becomes `com,example)/b?a&z=1`. Archives look URLs up by this key
(pywb, OpenWayback, Common Crawl's index), so it must equal theirs exactly, including oddities.
"""

from __future__ import annotations

import re
from urllib.parse import quote_from_bytes, unquote_to_bytes

DEFAULT_PORTS = {"http": "80", "https": "443"}
WWW = re.compile(r"www\d*\.")
# Only `#`, `%`, spaces and characters that are not printable ASCII stay escaped.
SAFE = "!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~"
# ASP.NET puts session ids into the path.
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
# repeated slashes, and dot segments.
# The archives' Python package is under the AGPL and was last released in 2019. This is an
# independent function for canonical URLs (model/url.py), compared with that package over a million
# URLs.
def surt(url: str) -> str:
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
    """Remove all escapes, including those that appear when others are removed."""
    before, after = text.encode(), unquote_to_bytes(text)
    while before != after:
        before, after = after, unquote_to_bytes(after)
    return after


def _escaped(text: bytes) -> str:
    return quote_from_bytes(text, SAFE).lower()
