"""Secrets of URLs are not in logs, records, reasons and errors (case 82)."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, replace

import pytest

from orbweaver.control.crawl_control import UnknownCrawl
from orbweaver.control.crawl_spec import CrawlSpec, PlanError
from orbweaver.control.spec_checks import crawl_of
from orbweaver.frontier.messages import encode, seeds_of
from tests.memory import World
from tests.unit.control_stage import Stage as ControlStage
from tests.unit.stage import CRAWL, NOW_MS, SITE, Stage, answer, html, outcomes, pack_of

USER, PASSWORD, TOKEN = "somebody", "hunter2", "s3cr3t"
SECRET = f"https://{USER}:{PASSWORD}@example.com"
BROKEN = [
    f"https://{USER}:{PASSWORD}@[/",
    f"https://{USER}:{PASSWORD}/x@example.com:port/",
    f"{USER}:{PASSWORD}@example.com/",
    f"https://[/?access_token={TOKEN}",
    f"ftp://{USER}:{PASSWORD}@example.com/{'x' * 300}",
    f"https://{USER}:{'x' * 300}{PASSWORD}@[/",
]


def logged(caplog: pytest.LogCaptureFixture) -> str:
    return json.dumps([vars(record) for record in caplog.records], default=str)


def stored(world: World) -> str:
    records = [asdict(record) for record in world.pages.values()]
    packs = [mail.body for mail in world.sent]
    return json.dumps([records, packs, [mail.reason for mail in world.buried]])


def clean(text: str, *, token: bool = True) -> bool:
    return not any(word in text for word in (USER, PASSWORD, *([TOKEN] if token else [])))


async def test_secrets_of_urls_are_not_requested_or_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    stage = Stage()
    crawl = replace(CRAWL, seeds_planned=1)
    stage.world.crawls[crawl.id] = crawl
    links = [f"{SECRET}/link", f"{SECRET}/moved", f"{SITE}/t?access_token={TOKEN}", *BROKEN]
    stage.web.put(f"{SITE}/", html(*links))
    stage.web.put(f"{SITE}/link", html())
    stage.web.put(f"{SITE}/moved", answer(302, location=f"{SECRET}/target"))
    stage.web.put(f"{SITE}/target", answer(302, location=BROKEN[0]))
    stage.web.put(f"{SITE}/t?access_token={TOKEN}", answer(500))
    references = [f"{SECRET}/", *BROKEN]
    (seeds,) = seeds_of(crawl.id, crawl.id, references, at_ms=NOW_MS, planned=True)
    await stage.deliver(seeds)
    assert clean(stored(stage.world))
    await stage.drain()
    ended = outcomes(stage.world)
    assert ended[f"{SITE}/link"] == "fetched.ok"
    assert ended[f"{SITE}/target"] == "failed.redirect_invalid"
    assert stage.counts()["refused.invalid"] > len(BROKEN)
    assert clean("".join(stage.web.urls), token=False)
    # The URL of a record is stored with its token.
    assert clean(stored(stage.world), token=False)
    assert any(record.message == "seed.refused" for record in caplog.records)
    assert clean(logged(caplog))


async def test_dead_letter_reason_contains_no_url(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    stage = Stage()
    bodies = [*BROKEN, json.dumps({"urls": BROKEN}), json.dumps({"url": SECRET, "crawl": "none"})]
    bodies += ["{" + SECRET, encode(pack_of(f"{SITE}/?t={TOKEN}", crawl="none"))]
    assert await stage.deliver(*bodies) == []
    assert len(stage.world.buried) == len(bodies)
    assert clean(stored(stage.world))
    assert clean(logged(caplog))


@pytest.mark.parametrize("reference", BROKEN)
def test_plan_error_contains_no_secret(reference: str) -> None:
    with pytest.raises(PlanError, match="cannot be crawled") as caught:
        crawl_of(CrawlSpec(seeds=(reference,)), NOW_MS)
    assert clean(str(caught.value))


async def test_unknown_crawl_error_contains_no_secret() -> None:
    with pytest.raises(UnknownCrawl) as caught:
        await ControlStage().control.find(f"{SECRET}/?access_token={TOKEN}")
    assert clean(str(caught.value))
