"""Mutants of rules: depths, lanes, windows, delays, and replays that ignore rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from orbweaver.frontier import admission, journal, messages
from orbweaver.model import crawl as crawls
from orbweaver.model import target, url_rules
from orbweaver.worker import apply_journal, fetch_pack, pack_context, response_handling
from tests.simulation.meaning import edited
from tests.simulation.mutant import mutants
from tests.simulation.scenario import Scenario


def _ruled(plan: Scenario) -> bool:
    """Scenarios with rules."""
    return any(crawl.rules for crawl in plan.crawls)


def _windows(plan: Scenario) -> bool:
    """Scenarios with a second run, and URLs with their own window."""
    windows = {rule.window_s for crawl in plan.crawls for rule in crawl.rules} - {None}
    return bool(windows) and len({crawl.name for crawl in plan.crawls}) < len(plan.crawls)


def _edited(plan: Scenario) -> bool:
    """Scenarios in which rules change and workers die or lose answers."""
    trouble = plan.faults.killed + plan.faults.unknown + plan.faults.ack_lost
    return trouble > 0 and any(edited(crawl) for crawl in plan.crawls)


def _depth_of_the_crawl(crawl: Any, _said: Any) -> int:
    return int(crawl.depth_max)


def _nothing_said(_rules: Any, _url: str) -> Any:
    return url_rules.NO_RULE


def _all_recorded(self: Any, *asked: Any, **more: Any) -> Any:
    page = _WHOLE_ENDED(self, *asked, **more)
    return replace(page, end=replace(page.end, recorded=True))


_WHOLE_ENDED = pack_context.PackContext.__dict__["ended"]


def _without_lane(sent: Any) -> Any:
    extras = _WHOLE_EXTRAS(sent)
    extras.pop("express", None)
    return extras


_WHOLE_EXTRAS = target.extras_of


def _one_delay(crawl: Any, targets: Any) -> Any:
    return [(crawl.delay_ms, list(targets))]


def _own_window(self: Any, _window_s: int | None) -> int:
    return int(self.window_s)


def _mixed(pack_id: str, crawl: str, came_to: Any, ledger: Any) -> Any:
    """Mix URLs of both lanes in one pack."""
    children = [came_to.candidates[place] for place in ledger.children]
    groups = [(group, 0) for group in journal._by_host(children)]
    groups += journal._by_due(came_to.returning, 1 if came_to.alone else target.PACK_TARGETS_MAX)
    return tuple(
        journal.OutgoingPack(
            pack=messages.Pack(
                id=messages.child_id(pack_id, place),
                crawl=crawl,
                at_ms=came_to.at_ms,
                targets=tuple(group),
            ),
            delay_s=delay_s,
        )
        for place, (group, delay_s) in enumerate(groups)
    )


async def _asked_again(
    self: Any, crawl: Any, pack_id: str, came_to: Any, ledger: Any, *rest: Any
) -> None:
    """Apply current rules to URLs claimed under earlier ones."""

    def of_now(sent: Any) -> Any:
        return replace(sent, express=bool(url_rules.combined_rule(crawl.rules, sent.url).express))

    now = replace(
        came_to,
        candidates=tuple(map(of_now, came_to.candidates)),
        returning=tuple(replace(item, target=of_now(item.target)) for item in came_to.returning),
    )
    await _WHOLE_SEND(self, crawl, pack_id, now, ledger, *rest)


_WHOLE_SEND = apply_journal.JournalApplier.__dict__["_send"]


MUTANTS = (
    *mutants(
        ("a rule's depth ignored", admission, "depth_limit", _depth_of_the_crawl),
        ("links followed against a rule", response_handling, "combined_rule", _nothing_said),
        ("recorded against a rule", pack_context.PackContext, "ended", _all_recorded),
        ("priority lost on the way", target, "extras_of", _without_lane),
        ("lanes mixed in a pack", apply_journal, "outbox", _mixed),
        ("a rule's delay ignored", fetch_pack, "by_delay", _one_delay),
        where=_ruled,
    ),
    *mutants(("a rule's window ignored", crawls.Crawl, "_window_s", _own_window), where=_windows),
    *mutants(
        ("rules asked again at a replay", apply_journal.JournalApplier, "_send", _asked_again),
        where=_edited,
    ),
)
