"""AWS units per page in a small closed crawl, with bounds that reveal a cost regression.

The real worker and adapters run over the emulator, which reports the units of writes by size. The
web is in memory and the clock is fixed, so each run uses the same units. A small crawl has more
partly filled packs (batches of URLs) than a large one: see `python -m bench.units`.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, cast

import pytest

from bench.units import Line
from orbweaver.adapters.aws.usage_meter import UsageMeter
from orbweaver.adapters.local.reader import InPlaceReader
from orbweaver.app import wiring
from orbweaver.budget.billing_units import Term
from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.model.crawl import State
from orbweaver.model.http_exchange import Response
from orbweaver.model.settings import Settings
from orbweaver.worker import group_commit, link_dedup
from tests.contract.worlds import KEYS, AwsWorld
from tests.ports import OpenedPorts
from tests.sites import generated

if TYPE_CHECKING:
    from orbweaver.model.http_exchange import Request
    from tests.contract.worlds import Opener

pytestmark = pytest.mark.emulator

PAGES = 300
SITE = "https://made-up.example"
# Per page: the measured value (2.41, 0.45, 0.047, 0.017, 25) plus a margin.
BOUNDS = {
    Term.WRITE: 2.5,
    Term.READ_HALVES: 2 * 0.6,
    Term.SQS: 0.06,
    Term.S3_PUT: 0.02,
    Term.LOG_BYTES: 40,
}


class Web:
    """A generated site."""

    def __init__(self) -> None:
        self._pages = dict(generated.pages(PAGES, 30_000))

    async def fetch(self, request: Request) -> Response:
        body = self._pages.get(request.url.removeprefix(SITE))
        return Response(
            status=404 if body is None else 200,
            headers={"content-type": "text/html"},
            body=body or b"",
            latency_ms=10,
        )


def ports_of(world: AwsWorld, meter: UsageMeter) -> Any:
    """Open the ports of a container, metered from here on."""
    for service in ("dynamodb", "sqs", "s3"):
        meter.watch(world.clients[service])
    settings = Settings.of(allow_addresses="127.0.0.1:1-65535")
    container = world.container()
    names = ("queue", "packs", "backlog", "budgets", "crawls", "frontier", "hosts", "pages")
    return OpenedPorts(
        **{name: getattr(container, name) for name in (*names, "files", "events")},
        clock=world.clock,
        random=Random(1),
        reader=InPlaceReader(),
        renderer=None,
        settings=settings,
        meter=meter,
    )


async def test_units_per_page_stay_within_bounds(
    opener: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = Web()
    monkeypatch.setattr(wiring, "fetcher_of", lambda _ports: web)
    # Packs wait for each other at any machine load.
    monkeypatch.setattr(link_dedup, "TURN_WAIT_S", 60.0)
    monkeypatch.setattr(group_commit, "WAIT_S", 60.0)
    async with opener("emulator") as world:
        assert isinstance(world, AwsWorld)
        meter = UsageMeter(tables={world.table(name): name for name in KEYS})
        ports = ports_of(world, meter)
        plan = CrawlSpec(seeds=(SITE,), delay_ms=0, concurrency=16)
        crawl = await wiring.control_of(ports).start(plan)
        queue_url = world.urls["crawl"]
        line = Line([wiring.worker_of(ports)], meter, world.clients["sqs"], queue_url)
        while await line.batch(10, world.clock.now_ms()):
            pass
        ended = await ports.crawls.get(crawl.id)
        assert ended.state is State.FINISHED
        counters = await ports.crawls.counters(ended)
        assert counters.total["fetched"] == counters.total["claimed"] == PAGES
    used = cast("dict[Term, float]", line.used.units.by_term)
    line.used.pages = PAGES
    over = {
        str(term): used[term] / PAGES for term, most in BOUNDS.items() if used[term] > most * PAGES
    }
    assert not over, line.used.table()
