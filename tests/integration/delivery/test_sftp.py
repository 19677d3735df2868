"""Deliveries to a real OpenSSH server."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random

import pytest

from orbweaver.adapters.local import sftp_connection
from orbweaver.adapters.local.sftp import WINDOW_BYTES
from orbweaver.delivery.plan import ledger_path
from orbweaver.exporting.manifest import PREFIX, encode_manifest
from orbweaver.model.errors import Transient
from tests.integration.delivery.conftest import Way
from tests.integration.delivery.sending import FOREVER_MS, big, deliverer, one_file
from tests.sites.cutter import cutting
from tests.unit.delivering import exported, lies, taken

# SSH overhead: headers, checksums and handshake.
OVERHEAD = 1.02
HELLO_BYTES = 16 * 1024


async def test_export_is_delivered_whole(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    # Without this, the test server waits forever for the connection to close.
    monkeypatch.setattr(sftp_connection, "CLOSE_S", None)
    bodies = {"c": [big(2.5), b"", b"small"], "d": [big(1, 2)]}
    manifest = exported(way.world.files, bodies, formats=("jsonl", "parquet"))
    assert await deliverer(way).run(taken(), FOREVER_MS) == ()

    there = way.sshd.files()
    lies(there, manifest, way.world.files)
    assert there[manifest.path] == encode_manifest(manifest)
    assert set(there) == {file.path for file in manifest.files} | {
        manifest.path,
        ledger_path(manifest.day),
    }
    assert not way.world.buried


async def test_delivered_export_is_not_sent_again(way: Way) -> None:
    exported(way.world.files, {"c": [big(1)]})
    async with cutting(way.sshd.port) as cutter:
        for _ in range(2):
            assert await deliverer(way, port=cutter.port).run(taken(), FOREVER_MS) == ()
    first, second = cutter.sent
    assert first > WINDOW_BYTES
    assert second < HELLO_BYTES


@pytest.mark.parametrize("windows", [0.4, 3.6, 8.2])
async def test_broken_transfer_resumes_at_acknowledged_offset(way: Way, windows: float) -> None:
    body = big(10)
    manifest = exported(way.world.files, {"c": [body]})
    async with cutting(way.sshd.port) as cutter:
        cutter.limits.append(round(windows * WINDOW_BYTES))
        assert await deliverer(way, port=cutter.port).run(taken(), FOREVER_MS) == ("m1",)
        there = way.sshd.files()
        assert manifest.path not in there
        assert manifest.files[0].path not in there
        assert await deliverer(way, port=cutter.port).run(taken(receives=2), FOREVER_MS) == ()

    lies(way.sshd.files(), manifest, way.world.files)
    # At most one window is sent twice.
    assert cutter.total <= (len(body) + WINDOW_BYTES) * OVERHEAD + 2 * HELLO_BYTES
    assert [mail.delay_s for mail in way.world.sent] == [60]


async def test_repeatedly_broken_transfer_completes(way: Way) -> None:
    manifest = exported(way.world.files, {"c": [big(6)], "d": [big(3, 2)]})
    chance = random.Random(5)
    tries = 0
    async with cutting(way.sshd.port) as cutter:
        cutter.limits[:] = [chance.randrange(2, 4 * WINDOW_BYTES) for _ in range(8)]
        while await deliverer(way, port=cutter.port).run(taken(), FOREVER_MS):
            tries += 1
    assert tries >= 2
    lies(way.sshd.files(), manifest, way.world.files)


async def test_short_invocation_transfers_at_least_one_window(way: Way) -> None:
    body = big(4)
    manifest = exported(way.world.files, {"c": [body]})
    async with cutting(way.sshd.port) as cutter:
        for _ in range(3):
            assert manifest.path not in way.sshd.files()
            assert await deliverer(way, port=cutter.port).run(taken(), 0) == ()
    # Each invocation but the last ordered another at once; no attempt failed.
    assert [(json.loads(mail.body)["day"], mail.delay_s) for mail in way.world.sent] == [
        (manifest.day, 0)
    ] * 2
    lies(way.sshd.files(), manifest, way.world.files)
    assert cutter.total <= (len(body) + 2 * WINDOW_BYTES) * OVERHEAD + 4 * HELLO_BYTES


async def test_part_of_changed_file_is_discarded(way: Way) -> None:
    old = exported(way.world.files, {"c": [big(3, 1)]})
    async with cutting(way.sshd.port) as cutter:
        cutter.limits.append(2 * WINDOW_BYTES)
        assert await deliverer(way, port=cutter.port).run(taken(), FOREVER_MS) == ("m1",)
    assert [name for name in way.sshd.files() if name.endswith(".part")]
    new = exported(way.world.files, {"c": [big(3, 2)]})
    assert new.files[0].path == old.files[0].path
    assert await deliverer(way).run(taken(), FOREVER_MS) == ()
    lies(way.sshd.files(), new, way.world.files)


@pytest.mark.parametrize("damage", ["lost", "zeroed", "longer"])
async def test_damaged_part_is_detected_before_rename(way: Way, damage: str) -> None:
    file = one_file(way, big(3))
    async with cutting(way.sshd.port) as cutter:
        cutter.limits.append(round(2.5 * WINDOW_BYTES))
        with pytest.raises(Transient):
            async with way.courier(port=cutter.port) as courier:
                await courier.transfer(file, FOREVER_MS)
    (part,) = way.sshd.folder.rglob("*.part")
    body = part.read_bytes()
    assert WINDOW_BYTES < len(body) < file.bytes
    part.write_bytes(
        {
            "lost": body[: WINDOW_BYTES // 2],
            "zeroed": body[: WINDOW_BYTES - 9_000] + bytes(len(body) - WINDOW_BYTES + 9_000),
            "longer": body + bytes(file.bytes),
        }[damage]
    )
    async with way.courier() as courier:
        assert await courier.transfer(file, FOREVER_MS)
    assert way.sshd.files() == {file.path: way.world.files[PREFIX + file.path]}


async def test_file_name_never_has_partial_content(way: Way) -> None:
    old, new = big(2, 1), big(2, 2)
    file = one_file(way, old)
    path = way.sshd.folder / file.path
    async with way.courier() as courier:
        await courier.transfer(file, FOREVER_MS)
        file = one_file(way, new)
        seen: set[str] = set()

        async def look() -> None:
            while True:
                seen.add(hashlib.sha256(await asyncio.to_thread(path.read_bytes)).hexdigest())

        looking = asyncio.create_task(look())
        await courier.transfer(file, FOREVER_MS)
        await courier.transfer(file, FOREVER_MS)
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
    assert seen <= {hashlib.sha256(body).hexdigest() for body in (old, new)}
    assert path.read_bytes() == new


async def test_concurrent_deliveries_of_one_order_are_harmless(way: Way) -> None:
    file = one_file(way, big(4))
    async with way.courier() as one, way.courier() as other:
        done = set(await asyncio.gather(*(c.transfer(file, FOREVER_MS) for c in (one, other))))
    assert done == {True}
    assert way.sshd.files() == {file.path: way.world.files[PREFIX + file.path]}


async def test_export_unlike_manifest_is_not_delivered(way: Way) -> None:
    file = one_file(way, b"one")
    way.world.files[PREFIX + file.path] = b"two"
    async with way.courier() as courier:
        with pytest.raises(Transient, match="made anew"):
            await courier.transfer(file, FOREVER_MS)
        del way.world.files[PREFIX + file.path]
        with pytest.raises(Transient, match="made anew"):
            await courier.transfer(file, FOREVER_MS)
    assert file.path not in way.sshd.files()
