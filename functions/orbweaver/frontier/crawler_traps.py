"""Refuse URLs of traps: sites that generate URLs without end, by mistake or on purpose.

`trap_reason` checks a single URL, but no seeds. `Shares` limits the number of similar URLs, but not
of URLs from sitemaps. `is_reordered_index` detects links that only sort a folder index in another
order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from heapq import nlargest

from orbweaver.model.outcome import Refusal
from orbweaver.model.url import DEFAULT_BOUNDS, Bounds, host_of, hostname_of

PATTERNS_MAX = 20_000
# Patterns replace these parts of URLs: UUIDs, long runs of letters and digits (session ids), and
# numbers. So calendars, session ids and names with numbers do not block other URLs of the host.
# Percent-escapes are not numbers, because they are parts of words.
_UUID = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_VARYING = re.compile(rf"{_UUID}|[0-9A-Za-z]{{16,}}|(?<!%)(?<!%[0-9A-Fa-f])[0-9]+")

# Query of a sorted folder index, as Apache, fancyindex of nginx, Tomcat and Jetty link to it:
# column (name, modified, size, description) and order, then Apache's options.
_INDEX_ORDER = re.compile(r"C=[NMSD][;&]O=[AD](?:[;&](?:F=[012]|V=[01]|P=[^;&]*+))*+")


def trap_reason(url: str, bounds: Bounds = DEFAULT_BOUNDS) -> Refusal | None:
    """Return the reason why a canonical URL looks like a trap, or None if it does not."""
    # A trap has too many path segments, host labels or parameters, or repeats one of them too
    # often. Several parameters can have the same name: `?tag=a&tag=b&tag=c`.
    stem, _, query = url.partition("?")
    path_at = stem.index("/", 8)
    labels, label_times = _labels(stem[:path_at])
    segments = stem[path_at + 1 :].removesuffix("/").split("/")
    if labels > bounds.path_segments_max or len(segments) > bounds.path_segments_max:
        return Refusal.PATH_DEPTH
    if label_times > bounds.repeats_max or _repeats(segments, bounds.repeats_max):
        return Refusal.REPETITION
    if not query:
        return None
    parameters = query.split("&")
    long = len(query) > bounds.query_chars_max or len(parameters) > bounds.query_parameters_max
    return Refusal.QUERY if long or _repeats(parameters, bounds.repeats_max) else None


@lru_cache(maxsize=1_024)
def _labels(origin: str) -> tuple[int, int]:
    """Return the number of labels in a host name, and the count of the most frequent label."""
    labels = hostname_of(origin).split(".")
    # An IP address counts as one label.
    return (1, 1) if labels[-1].isdigit() else (len(labels), max(Counter(labels).values()))


def _repeats(parts: list[str], times_max: int) -> bool:
    if len(parts) - len(set(parts)) < times_max:
        return False
    return max(Counter(parts).values()) > times_max


def is_reordered_index(url: str, page_url: str) -> bool:
    """Return True if `url`, a link on `page_url`, is the same folder index in another order."""
    if "/?C=" not in url:  # most links
        return False
    # A link from another page can be the only link to that index, so it is requested.
    stem, _, query = url.partition("?")
    return stem == page_url.partition("?")[0] and _INDEX_ORDER.fullmatch(query) is not None


def patterns(url: str) -> tuple[str, ...]:
    """Return a URL's patterns: its folder, and its path with the names of its parameters.

    Numbers and ids are replaced, so that similar URLs have the same patterns.
    """
    stem, _, query = url.partition("?")
    origin = host_of(stem)
    folder, _, name = stem[len(origin) :].rpartition("/")
    kinds = (f"{_host(origin)}{_generalised(folder)}/",)
    if not query:
        return kinds
    names = {_generalised(parameter.partition("=")[0]) for parameter in query.split("&")}
    return (*kinds, f"{kinds[0]}{_generalised(name)}?{'&'.join(sorted(names))}")


@lru_cache(maxsize=1_024)
def _host(origin: str) -> str:
    """Replace numbers and ids in a host name, but not in its port or in an IP address."""
    name = hostname_of(origin)
    if name.startswith("[") or name.rpartition(".")[2].isdigit():
        return origin
    return origin.replace(name, _generalised(name), 1)


def _generalised(text: str) -> str:
    return _VARYING.sub(lambda run: "0" if run[0].isdigit() else "*", text)


# Each container counts by itself and loses its counts when it ends. So with n containers, up to n
# times as many URLs pass. The crawl's depth and page budget limit every trap.
class Shares:
    """Limits the number of new URLs for each crawl and pattern. Its memory is bounded."""

    def __init__(self, bounds: Bounds = DEFAULT_BOUNDS) -> None:
        self._bounds = bounds
        self._taken: Counter[tuple[str, str]] = Counter()

    def take(self, crawl: str, urls: Iterable[str]) -> set[str]:
        """Count new URLs of a crawl. Return the URLs that have a pattern whose limit is reached."""
        refused = set()
        for url in urls:
            keys = [(crawl, pattern) for pattern in patterns(url)]
            limits = (self._bounds.folder_urls_max, self._bounds.query_urls_max)
            if any(self._taken[key] >= most for key, most in zip(keys, limits, strict=False)):
                refused.add(url)
            else:
                self._taken.update(keys)
        if len(self._taken) > PATTERNS_MAX:
            # Keep the patterns with the highest counts, because traps have the highest counts.
            most = nlargest(PATTERNS_MAX // 2, self._taken.items(), key=lambda item: item[1])
            self._taken = Counter(dict(most))
        return refused
