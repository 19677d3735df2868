"""Contract of events: announce finished crawls and exports."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from orbweaver.exporting.manifest import PREFIX, File, Manifest, Sums, encode_manifest
from orbweaver.model.crawl import State, Stop
from tests.contract import samples
from tests.contract.worlds import AwsWorld

if TYPE_CHECKING:
    from tests.contract.worlds import World

DONE = replace(
    samples.crawl(), state=State.FINISHED, stop=Stop.MAX_PAGES, finished_at_ms=samples.NOW_MS + 1
)

PART = "pages/jsonl/dt=2026-11-21/shop-1/part-00-00000.jsonl.gz"
EXPORT = Manifest(
    day="2026-11-21",
    crawls={"shop-1": Sums(name="shop", rows={"pages": 2}, outcomes={"fetched": 2})},
    files=(
        File(
            path=PART,
            table="pages",
            format="jsonl",
            crawl="shop-1",
            rows=2,
            bytes=300,
            sha256="0" * 64,
        ),
    ),
)


async def test_completion_is_announced_again_under_same_id(world: World) -> None:
    if isinstance(world, AwsWorld):
        await world.watch_events()
    for _ in range(2):
        await world.container().events.completed(DONE, {"claimed": 2, "fetched": 2})
    assert await world.announced() == ["shop-1", "shop-1"]


async def test_completion_event_contains_result(aws_world: AwsWorld) -> None:
    await aws_world.watch_events()
    await aws_world.container().events.completed(DONE, {"fetched.ok": 2, "claimed": 2})
    (detail,) = await aws_world.event_details()
    assert detail == {
        "stack": "Mine",
        "id": "shop-1",
        "crawl": "shop-1",
        "name": "shop",
        "stop": "max_pages",
        "webhook": False,
        "counts": {"claimed": 2, "fetched.ok": 2},
        "started_at_ms": samples.NOW_MS,
        "finished_at_ms": samples.NOW_MS + 1,
    }


async def test_export_is_announced_again(world: World) -> None:
    if isinstance(world, AwsWorld):
        await world.watch_events()
    key = PREFIX + EXPORT.path
    for _ in range(2):
        await world.container().events.exported(EXPORT, key)
    assert await world.exported() == [key, key]


async def test_export_event_id_depends_on_manifest(aws_world: AwsWorld) -> None:
    await aws_world.watch_events()
    events = aws_world.container().events
    sha256 = hashlib.sha256(encode_manifest(EXPORT)).hexdigest()
    for export in (EXPORT, replace(EXPORT, crawl="shop-1"), replace(EXPORT, files=())):
        await events.exported(export, PREFIX + export.path)
    first, second, third = await aws_world.event_details()
    assert first == {
        "stack": "Mine",
        "id": f"2026-11-21-{sha256[:16]}",
        "day": "2026-11-21",
        "crawl": None,
        "bucket": aws_world.name,
        "manifest": "exports/manifests/dt=2026-11-21.json",
        "sha256": sha256,
        "rows": {"pages": 2},
        "files": 1,
        "bytes": 300,
    }
    assert second["id"].startswith("2026-11-21-shop-1-")
    assert second["manifest"] == "exports/manifests/dt=2026-11-21/crawl=shop-1.json"
    assert third["id"] not in {first["id"], second["id"]}
    assert (third["files"], third["bytes"]) == (0, 0)
