"""Judges an access log: which requests found a new article.

A log line has the request's start time (microseconds), its status and its request line, separated
by tabs. Apache writes a line when the answer ends, so the lines are sorted here.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

OK = 200
NO_REQUEST = "-"  # a connection without a request
ESCAPED = re.compile(r"\\(x[0-9a-fA-F]{2}|.)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A logged request."""

    at_us: int
    status: int
    method: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """An application's articles by key. `aliases` maps other keys to articles."""

    articles: frozenset[str]
    aliases: Mapping[str, str] = field(default_factory=dict)

    def article(self, key: str) -> str | None:
        key = self.aliases.get(key, key)
        return key if key in self.articles else None


def requests_of(lines: Iterable[str], since_us: int = 0) -> list[Request]:
    """Parse a log. Requests are sorted by start. Raises ValueError for another format."""
    found = []
    for line in lines:
        at, status, asked = line.rstrip("\n").split("\t")
        if asked == NO_REQUEST or int(at) < since_us:
            continue
        method, target, *_ = [*asked.split(" "), ""]
        found.append(
            Request(at_us=int(at), status=int(status), method=method, target=_plain(target))
        )
    return sorted(found, key=lambda request: request.at_us)


def novel(
    requests: Sequence[Request], truth: Truth, keys_of: Callable[[str], Iterable[str]]
) -> list[int]:
    """Return the number of new articles per request. `keys_of` maps a target to article keys."""
    seen: set[str] = set()
    counts = []
    for request in requests:
        before = len(seen)
        if request.method == "GET" and request.status == OK:
            articles = map(truth.article, keys_of(request.target))
            seen.update(article for article in articles if article is not None)
        counts.append(len(seen) - before)
    return counts


def shares(counts: Sequence[int], articles: int, points: Sequence[int]) -> list[float | None]:
    """Return the share found after each number of requests, or None if it was not reached."""
    found = list(accumulate(counts))
    return [found[point - 1] / articles if point <= len(found) else None for point in points]


def area(counts: Sequence[int], articles: int, point: int) -> float:
    """Return the mean share over the first `point` requests. After the end, the last counts."""
    found = list(accumulate(counts))[:point]
    last = found[-1] if found else 0
    return (sum(found) + last * (point - len(found))) / (articles * point)


def judged(
    requests: Sequence[Request],
    truth: Truth,
    keys_of: Callable[[str], Iterable[str]],
    points: Sequence[int],
) -> dict[str, Any]:
    counts = novel(requests, truth, keys_of)
    articles = len(truth.articles)
    return {
        "articles": articles,
        "requests": len(requests),
        "found": sum(counts),
        "shares": {
            str(n): s for n, s in zip(points, shares(counts, articles, points), strict=True)
        },
        "area": area(counts, articles, max(points)),
        "statuses": dict(sorted(Counter(str(request.status) for request in requests).items())),
    }


def query_of(target: str) -> tuple[str, dict[str, str]]:
    """Split a target into its decoded path and its parameters, separated by `&` or `;`."""
    path, _, query = target.partition("?")
    return unquote(path), dict(parse_qsl(query.replace(";", "&"), keep_blank_values=True))


def _plain(target: str) -> str:
    r"""Undo the escapes of Apache's log: `\xe4` is one byte, `\"` a quote."""
    return ESCAPED.sub(lambda m: f"%{m[1][1:]}" if len(m[1]) > 1 else m[1], target)
