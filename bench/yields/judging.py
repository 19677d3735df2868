"""Judgement of an access log: which requests found an article that none before had found.

A line of the log is the moment at which a request began (microseconds), its status and its request
line, separated by tabs. Apache writes a line when an answer ends, so lines are put in order here.
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
NO_REQUEST = "-"  # a connection on which nothing was asked for
ESCAPED = re.compile(r"\\(x[0-9a-fA-F]{2}|.)")
# A value that names what a page is, as in `action=edit`; others are numbers, names, tokens.
WORD = re.compile(r"[a-z_]{1,20}")
PROGRAMS = ("php", "cgi")
KINDS_KEPT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request, as the web server logged it."""

    at_us: int
    status: int
    method: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """The articles that an application has, by keys; `aliases` are keys that show another one."""

    articles: frozenset[str]
    aliases: Mapping[str, str] = field(default_factory=dict)

    def article(self, key: str) -> str | None:
        """Return the article that a key shows; None if there is none."""
        key = self.aliases.get(key, key)
        return key if key in self.articles else None


def requests_of(lines: Iterable[str], since_us: int = 0) -> list[Request]:
    """Read a log in the order in which requests began; raises ValueError for another format."""
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
    """Count for each request the articles that it found first; `keys_of` reads its target."""
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
    """Return the share found after so many requests; None for points that were not reached."""
    found = list(accumulate(counts))
    return [found[point - 1] / articles if point <= len(found) else None for point in points]


def area(counts: Sequence[int], articles: int, point: int) -> float:
    """Return the mean share over the first requests: one figure for an order.

    A crawl that ended before keeps what it had.
    """
    found = list(accumulate(counts))[:point]
    last = found[-1] if found else 0
    return (sum(found) + last * (point - len(found))) / (articles * point)


def kind_of(target: str) -> str:
    """Name a kind of request: its first two folders, names of parameters and values like `edit`.

    The end of a path is one page: a program's name, what stands before a colon in it, or the end
    of a file's name are of its kind.
    """
    path, _, parameters = target.partition("?")
    *folders, last = path.split("/")[1:] or [""]
    kind = [*folders[:2], _end_of(last) if last else "…" * (len(folders) > 2)]
    named = sorted(
        f"{name}={value}" if WORD.fullmatch(value) else f"{name}=…"
        for name, value in _parameters(parameters)
    )
    query = "&".join(dict.fromkeys(named))
    return f"/{'/'.join(kind)}{'?' * bool(query)}{query}"


def barren(requests: Sequence[Request], counts: Sequence[int]) -> list[tuple[str, int]]:
    """List the kinds of request that found nothing new most often."""
    kinds = Counter(
        kind_of(request.target)
        for request, count in zip(requests, counts, strict=True)
        if not count
    )
    return kinds.most_common(KINDS_KEPT)


def judged(
    requests: Sequence[Request],
    truth: Truth,
    keys_of: Callable[[str], Iterable[str]],
    points: Sequence[int],
) -> dict[str, Any]:
    """Say what the requests of one crawl found: shares at each point and in all."""
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
        "barren": barren(requests, counts),
        "curve": list(accumulate(counts))[::10],
    }


def query_of(target: str) -> tuple[str, dict[str, str]]:
    """Split a target into its path, decoded, and its parameters."""
    path, _, parameters = target.partition("?")
    return unquote(path), dict(_parameters(parameters))


def _end_of(name: str) -> str:
    space, colon, _ = name.partition(":")
    _, dot, suffix = name.rpartition(".")
    if suffix in PROGRAMS:
        return name
    return f"{space}:…" if colon else f"….{suffix}" if dot and WORD.fullmatch(suffix) else "…"


def _parameters(query: str) -> list[tuple[str, str]]:
    """Read parameters that `&` or `;` separates."""
    return parse_qsl(query.replace(";", "&"), keep_blank_values=True)


def _plain(target: str) -> str:
    r"""Undo the escapes of Apache's log: `\xe4` is a byte of its own, `\"` a quote."""
    return ESCAPED.sub(lambda m: f"%{m[1][1:]}" if len(m[1]) > 1 else m[1], target)
