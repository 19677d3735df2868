"""Scope of an erasure: some URLs, a host, or whole runs, in definitions and examples too."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

from orbweaver.frontier.erase_rule import UrlMatcher
from orbweaver.model.crawl import Crawl
from orbweaver.model.request_url import canonical_seed
from orbweaver.model.url import canonicalize, host_of, hostname_of, redacted

# Pattern that must match behind a URL in a text, because a longer path is another URL. A full stop
# or a question mark may end a sentence.
END = r"(?![\w/~%=&-]|[.?]+[\w/~%=&-])"
# Columns with a page's text, which stays unchanged.
PROSE = frozenset({"text", "markdown"})
# Columns that only the table of links has.
LINK_COLUMNS = frozenset({"target_url", "kind", "decision"})
# Aliases, because a method below has the name `bytes`.
Raw: TypeAlias = bytes
BytesPattern: TypeAlias = "re.Pattern[bytes]"


@dataclass(frozen=True, kw_only=True)
class ErasureScope(UrlMatcher):
    """The data to erase. `runs` and `names` belong to crawls that are erased as a whole.

    `host` is `example.org` (any scheme and port), `example.org:8080` or `https://example.org`. Its
    subdomains are other hosts.
    """

    urls: frozenset[str] = frozenset()
    host: str | None = None
    runs: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    # Also erase bodies and texts of other pages that mention the URLs.
    mentions: bool = False

    def url(self, url: str | None) -> bool:
        if not url:
            return False
        if self.host is None:
            return url in self.urls
        if not url.startswith(("http://", "https://")):
            return False
        origin = host_of(url)
        return self.host in (origin, origin.partition("://")[2], hostname_of(url))

    @property
    def rule(self) -> frozenset[str]:
        """The erased URLs or the erased host, which crawls must not request any more.

        Empty if runs are erased, because they have ended.
        """
        return self.urls if self.host is None else frozenset({self.host})

    def run(self, crawl_id: str | None) -> bool:
        return crawl_id in self.runs

    def reference(self, reference: str) -> bool:
        """Return True if a URL is in scope: as written, canonical, or with tracking parameters."""
        spellings = {reference}
        for tracking in ({}, {"tracking": frozenset[str]()}):
            try:
                spellings.add(canonical_seed(reference, **tracking))
            except ValueError:
                continue
        return any(self.url(url) for url in spellings)

    def shown(self, sample: str) -> bool:
        """Return True if a redacted sample URL (without a query) may be a URL in scope."""
        return self.url(sample) or sample in self._redacted

    def text(self, text: str | None) -> bool:
        return bool(text) and self._needles is not None and bool(self._needles.search(text or ""))

    def row_left(self, row: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return what remains of an export's row after erasing.

        None: nothing. The same object: the row contains no data in scope.
        """
        if self.url(row.get("url")) or self.run(row.get("crawl")):
            return None
        # The row of a link belongs to its target, too.
        if row.keys() >= LINK_COLUMNS and self.url(row["target_url"]):
            return None
        cut: dict[str, Any] = {}
        for name, cell in row.items():
            if name == "previous_crawl" and self.run(cell):
                cut[name] = None
            elif name not in PROSE or self.mentions:
                left = self.value_left(cell)
                if left is not cell:
                    cut[name] = left
        return {**row, **cut} if cut else row

    def bytes(self, body: bytes) -> bool:
        """Return True if a body mentions a URL in scope: the whole URL or its path."""
        return self._raw is not None and bool(self._raw.search(body))

    def line(self, line: Raw) -> bool:
        """Return True if an export's line may contain a URL in scope. Cheaper than parsing it."""
        return self._whole is not None and bool(self._whole.search(line))

    @cached_property
    def _whole(self) -> BytesPattern | None:
        pattern = self._pattern(paths=False)
        return re.compile(pattern.encode()) if pattern else None

    @cached_property
    def _redacted(self) -> frozenset[str]:
        return frozenset(map(redacted, self.urls))

    @cached_property
    def _needles(self) -> re.Pattern[str] | None:
        pattern = self._pattern(paths=False)
        return re.compile(pattern) if pattern else None

    @cached_property
    def _raw(self) -> BytesPattern | None:
        pattern = self._pattern(paths=True)
        return re.compile(pattern.encode()) if pattern else None

    def _pattern(self, *, paths: bool) -> str:
        if self.host is not None:
            name = re.escape(self.host.partition("://")[2] or self.host)
            return rf"//(?:[^/\s\"'<>@]*@)?{name}(?![\w-]|\.[\w-])"
        spelled: set[str] = set()
        for url in self.urls:
            path = url[len(host_of(url)) :]
            for text in (url, path) if paths and len(path) > 1 else (url,):
                # As in JSON, HTML and headers.
                spelled |= {text, html.escape(text), text.replace("/", "\\/")}
        # A longer URL may contain a shorter one.
        longest_first = sorted(spelled, key=lambda text: (-len(text), text))
        any_of = "|".join(map(re.escape, longest_first))
        return rf"(?<![\w/.~%-])(?:{any_of}){END}" if any_of else ""


