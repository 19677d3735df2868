"""Apply URL rules: settings for some URLs of a crawl.

Rules
- A rule has a pattern, which is searched in the canonical URL (`model/url_patterns.py`), and one
  setting or more. For each setting the *first* rule decides that matches and has the setting.
  Without such a rule the crawl's setting applies.
- `depth`: the URL is claimed up to that depth, regardless of the crawl's limit. Below it, it is
  refused as too deep, even as a redirect target. Seeds have depth 0.
- `priority`: `high` URLs use the express queue, in separate packs, until they end. `normal` exempts
  URLs from a later rule. It cannot lower the priority of a high-priority crawl.
- `delay`: the spacing of the slots for these URLs. Like the crawl's delay it is a minimum, and 0
  waits for no slot. A host's URLs with the shortest delay are requested first.
- `window`: the time for which an earlier claim of the URL holds. As with the crawl's window, a run
  requests no URL twice.
- `follow`: whether the links of the page are followed. A redirect is not a link.
- `record`: whether the outcome is recorded. It is counted in any case.
- Rules do not apply to sitemaps, only to their entries.

Rules may change while a crawl runs, and every delivery of a pack must have the same result. So they
are applied before a pack's journal is written, and not again for its contents. Claimed URLs carry
their priority and window (`model/target.py`), and the journal contains which outcomes are not
recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from orbweaver.model.durations import duration_text
from orbweaver.model.target import Target
from orbweaver.model.url_patterns import places, problems_of_rules


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlRule:
    """Settings for URLs that match `match`. None: the rule does not set this."""

    match: str
    depth_max: int | None = None
    express: bool | None = None
    delay_ms: int | None = None
    window_s: int | None = None
    follow: bool | None = None
    record: bool | None = None


THINGS = tuple(field.name for field in fields(UrlRule) if field.name != "match")
# Field, key, minimum, maximum and number format, as for the crawl's own settings.
BOUNDS: tuple[tuple[str, str, int, int, Callable[[int], str]], ...] = (
    ("depth_max", "depth", 0, 1_000, "{:,}".format),
    ("delay_ms", "delay", 0, 86_400_000, duration_text),
    ("window_s", "window", 0, 366 * 86_400, lambda span_s: duration_text(span_s * 1_000)),
)
NOTHING = UrlRule(match="")


# --- application --------------------------------------------------------------------------------


def deciding(rules: tuple[UrlRule, ...], url: str) -> Mapping[str, int]:
    """Return which rule decides on each setting of a URL, as rule index by field."""
    found = places(_patterns(rules), url) if rules else ()
    decided: dict[str, int] = {}
    for place in found:
        for thing in THINGS:
            if getattr(rules[place], thing) is not None:
                decided.setdefault(thing, place)
    return decided


def said_of(rules: tuple[UrlRule, ...], url: str) -> UrlRule:
    """Return the combined settings of the rules for a URL."""
    if not rules:
        return NOTHING
    decided = deciding(rules, url)
    if not decided:
        return NOTHING
    said = {thing: getattr(rules[place], thing) for thing, place in decided.items()}
    return UrlRule(match="", **said)


def by_window(targets: Sequence[Target]) -> list[tuple[int | None, list[Target]]]:
    """Group targets by their window. None is the crawl's window."""
    groups: dict[int | None, list[Target]] = {}
    for target in targets:
        groups.setdefault(target.window_s, []).append(target)
    return list(groups.items())


def _patterns(rules: tuple[UrlRule, ...]) -> tuple[str, ...]:
    return tuple([rule.match for rule in rules])


# --- validation ---------------------------------------------------------------------------------


def problems_of(rules: tuple[UrlRule, ...]) -> Iterator[tuple[str, str]]:
    """Yield all problems of a crawl's rules, as path of the key and message."""
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
