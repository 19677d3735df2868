"""Select pages of earlier runs to request again, because a crawl stores other content of them.

A separate run requests these pages as seeds, at their depths and with today's options.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from orbweaver.frontier.resumption import runs_to_continue
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import Bodies, RenderMode
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord
from orbweaver.model.url_patterns import matching_indexes
from orbweaver.model.value import value_class

if TYPE_CHECKING:
    from orbweaver.model.item_rules import ItemRule

# The command line imports this module at its start. So functions import modules that only crawls
# with item rules or rendering need.
MISSING = "missing"
_SITEMAPS = (Reason.SITEMAP, Reason.SITEMAP_INVALID)


def runs_of(crawl: Crawl, others: Iterable[Crawl], journals_s: int) -> tuple[Crawl, ...]:
    """List the earlier runs whose pages `crawl` can request again, oldest first.

    `journals_s` is how long journals are kept.
    """
    return tuple(reversed(runs_to_continue(crawl, others, journals_s)))


def differing_settings(crawl: Crawl, run: Crawl) -> tuple[str, ...]:
    """Name the settings by which `crawl` can store other content of pages than `run` did."""
    adds_bodies = run.bodies is Bodies.OFF or crawl.bodies is Bodies.ALL
    differs = {
        "bodies": crawl.bodies not in (Bodies.OFF, run.bodies) and adds_bodies,
        "status_only": run.status_only and not crawl.status_only,
        "texts": crawl.texts and not run.texts,
        "links": crawl.links and not run.links,
        "redacted": crawl.redacted != run.redacted,
        "render": (crawl.render, crawl.render_rules) != (run.render, run.render_rules),
        "screenshots": crawl.screenshots and not run.screenshots,
        "items": bool(crawl.items) and crawl.items != run.items,
    }
    return tuple(name for name, does in differs.items() if does)


@value_class
class MissingContent:
    """Selects records of `run` whose pages have content that only `crawl` stores."""

    crawl: Crawl
    run: Crawl

    def matches(self, record: PageRecord) -> bool:
        return bool(self.settings(record))

    def settings(self, record: PageRecord) -> tuple[str, ...]:
        """Name the settings by which `crawl` stores other content of a page than its record has."""
        if record.reason in _SITEMAPS:
            return ()
        named = differing_settings(self.crawl, self.run)
        return tuple(name for name in named if self._differs(name, record))

    def _differs(self, name: str, record: PageRecord) -> bool:
        is_page = record.outcome in (Outcome.FETCHED, Outcome.UNCHANGED)
        is_refused = record.reason is Reason.CONTENT_TYPE
        match name:
            case "bodies":
                added = is_page and self.run.bodies is Bodies.OFF
                return added or (is_refused and self.crawl.bodies is Bodies.ALL)
            case "items":
                rules = rules_at(self.crawl.items, record.url)
                reads = is_page or (is_refused and any(map(_reads_json, rules)))
                return reads and rules != rules_at(self.run.items, record.url)
            case "render":
                return is_page and self._is_rendered_now(record)
            case "screenshots":
                return is_page and bool(record.rendered)
            case _:
                return is_page

    def _is_rendered_now(self, record: PageRecord) -> bool:
        from orbweaver.model.render_rules import mode_of

        mode = mode_of(self.crawl, record.url)
        if record.rendered or mode is mode_of(self.run, record.url):
            return False
        needs = mode is RenderMode.AUTO and bool(record.needs_rendering)
        return needs or mode is RenderMode.ALWAYS


def is_reusable(crawl: Crawl, run: Crawl, record: PageRecord) -> bool:
    """Return True if `crawl` would store the content of a record of `run` for the same page."""
    rules = rules_at(crawl.items, record.url)
    if rules or record.extracted:
        # An edit may have changed the rules after the run read the page. The code of a user's
        # function may have changed, too.
        has_own_code = any(rule.extractor is not None for rule in rules)
        if run.edits or has_own_code or rules != rules_at(run.items, record.url):
            return False
    return not MissingContent(crawl=crawl, run=run).matches(record)


def rules_at(rules: tuple[ItemRule, ...], url: str) -> tuple[ItemRule, ...]:
    """Return the item rules that match a URL, in order of their names."""
    if not rules:
        return ()
    found = matching_indexes(tuple(rule.match for rule in rules), url)
    return tuple(sorted((rules[place] for place in found), key=lambda rule: rule.name))


def _reads_json(rule: ItemRule) -> bool:
    from orbweaver.model.item_rules import ValueSource

    return rule.source is ValueSource.JSON


def refetch_crawl(crawl: Crawl, run: Crawl) -> Crawl:
    """Return the crawl that requests the pages: options of `crawl`, scope of `run`."""
    return replace(
        crawl,
        id=run.id,
        finished_at_ms=run.finished_at_ms,
        anchors=run.anchors,
        roots=run.roots,
    )


def has_only_seeds(run: Crawl) -> bool:
    """Return True if a run requests only its seeds, as a run for missing content does.

    Other runs can have this form by chance.
    """
    return run.retry_of is not None and run.pages_max == len(run.references)


def without_links(run: Crawl) -> Crawl:
    """Return the run with a page limit that its seeds use up, so that it follows no links."""
    return replace(run, pages_max=len(run.references), shards=1)
