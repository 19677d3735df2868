"""Decide by URL which pages of a crawl are rendered in a browser, and name the reasons."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import CrawlSettings, RenderMode, RenderRule
from orbweaver.model.url_kind import ANY, NUMBER, Shape, shape_of
from orbweaver.model.url_patterns import matching_indexes, problems_of_rules


class RenderWhy(StrEnum):
    """Why the scripts of a page were run or not."""

    ALWAYS = "always"
    NEVER = "never"
    MARKED = "marked"
    FIRST = "first"
    KIND = "kind"
    SAMPLED = "sampled"
    NO_GAIN = "no_gain"
    NO_SCRIPTS = "no_scripts"
    KIND_GAINS_NOTHING = "kind_gains_nothing"
    FAILED = "failed"


MEANS = {
    RenderWhy.ALWAYS: "its scripts were run because the rendering mode is always",
    RenderWhy.NEVER: "its scripts were not run: a rendering rule has the mode never",
    RenderWhy.MARKED: "its scripts were run: it is empty without them",
    RenderWhy.FIRST: "its scripts were run because it is the first of its kind, and added content",
    RenderWhy.KIND: "its scripts were run: they add content to pages of its kind",
    RenderWhy.SAMPLED: "its scripts were run as a sample of its kind, and added content",
    RenderWhy.NO_GAIN: "its scripts were run and added nothing, so it stays as fetched",
    RenderWhy.NO_SCRIPTS: "it has no scripts to run",
    RenderWhy.KIND_GAINS_NOTHING: "its scripts were not run: they add nothing to pages of its kind",
    RenderWhy.FAILED: "its scripts could not be run, so it stays as fetched",
}

# Reasons that follow from other pages with similar URLs (kinds).
OF_KIND = frozenset(
    {RenderWhy.FIRST, RenderWhy.KIND, RenderWhy.SAMPLED, RenderWhy.KIND_GAINS_NOTHING}
)
_NAME_PLACE = 6


def learned_kind(url: str) -> Shape:
    """Return the shape of a URL. Rendering results are shared by URLs of one shape.

    In this shape, `*` replaces a file name without digits and without an extension.
    """
    shape = shape_of(url)
    name, extension = shape[_NAME_PLACE], shape[_NAME_PLACE - 1]
    if not name or extension or NUMBER in name or name.endswith(ANY):
        return shape
    return (*shape[:_NAME_PLACE], ANY, *shape[_NAME_PLACE + 1 :])


def deciding(crawl: CrawlSettings, url: str) -> int | None:
    """Return the index of the first rendering rule for a URL. None: the crawl's mode decides."""
    if not crawl.render_rules:
        return None
    return next(
        iter(matching_indexes(tuple([rule.match for rule in crawl.render_rules]), url)), None
    )


def mode_of(crawl: CrawlSettings, url: str) -> RenderMode:
    place = deciding(crawl, url)
    return crawl.render if place is None else crawl.render_rules[place].mode or crawl.render


def renders(crawl: CrawlSettings) -> bool:
    shown = (RenderMode.AUTO, RenderMode.ALWAYS)
    return crawl.render in shown or any(rule.mode in shown for rule in crawl.render_rules)


def concurrency_of(crawl: Crawl) -> tuple[int, int]:
    """Return how many pages, and how many requests of their scripts, a host gets at a time."""
    # A page keeps its permit while its scripts run, so both numbers are at least one.
    if not renders(crawl):
        return crawl.concurrency, 0
    least = max(1, crawl.concurrency // 2)
    return max(1, crawl.concurrency - least), least


def slots_of(crawl: Crawl, urls: int) -> int:
    """Return the number of request times (slots) to reserve together for URLs of a host."""
    # Requests of a rendered page have their own slots, during which reserved slots would expire.
    return 1 if renders(crawl) else urls


def problems_of(rules: tuple[RenderRule, ...]) -> Iterator[tuple[str, str]]:
    """Yield (key path, message) for each problem of a crawl's rendering rules."""
    return problems_of_rules("render.rules", rules, _problems_of_rule)


def _problems_of_rule(path: str, rule: RenderRule) -> Iterator[tuple[str, str]]:
    if rule.mode is None:
        yield f"{path}.mode", 'there is none: give "never", "auto" or "always"'
