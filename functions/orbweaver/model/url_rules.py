"""Apply URL rules: settings for some URLs of a crawl.

For each setting the *first* rule decides that matches and has the setting. Without such a rule the
crawl's setting applies. Rules do not apply to sitemaps, only to their entries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

from orbweaver.model.target import Target
from orbweaver.model.url_patterns import matching_indexes
from orbweaver.model.value import value_class


@value_class
# Rules may change while a crawl runs, and every delivery of a message must have the same result. So
# rules are applied before the worker writes its journal (commit log), and not again for the
# journal's contents. Claimed URLs have their priority and window, and the journal lists which
# outcomes are not recorded.
class UrlRule:
    """Settings for URLs that match `match`. None: the rule does not set this."""

    match: str
    # Maximum number of links from a seed (depth 0), regardless of the crawl's limit. Deeper URLs
    # are refused, even as redirect targets.
    depth_max: int | None = None
    # True: the URLs use the express queue until they end. False: a later rule does not apply. False
    # cannot lower the priority of a high-priority crawl.
    express: bool | None = None
    # Minimum time between two requests, 0 for none. A host's URLs with the shortest delay come
    # first.
    delay_ms: int | None = None
    # Dedup window: how long a claim of an earlier run counts. A run requests no URL twice.
    window_s: int | None = None
    # Whether the links of the page are followed. A redirect is not a link.
    follow: bool | None = None
    # Whether the outcome is recorded. It is counted in any case.
    record: bool | None = None


RULE_SETTINGS = tuple(field.name for field in fields(UrlRule) if field.name != "match")
NO_RULE = UrlRule(match="")


def deciding(rules: tuple[UrlRule, ...], url: str) -> Mapping[str, int]:
    """Return the index of the rule that decides on each setting of a URL, by setting name."""
    found = matching_indexes(_patterns(rules), url) if rules else ()
    decided: dict[str, int] = {}
    for place in found:
        for thing in RULE_SETTINGS:
            if getattr(rules[place], thing) is not None:
                decided.setdefault(thing, place)
    return decided


def combined_rule(rules: tuple[UrlRule, ...], url: str) -> UrlRule:
    """Return the combined settings of the rules for a URL."""
    if not rules:
        return NO_RULE
    decided = deciding(rules, url)
    if not decided:
        return NO_RULE
    said = {thing: getattr(rules[place], thing) for thing, place in decided.items()}
    return UrlRule(match="", **said)


def by_window(targets: Sequence[Target]) -> list[tuple[int | None, list[Target]]]:
    """Group targets by window. The key None means the crawl's window."""
    groups: dict[int | None, list[Target]] = {}
    for target in targets:
        groups.setdefault(target.window_s, []).append(target)
    return list(groups.items())


def _patterns(rules: tuple[UrlRule, ...]) -> tuple[str, ...]:
    return tuple([rule.match for rule in rules])
