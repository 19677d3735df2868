"""SURT: the key by which indexes of web archives sort and find URLs.

`https://www.Example.com/b/?z=1&a` is `com,example)/b?a&z=1`: the host backwards, so that a site's
pages stand together, and without what does not matter to most servers:

- scheme, default port, `www.` and `www2.` and their like, a slash at the end, cases of letters;
- session ids, by the names and lengths that they have; the order of parameters;
- escapes of what need not be escaped (only `#`, `%`, spaces and what is not printable ASCII stay
  so), repeated slashes, dot segments.

Archives look URLs up by this key (pywb, OpenWayback, Common Crawl's index), so it has to be theirs
to the last sign, odd as some of it is. Their Python package is under the AGPL and was last released
in 2019: this is a function of its own, for URLs that are canonical already (model/url.py), compared
with that package over a million URLs.
"""

from __future__ import annotations

import re
from urllib.parse import quote_from_bytes, unquote_to_bytes

DEFAULT_PORTS = {"http": "80", "https": "443"}
WWW = re.compile(r"www\d*\.")
SAFE = "!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~"
# Of ASP.NET, which puts them into the path.
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


def surt(url: str) -> str:
    """Return the key of a canonical URL."""
    scheme, _, rest = url.partition("://")
    authority, _, tail = rest.partition("/")
    path, _, query = tail.partition("?")
    key = f"{_host(scheme, authority)}){_path(path)}"
    query = _query(query)
    return f"{key}?{query}" if query else key


def _host(scheme: str, authority: str) -> str:
    host, colon, port = authority.rpartition(":")
    if not colon or not port.isdigit():  # none, or the end of an address of version 6
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
    """Take out all escapes, also those that taking out others brings about."""
    before, after = text.encode(), unquote_to_bytes(text)
    while before != after:
        before, after = after, unquote_to_bytes(after)
    return after


def _escaped(text: bytes) -> str:
    return quote_from_bytes(text, SAFE).lower()
