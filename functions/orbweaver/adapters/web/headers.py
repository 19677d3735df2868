"""Heads: what a request says besides its URL, and what is taken over of an answer's.

Rules:

- What the crawler says itself comes after a crawl's own headers, and replaces them.
- A plain request by way of a proxy goes to the proxy itself, so its credentials are in it; those of
  a tunnel go with CONNECT alone, and nothing of either goes on to the target.
- Of an answer, each header is one line, as it came: the first of a name, all lines of a list. What
  is not UTF-8 is kept as bytes besides (`model/http_headers.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from multidict import CIMultiDict, CIMultiDictProxy

from orbweaver.adapters.web.decompression import ACCEPT_ENCODING
from orbweaver.fetching.block_page import STATUSES
from orbweaver.fetching.response_verdict import REDIRECT_MIN, SUCCESS_MIN
from orbweaver.model.http_exchange import Condition, Headers, Request
from orbweaver.model.http_headers import one_line, text_of
from orbweaver.parsing.robots_tag import is_agent
from orbweaver.parsing.sniffing import ANY_TYPE, HTML_TYPES, VAGUE, declared_in

if TYPE_CHECKING:
    from yarl import URL

    from orbweaver.fetching.proxy_pool import Proxy

HEADERS_CHARS_MAX = 65_536
# Lists, of which more than one line means the same as one line with commas (RFC 9110 section 5.3).
LISTS = frozenset(
    {
        "cache-control",
        "content-encoding",
        "content-language",
        "link",
        "transfer-encoding",
        "vary",
        "x-robots-tag",
    }
)
# An agent's name is about its own line. A joined line without a name is for `robots`, which is all.
ROBOTS_TAG = "x-robots-tag"


def asking(
    request: Request, url: URL, proxy: Proxy | None
) -> CIMultiDict[str] | CIMultiDictProxy[str]:
    """Write the headers of a request; a plain one goes to the proxy itself, and says who we are."""
    said = _always_said(request.headers, request.user_agent, request.accept)
    authorization = proxy.authorization if proxy is not None and url.scheme == "http" else None
    if request.condition is None and not authorization:
        return said
    headers = CIMultiDict(said)
    headers.update(_conditions(request.condition))
    if authorization:
        headers["Proxy-Authorization"] = authorization
    return headers


@lru_cache(maxsize=64)
def _always_said(own: Headers, agent: str, accept: frozenset[str]) -> CIMultiDictProxy[str]:
    """Write what the requests of a crawl to a host have in common."""
    headers = CIMultiDict(own)
    headers["User-Agent"] = agent
    headers["Accept"] = _accept(accept)
    headers["Accept-Encoding"] = ACCEPT_ENCODING
    return CIMultiDictProxy(headers)


def connecting(request: Request, proxy: Proxy | None) -> dict[str, str] | None:
    """Write the headers of a CONNECT."""
    if proxy is None:
        return None
    credentials = {"Proxy-Authorization": proxy.authorization} if proxy.authorization else {}
    return {"User-Agent": request.user_agent, **credentials}


def wanted(status: int, headers: dict[str, str], accept: frozenset[str]) -> bool:
    """Whether the body of an answer is to be read."""
    if not SUCCESS_MIN <= status < REDIRECT_MIN:
        return False
    kind = declared_in(headers)
    if not kind or ANY_TYPE in accept or kind in accept:
        return True
    # It may be a page all the same: its first bytes will say.
    return kind in VAGUE and not HTML_TYPES.isdisjoint(accept)


def telling(status: int, headers: dict[str, str], accept: frozenset[str]) -> bool:
    """Whether the body of an error may say more than its status: that crawlers are kept out."""
    return status in STATUSES and declared_in(headers) in accept & HTML_TYPES


def _conditions(condition: Condition | None) -> dict[str, str]:
    """Write the headers that ask for a page only if it changed (RFC 9110, section 13.1)."""
    if condition is None:
        return {}
    headers = {"If-None-Match": condition.etag, "If-Modified-Since": condition.last_modified}
    return {name: value for name, value in headers.items() if value}


def _accept(accept: frozenset[str]) -> str:
    """Write an Accept header; others come last, for some servers answer 406 without."""
    named = sorted(accept - {ANY_TYPE})
    return ", ".join((*named, f"{ANY_TYPE};q=0.1" if named else ANY_TYPE))


def answered(raw: Iterable[tuple[bytes, bytes]]) -> tuple[dict[str, str], int]:
    """Take headers over: one line each, the first of a name, all of a list.

    The number is how many lines are not kept; one that is the same as before is no loss, and
    neither is a cookie: those that a crawl keeps are taken from `cookies`.
    """
    headers: dict[str, str] = {}
    left, cut = HEADERS_CHARS_MAX, 0
    for raw_name, raw_value in raw:
        name, value = _name(raw_name), text_of(raw_value)
        left -= len(name) + len(value)
        if left < 0:
            cut += 1
        elif name not in headers:
            headers[name] = value
        elif name in LISTS:
            to_all = name == ROBOTS_TAG and ":" in headers[name] and not _names_agent(value)
            headers[name] += f", {'robots: ' if to_all else ''}{value}"
        else:
            cut += headers[name] != value and name != "set-cookie"
    return headers, cut


def _names_agent(robots_tag: str) -> bool:
    """Return whether a line of X-Robots-Tag begins with the name of an agent."""
    name, colon, _ = robots_tag.partition(":")
    return bool(colon) and is_agent(name)


def octets(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, bytes]:
    """Return the values that are not UTF-8, the first of each name."""
    odd = [(name, value) for name, value in raw if not value.isascii() and not _is_utf8(value)]
    return {_name(name): value for name, value in reversed(odd)}


def cookies(raw: Iterable[tuple[bytes, bytes]]) -> tuple[bytes, ...]:
    """Return what an answer sets as cookies, line by line."""
    return tuple(value for name, value in raw if name.lower() == b"set-cookie")


@lru_cache(maxsize=256)
def _name(raw: bytes) -> str:
    return one_line(raw.decode("latin-1").lower())


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
