"""Events: that a crawl is finished is told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from orbweaver.core.crawl import State, Stop
from tests.contract import samples
from tests.contract.worlds import AwsWorld

if TYPE_CHECKING:
    from tests.contract.worlds import World

DONE = replace(
    samples.crawl(), state=State.FINISHED, stop=Stop.MAX_PAGES, finished_at_ms=samples.NOW_MS + 1
)


async def test_a_completion_is_announced(world: World) -> None:
    """Who listens hears of it, and of its repetition under the same id."""
    if isinstance(world, AwsWorld):
        await world.watch_events()
    for _ in range(2):
        await world.container().events.completed(DONE, {"claimed": 2, "fetched": 2})
    assert await world.announced() == ["shop-1", "shop-1"]


async def test_the_event_says_how_the_crawl_ended(aws_world: AwsWorld) -> None:
    """The detail holds what a listener needs without asking back."""
    await aws_world.watch_events()
    await aws_world.container().events.completed(DONE, {"fetched.ok": 2, "claimed": 2})
    (detail,) = await aws_world.event_details()
    assert detail == {
        "id": "shop-1",
        "crawl": "shop-1",
        "name": "shop",
        "stop": "max_pages",
        "webhook": False,
        "counts": {"claimed": 2, "fetched.ok": 2},
        "started_at_ms": samples.NOW_MS,
        "finished_at_ms": samples.NOW_MS + 1,
    }