def without(references: tuple[str, ...], scope: ErasureScope) -> tuple[str, ...]:
    return tuple(one for one in references if not scope.reference(one))


def scope_of_url(
    reference: str, crawls: Iterable[Crawl], *, mentions: bool = False
) -> ErasureScope:
    """Return the scope of one URL, in the canonical forms of all crawls.

    Raises ValueError if `reference` is no valid URL.
    """
    urls = {canonical_seed(reference)}
    # The canonical form depends on the parameters that a crawl removes.
    for tracking in (frozenset[str](), *(crawl.removed_parameters for crawl in crawls)):
        try:
            urls.add(canonical_seed(reference, tracking=tracking))
        except ValueError:  # too long with all its parameters
            continue
    return ErasureScope(urls=frozenset(urls), mentions=mentions)


def scope_of_host(named: str, *, mentions: bool = False) -> ErasureScope:
    """Return the scope of a host. Raises ValueError if the name is invalid."""
    text = named.strip().lower().rstrip("/")
    spelled = text if "://" in text else f"http://{text}"
    origin = host_of(canonicalize(f"{spelled}/"))
    if "://" in text:
        return ErasureScope(host=origin, mentions=mentions)
    return ErasureScope(host=origin.partition("://")[2], mentions=mentions)


def scope_of_crawl(which: str, crawls: Iterable[Crawl], known: Mapping[str, str]) -> ErasureScope:
    """Return the scope of one run, or of all runs of a crawl. `which` is a run's id or a name.

    `known` maps ids of runs in exports to their names.
    """
    runs = {crawl.id: crawl.name for crawl in crawls}
    runs = {**known, **runs}
    if which in runs:
        return ErasureScope(runs=frozenset({which}))
    return ErasureScope(
        runs=frozenset({run for run, name in runs.items() if name == which} | {which}),
        names=frozenset({which}),
    )


def definition_left(crawl: Crawl, scope: ErasureScope) -> Crawl:
    # Patterns are not changed, because they may exclude the URLs.
    seeds = without(crawl.seeds, scope)
    kept = [place for place, seed in enumerate(crawl.seeds) if not scope.reference(seed)]
    depths = tuple(crawl.seed_depths[place] for place in kept if place < len(crawl.seed_depths))
    changed: dict[str, Any] = {
        "seeds": seeds,
        "seed_depths": depths,
        "sitemap_urls": without(crawl.sitemap_urls, scope),
        "apis": tuple(api for api in crawl.apis if not scope.reference(api.url)),
        "anchors": without(crawl.anchors, scope),
        "roots": without(crawl.roots, scope),
        "host_headers": tuple(
            (origin, own) for origin, own in crawl.host_headers if not scope.reference(f"{origin}/")
        ),
    }
    changed["host_access"] = tuple(
        one for one in crawl.host_access if not scope.reference(f"{one.origin}/")
    )
    changed["auth"] = tuple(one for one in crawl.auth if not scope.reference(f"{one.origin}/"))
    if scope.host is not None:  # positions matter, so an entry is emptied, not removed
        hosts = ("" if scope.url(f"{host}/") else host for host in crawl.hosts_counted)
        changed["hosts_counted"] = tuple(hosts)
    return replace(crawl, **changed)


def samples_left(
    samples: Mapping[str, Sequence[str]], scope: ErasureScope
) -> dict[str, Sequence[str]]:
    return {
        reason: tuple(url for url in urls if not scope.shown(url))
        for reason, urls in samples.items()
    }
