"""Remove erased URLs from a crawl's definition, and from its examples of refused links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from orbweaver.erasure.scope import ErasureScope, without
from orbweaver.model.crawl import Crawl


def definition_left(crawl: Crawl, scope: ErasureScope) -> Crawl:
    # Patterns are not changed, because they may exclude the URLs.
    seeds = without(crawl.seeds, scope)
    kept = [place for place, seed in enumerate(crawl.seeds) if not scope.reference(seed)]
    depths = tuple(crawl.seed_depths[place] for place in kept if place < len(crawl.seed_depths))
    changed: dict[str, Any] = {
        "seeds": seeds,
        "seed_depths": depths,
        "sitemap_urls": without(crawl.sitemap_urls, scope),
        "anchors": without(crawl.anchors, scope),
        "roots": without(crawl.roots, scope),
        "host_headers": tuple(
            (origin, own) for origin, own in crawl.host_headers if not scope.reference(f"{origin}/")
        ),
    }
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
