"""Contract of couriers, which copy exports to a receiver: no file there is ever incomplete.

tests/integration/delivery covers the SFTP courier.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orbweaver.adapters.aws.s3_copy import BucketCourier
from orbweaver.delivery.plan import FileRemoval
from orbweaver.exporting.manifest import PREFIX
from orbweaver.model.errors import Permanent, TooLarge, Transient
from tests.contract.samples import NOW_MS
from tests.contract.worlds import AWS_WORLDS, AwsWorld, MemoryWorld
from tests.memory import MemoryCourier
from tests.unit.delivering import exported

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from orbweaver.delivery.deliverer import Courier
    from orbweaver.exporting.manifest import File
    from tests.contract.worlds import Opener, World

LATER_MS = NOW_MS + 60_000


class Way:
    """A bucket with exports, a receiver, and a courier between them."""

    def __init__(self, world: World, courier: Courier) -> None:
        self.courier = courier
        self.files = world.container().files

    async def export(self, body: bytes) -> File:
        made: dict[str, bytes] = {}
        (file,) = exported(made, {"c": [body]}).files
        for key, content in made.items():
            await self.files.put(key, content)
        return file


@pytest.fixture(params=["memory", *AWS_WORLDS])
async def way(request: pytest.FixtureRequest, opener: Opener) -> AsyncIterator[Way]:
    async with opener(request.param) as world:
        if isinstance(world, MemoryWorld):
            yield Way(world, MemoryCourier(world.state, {}, clock=world.clock))
            return
        assert isinstance(world, AwsWorld)
        target = f"{world.name}-theirs"
        await world.clients["s3"].create_bucket(Bucket=target)
        courier = BucketCourier(
            world.clients["s3"], source=world.name, target=target, prefix=PREFIX, clock=world.clock
        )
        yield Way(world, courier)


@pytest.mark.parametrize("body", [b"", b"one", b"x" * 300_000])
async def test_file_is_delivered_whole_and_again(way: Way, body: bytes) -> None:
    file = await way.export(body)
    for _ in range(2):
        assert await way.courier.transfer(file, LATER_MS)
        assert await way.courier.read(file.path, 1_000_000) == body
    assert await way.courier.sizes([file.path, "other"]) == {file.path: len(body)}


async def test_delivery_after_deadline_does_not_start(way: Way) -> None:
    file = await way.export(b"one")
    assert not await way.courier.transfer(file, NOW_MS)
    assert await way.courier.sizes([file.path]) == {}


@pytest.mark.parametrize("case", ["another content", "another length", "gone"])
async def test_file_unlike_manifest_is_not_delivered(way: Way, case: str) -> None:
    """The export is being rebuilt, so it can be delivered later."""
    file = await way.export(b"one")
    if case == "gone":
        await way.files.delete([PREFIX + file.path])
    else:
        body = b"two" if case == "another content" else b"three"
        await way.files.put(PREFIX + file.path, body)
    with pytest.raises(Transient, match=r"its manifest says|made anew"):
        await way.courier.transfer(file, LATER_MS)
    assert await way.courier.sizes([file.path]) == {}


async def test_read_of_missing_or_too_large_file_is_none(way: Way) -> None:
    assert await way.courier.read("manifests/x.json", 10) is None
    for body in (b"0123456789", b"01"):
        await way.courier.write("manifests/x.json", body)
        assert await way.courier.read("manifests/x.json", 10) == body
    with pytest.raises(TooLarge):
        await way.courier.read("manifests/x.json", 1)


async def test_remove_ignores_missing_files(way: Way) -> None:
    await way.courier.write("a", b"1")
    await way.courier.write("b", b"2")
    await way.courier.remove([FileRemoval(path="a"), FileRemoval(path="c", sha256="0" * 64)])
    await way.courier.remove([])
    assert await way.courier.sizes(["a", "b", "c"]) == {"b": 1}


@pytest.mark.parametrize("name", AWS_WORLDS)
async def test_missing_bucket_is_permanent_error(opener: Opener, name: str) -> None:
    async with opener(name) as world:
        assert isinstance(world, AwsWorld)
        client = world.clients["s3"]
        courier = BucketCourier(
            client, source=world.name, target="nowhere-at-all", prefix=PREFIX, clock=world.clock
        )
        file = await Way(world, courier).export(b"one")
        with pytest.raises(Permanent, match="NoSuchBucket"):
            await courier.transfer(replace(file), LATER_MS)
        with pytest.raises(Permanent, match="NoSuchBucket"):
            await courier.write("a", b"1")
