"""The erase rule at each step of a pack: request, content, claims, records, earlier runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbweaver.frontier.erase_rule import with_erased
from orbweaver.frontier.journal import Journal
from orbweaver.frontier.messages import encode
from orbweaver.frontier.pack_result import FoundLinks, result_for
from orbweaver.model.crawl_settings import Bodies
from orbweaver.model.outcome import Refusal
from orbweaver.model.target import Target
from tests.memory import Moment
from tests.unit.forgetting import everything, record_of
from tests.unit.stage import CRAWL, NOW_MS, SITE, Stage, html, outcomes

GONE, OTHER, LINKED = f"{SITE}/gone", f"{SITE}/other", f"{SITE}/linked"


def erase(stage: Stage) -> None:
    stage.world.crawls[CRAWL.id] = with_erased(stage.world.crawls[CRAWL.id], [GONE], NOW_MS)


@pytest.fixture
def stage() -> Stage:
    return Stage().serve({GONE: html(), OTHER: html(GONE, LINKED)})


async def test_queued_erased_url_is_skipped_without_request(stage: Stage) -> None:
    pack = stage.begin(CRAWL, GONE, OTHER)
    erase(stage)
    assert await stage.deliver(encode(pack)) == []
    assert set(outcomes(stage.world)) == {OTHER}
    counts = stage.counts()
    assert (counts["skipped.erased"], counts["refused.erased"], counts["claimed"]) == (1, 1, 3)
    assert (CRAWL.name, LINKED) in stage.world.claims
    assert (CRAWL.name, GONE) not in stage.world.claims
    assert GONE not in str(stage.world.samples)


@pytest.mark.parametrize("effect", ["files.put", "packs.journal"])
async def test_page_erased_during_its_request_leaves_no_record(stage: Stage, effect: str) -> None:
    """At `files.put` the content of other pages is stored already."""
    pack = stage.begin(replace(CRAWL, bodies=Bodies.HTML), GONE, OTHER)
    done: list[str] = []

    async def gate(what: str, _moment: Moment) -> None:
        if what == effect and not done:
            done.append(what)
            erase(stage)
            stage.clock.at_ms += 6_000  # the cached crawl is too old afterwards

    stage.restart(gate)
    assert await stage.deliver(encode(pack)) == []
    assert done
    assert set(outcomes(stage.world)) == {OTHER}
    assert stage.counts()["fetched"] == 2


async def test_journal_older_than_rule_is_applied_without_erased_url(stage: Stage) -> None:
    pack = stage.begin(CRAWL, GONE, OTHER)
    records = (record_of(GONE, CRAWL.id), record_of(OTHER, CRAWL.id, referrer=GONE))
    targets = tuple(Target(url=url, depth=1) for url in (GONE, LINKED))
    counts = {"fetched": 2, "fetched.ok": 2}
    stage.world.journals[pack.id] = Journal(
        at_ms=NOW_MS, records=records, candidates=targets, counts=counts, crawl=CRAWL.id
    )
    erase(stage)
    assert await stage.deliver(encode(pack)) == []
    (record,) = stage.world.pages.values()
    assert (record.url, record.referrer) == (OTHER, None)
    assert stage.world.ledgers[pack.id].children == (1,)
    assert stage.counts()["refused.erased"] == 1
    found = everything(stage.world)
    assert [place for place, text in found.items() if GONE in text] == [f"journals {pack.id}"]


def test_result_of_crawl_with_rule_takes_no_erased_link() -> None:
    result = result_for(with_erased(CRAWL, [GONE], NOW_MS))
    for url in (GONE, LINKED):
        found = FoundLinks(
            admitted=(Target(url=url, depth=1),),
            refused=((Refusal.SCOPE, 1, (url,)),),
            left=(Target(url=url, depth=2),),
        )
        result.add_links(found)
    assert (result.candidates, [one.url for one in result.left]) == ((LINKED,), [LINKED])
    assert tuple(result.samples["scope"]) == (LINKED,)
    assert result.counts["refused.erased"] == 1
