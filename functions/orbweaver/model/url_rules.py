"""Rules: what holds for some URLs of a crawl and not for the others.

Rules
- A rule has a pattern, which is looked for in the canonical URL as others are
  (`model/url_patterns.py`), and says one thing or more. Of each thing the *first* rule decides
  whose pattern is found and that says something of it; what no rule says is as the crawl has it.
- `depth`: the URL is claimed up to that depth, whatever the crawl's own limit is; beyond it, it is
  refused as too deep, also as the target of a redirect. Seeds are at depth 0.
- `priority`: what is `high` goes by the express queue, in packs of its own, until it has ended.
  `normal` takes URLs out of what a later rule says; it cannot slow down a crawl of high priority.
- `delay`: the spacing of the slots that are reserved for these URLs; like the crawl's own it is
  the least, and 0 waits for no slot. A host's URLs with the shortest delay are asked for first.
- `window`: for how long an earlier claim of the URL holds. As with the crawl's own, a run asks for
  no URL twice, whatever the window.
- `follow`: whether the links of the page are taken; where it leads (redirects) is no link.
- `record`: whether the outcome is recorded; it is counted all the same.
- Sitemaps are no pages: no rule is asked about them, but about what they list.

Rules may change while a crawl runs, and every delivery of a pack must have the same result. So they
are asked before a pack's journal is written, and never again for what is in it. What is claimed
carries its priority and window along (`model/target.py`), and what is not recorded stands in the
journal as such.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from orbweaver.model.durations import duration_text
from orbweaver.model.target import Target
from orbweaver.model.url_patterns import places, problems_of_rules


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlRule:
    """What holds for the URLs in which `match` is found; None: the rule says nothing of that."""

    match: str
    depth_max: int | None = None
    express: bool | None = None
    delay_ms: int | None = None
    window_s: int | None = None
    follow: bool | None = None
    record: bool | None = None


THINGS = tuple(field.name for field in fields(UrlRule) if field.name != "match")
# Part, key, least, most, and how the numbers are written: as for the crawl's own.
BOUNDS: tuple[tuple[str, str, int, int, Callable[[int], str]], ...] = (
    ("depth_max", "depth", 0, 1_000, "{:,}".format),
    ("delay_ms", "delay", 0, 86_400_000, duration_text),
    ("window_s", "window", 0, 366 * 86_400, lambda span_s: duration_text(span_s * 1_000)),
)
NOTHING = UrlRule(match="")


# --- what they say ------------------------------------------------------------------------------


def deciding(rules: tuple[UrlRule, ...], url: str) -> Mapping[str, int]:
    """Say which rule decides on what for a URL: part of a rule to its place."""
    found = places(_patterns(rules), url) if rules else ()
    decided: dict[str, int] = {}
    for place in found:
        for thing in THINGS:
            if getattr(rules[place], thing) is not None:
                decided.setdefault(thing, place)
    return decided


def said_of(rules: tuple[UrlRule, ...], url: str) -> UrlRule:
    """Put together what rules say of a URL."""
    if not rules:
        return NOTHING
    decided = deciding(rules, url)
    if not decided:
        return NOTHING
    said = {thing: getattr(rules[place], thing) for thing, place in decided.items()}
    return UrlRule(match="", **said)


def by_window(targets: Sequence[Target]) -> list[tuple[int | None, list[Target]]]:
    """Group targets by the window that they carry, None being the crawl's own."""
    groups: dict[int | None, list[Target]] = {}
    for target in targets:
        groups.setdefault(target.window_s, []).append(target)
    return list(groups.items())


def _patterns(rules: tuple[UrlRule, ...]) -> tuple[str, ...]:
    return tuple([rule.match for rule in rules])


# --- what does not fit --------------------------------------------------------------------------


def problems_of(rules: tuple[UrlRule, ...]) -> Iterator[tuple[str, str]]:
    """Find all that does not fit in the rules of a crawl: path of the key, and words."""
    return problems_of_rules("rules", rules, _problems_of_rule)


def _problems_of_rule(path: str, rule: UrlRule) -> Iterator[tuple[str, str]]:
    if all(getattr(rule, thing) is None for thing in THINGS):
        fix = "give one of depth, priority, delay, window, follow and record"
        yield path, f"it says nothing of its URLs: {fix}"
    for part, key, low, high, written in BOUNDS:
        value = getattr(rule, part)
        if value is not None and not low <= value <= high:
            fix = f"give {written(low)} to {written(high)}"
            yield f"{path}.{key}", f"{written(value).replace(',', '')} does not fit: {fix}"
