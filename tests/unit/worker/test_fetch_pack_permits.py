"""A cancelled or failed visit releases its permits and adds no links."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from orbweaver.budget.reservation import Reservations
from orbweaver.frontier.pack_result import PackResult
from orbweaver.model.errors import Transient
from orbweaver.model.http_exchange import Failure, Request, Response
from orbweaver.model.slices import SLICE_URLS
from orbweaver.model.target import Target, TargetKind
from orbweaver.worker.pack_context import PackContext
from tests.unit.stage import CRAWL, ROOT, SITE, Stage, hand_over, html
from tests.unit.worker.test_fetch_pack import targets

PAIRED = replace(CRAWL, concurrency=2, bytes_max=10**9)
SITEMAP = Target(url=f"{SITE}/sitemap.xml", depth=1, kind=TargetKind.SITEMAP)
ASKED = [*targets("a"), SITEMAP, *targets("b", "c")]


def begin(stage: Stage) -> tuple[asyncio.Task[None], Reservations]:
    """Start a visit of two URLs of a host, with a byte limit."""
    stage.world.crawls[PAIRED.id] = PAIRED
    reservations = stage.budget_keeper.open(PAIRED, ROOT)
    context = PackContext(
        crawl=PAIRED, until_ms=stage.clock.at_ms + 60_000, reservations=reservations
    )
    return asyncio.create_task(
        stage.pack_fetcher.fetch(context, PackResult(PAIRED.id), ASKED)
    ), reservations


def free(stage: Stage, reservations: Reservations) -> tuple[int, ...]:
    """Return the free permits: host, connections, sitemaps, reserved bodies."""
    fetcher = stage.pack_fetcher
    semaphores = (fetcher._semaphore(SITE, 2), fetcher._everywhere, fetcher._large)
    assert reservations.bytes is not None
    return (*(each._value for each in semaphores), reservations.bytes._out)


async def test_cancelled_visit_releases_everything() -> None:
    cancelled = True
    steps = 0
    while cancelled:
        stage = Stage(gate=hand_over)
        for target in ASKED:
            stage.web.put(target.url, html())
        semaphore = stage.pack_fetcher._semaphore(SITE, 2)  # held, as by another pack of the host
        task, reservations = begin(stage)
        whole = free(stage, reservations)
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert semaphore._value == 2, steps
        assert free(stage, reservations) == whole, steps
        cancelled = task.cancelled()
        steps += 1
    assert steps > len(ASKED)


async def test_unstarted_visit_beside_failed_one_releases_place() -> None:
    stage = Stage()
    semaphore = stage.pack_fetcher._semaphore(SITE, 2)

    async def failing(request: Request) -> Response | Failure:
        raise Transient("no memory")

    stage.web.fetch = failing  # type: ignore[method-assign] # a fault of ours
    task, reservations = begin(stage)
    await task
    assert semaphore._value == 2
    assert free(stage, reservations) == (2, stage.settings.fetching.fetch_concurrency, 1, 0)


async def test_page_cancelled_during_link_check_adds_no_link() -> None:
    stage = Stage()
    (target,) = targets("a")
    links = [f"/{place}" for place in range(12 * SLICE_URLS)]
    page = html(*links)
    canonical = b"<link rel=canonical href=/canonical>"
    stage.web.put(target.url, replace(page, body=canonical + (page.body or b"")))
    crawl = replace(CRAWL, canonical_only=True)
    stage.world.crawls[crawl.id] = crawl
    result = PackResult(crawl.id)
    judged: list[str] = []

    def linked(url: str, _depth: int) -> bool:
        judged.append(url)
        task.cancel()
        return False

    context = PackContext(
        crawl=crawl,
        until_ms=stage.clock.at_ms + 60_000,
        reservations=stage.budget_keeper.open(crawl, ROOT),
        linked=linked,
    )
    task = asyncio.create_task(stage.pack_fetcher.fetch(context, result, [target]))
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    assert 0 < len(judged) < len(links)
    assert (result.links, result.left, result.knows(target.url)) == ((), (), False)
