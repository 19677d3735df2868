"""Deliveries to a real OpenSSH server."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import asyncssh
import pytest

from orbweaver.adapters.memory import MemoryDeliveries, MemoryMetrics
from orbweaver.adapters.sftp import GROWING, WINDOW_BYTES
from orbweaver.core.delivery import Remains, ledger_path
from orbweaver.core.export import FORMATS, PREFIX, encode_manifest
from orbweaver.core.hostkey import host_keys_of
from orbweaver.delivery import Deliverer, Receiver
from orbweaver.ports import Permanent, TooLarge, Transient
from tests.sites import sshd
from tests.sites.cutter import cutting
from tests.unit.delivering import exported, lies, taken

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from orbweaver.core.export import File
    from tests.integration.delivery.conftest import Way
    from tests.sites.sshd import Sshd

FOREVER_MS = 10**15
# What SSH adds to what is sent: heads, checksums, and the beginning of a connection.
OVERHEAD = 1.02
HELLO_BYTES = 16 * 1024


def big(windows: float, seed: int = 1) -> bytes:
    """Make a body of so many windows."""
    return random.Random(seed).randbytes(round(windows * WINDOW_BYTES))


def deliverer(way: Way, **how: Any) -> Deliverer:
    """Put a deliverer together that leads to the server."""
    return Deliverer(
        files=way.files,
        receivers={"sftp": Receiver(formats=FORMATS, courier=way.opener(**how))},
        queue=MemoryDeliveries(way.world),
        clock=way.clock,
        metrics=MemoryMetrics(),
    )


def one_file(way: Way, body: bytes) -> File:
    """Export one file."""
    return exported(way.world.files, {"c": [body]}).files[0]


async def test_an_export_comes_whole(way: Way) -> None:
    """Files, ledger and manifest lie there as they lie in the bucket, and nothing else does."""
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


async def test_what_was_delivered_is_not_sent_again(way: Way) -> None:
    """The second order of the same export costs the hello and two readings."""
    exported(way.world.files, {"c": [big(1)]})
    async with cutting(way.sshd.port) as cutter:
        for _ in range(2):
            assert await deliverer(way, port=cutter.port).run(taken(), FOREVER_MS) == ()
    first, second = cutter.sent
    assert first > WINDOW_BYTES
    assert second < HELLO_BYTES


@pytest.mark.parametrize("windows", [0.4, 3.6, 8.2])
async def test_a_cut_connection_is_gone_on_from(way: Way, windows: float) -> None:
    """Mid-file the line breaks; the next attempt sends what was not acknowledged, and no more."""
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
    # One window at most comes twice.
    assert cutter.total <= (len(body) + WINDOW_BYTES) * OVERHEAD + 2 * HELLO_BYTES
    assert [mail.delay_s for mail in way.world.sent] == [60]


async def test_a_line_that_breaks_again_and_again_comes_to_an_end(way: Way) -> None:
    """Whatever the place of the cuts, each attempt that gets a window across is progress."""
    manifest = exported(way.world.files, {"c": [big(6)], "d": [big(3, 2)]})
    chance = random.Random(5)
    tries = 0
    async with cutting(way.sshd.port) as cutter:
        cutter.limits[:] = [chance.randrange(2, 4 * WINDOW_BYTES) for _ in range(8)]
        while await deliverer(way, port=cutter.port).run(taken(), FOREVER_MS):
            tries += 1
    assert tries >= 2
    lies(way.sshd.files(), manifest, way.world.files)


async def test_time_that_is_short_is_used(way: Way) -> None:
    """An invocation comes further by a window at least, and asks for another one."""
    body = big(4)
    manifest = exported(way.world.files, {"c": [body]})
    async with cutting(way.sshd.port) as cutter:
        for _ in range(3):
            assert manifest.path not in way.sshd.files()
            assert await deliverer(way, port=cutter.port).run(taken(), 0) == ()
    # Each but the last asked for another, at once: nothing failed.
    assert [(json.loads(mail.body)["day"], mail.delay_s) for mail in way.world.sent] == [
        (manifest.day, 0)
    ] * 2
    lies(way.sshd.files(), manifest, way.world.files)
    assert cutter.total <= (len(body) + 2 * WINDOW_BYTES) * OVERHEAD + 4 * HELLO_BYTES


async def test_another_version_of_a_file_is_not_gone_on_with(way: Way) -> None:
    """What was begun of the old content is removed, and the new one sent from its beginning."""
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
async def test_a_beginning_that_is_damaged_is_not_believed(way: Way, damage: str) -> None:
    """What a server lost of a part, or has too much, is found before the file has its name."""
    file = one_file(way, big(3))
    async with cutting(way.sshd.port) as cutter:
        cutter.limits.append(round(2.5 * WINDOW_BYTES))
        with pytest.raises(Transient):
            async with way.courier(port=cutter.port) as courier:
                await courier.bring(file, FOREVER_MS)
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
        assert await courier.bring(file, FOREVER_MS)
    assert way.sshd.files() == {file.path: way.world.files[PREFIX + file.path]}


async def test_nobody_sees_half_a_file(way: Way) -> None:
    """Whoever looks all the time sees the old content or the new one under a file's name."""
    old, new = big(2, 1), big(2, 2)
    file = one_file(way, old)
    path = way.sshd.folder / file.path
    async with way.courier() as courier:
        await courier.bring(file, FOREVER_MS)
        file = one_file(way, new)
        seen: set[str] = set()

        async def look() -> None:
            while True:
                seen.add(hashlib.sha256(await asyncio.to_thread(path.read_bytes)).hexdigest())

        looking = asyncio.create_task(look())
        await courier.bring(file, FOREVER_MS)
        await courier.bring(file, FOREVER_MS)
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
    assert seen <= {hashlib.sha256(body).hexdigest() for body in (old, new)}
    assert path.read_bytes() == new


async def test_two_who_bring_the_same_do_no_harm(way: Way) -> None:
    """An order that was delivered twice at the same time: both end, and the file is right."""
    file = one_file(way, big(4))
    async with way.courier() as one, way.courier() as other:
        done = set(await asyncio.gather(*(c.bring(file, FOREVER_MS) for c in (one, other))))
    assert done == {True}
    assert way.sshd.files() == {file.path: way.world.files[PREFIX + file.path]}


async def test_an_export_that_is_being_made_anew_is_not_delivered(way: Way) -> None:
    """Content that is not the manifest's gets no name, whether it changed or is gone."""
    file = one_file(way, b"one")
    way.world.files[PREFIX + file.path] = b"two"
    async with way.courier() as courier:
        with pytest.raises(Transient, match="made anew"):
            await courier.bring(file, FOREVER_MS)
        del way.world.files[PREFIX + file.path]
        with pytest.raises(Transient, match="made anew"):
            await courier.bring(file, FOREVER_MS)
    assert file.path not in way.sshd.files()


# --- who is there -----------------------------------------------------------------------------


def other_key(kind: str = "ssh-ed25519") -> asyncssh.SSHKey:
    """Make a key that nobody knows."""
    return asyncssh.generate_private_key(kind)


@pytest.mark.parametrize("kind", ["ssh-ed25519", "ecdsa-sha2-nistp256", "fingerprint"])
async def test_a_host_key_that_is_not_known_is_refused(way: Way, kind: str) -> None:
    """The order is put aside and says which key was shown; the server hears no user name."""
    exported(way.world.files, {"c": [b"one"]})
    if kind == "fingerprint":
        text = other_key().get_fingerprint("sha256")
    else:
        text = other_key(kind).export_public_key().decode()
    assert await deliverer(way, keys=host_keys_of(text)).run(taken(), FOREVER_MS) == ()

    (mail,) = way.world.buried
    shown = asyncssh.import_public_key(way.sshd.host_key).get_fingerprint("sha256")
    assert mail.reason is not None
    assert "shows a host key that sftp_host_key does not have" in mail.reason
    assert shown in mail.reason
    assert way.world.sent == []
    assert way.sshd.files() == {}
    assert way.sshd.user not in way.sshd.log.read_text().replace(str(way.sshd.folder), "")


@pytest.mark.parametrize("written", ["key", "line", "fingerprint", "one of two"])
async def test_a_host_key_is_known_however_it_is_written(way: Way, written: str) -> None:
    """By itself, as a line of known_hosts, by its fingerprint, and beside another one."""
    key = way.sshd.host_key
    text = {
        "key": key,
        "line": f"# comment\n[{sshd.HOST}]:{way.sshd.port} {key}",
        "fingerprint": asyncssh.import_public_key(key).get_fingerprint("sha256"),
        "one of two": f"{other_key().export_public_key().decode()}\n{key}",
    }[written]
    async with way.courier(keys=host_keys_of(text)) as courier:
        assert await courier.read("nothing", 10) is None


async def test_a_key_that_is_not_taken_is_said_once(way: Way) -> None:
    """The order is put aside at once, and neither it nor the error shows anything of the key."""
    exported(way.world.files, {"c": [b"one"]})
    key = other_key().export_private_key().decode()
    assert await deliverer(way, key=key).run(taken(), FOREVER_MS) == ()
    (mail,) = way.world.buried
    assert mail.reason is not None
    assert mail.reason.endswith("the server does not take the secret's key")
    assert way.world.sent == []


async def test_a_key_may_have_a_passphrase(way: Way) -> None:
    """It stands in the secret beside the key; without it no more is said than that."""
    key = asyncssh.import_private_key(way.sshd.key)
    locked = key.export_private_key(
        passphrase="open sesame", rounds=1, ignore_few_rounds=True
    ).decode()
    secret = json.dumps({"private_key": locked, "passphrase": "open sesame"})
    async with way.courier(key=secret) as courier:
        assert await courier.sizes(["x"]) == {}
    for wrong in (locked, json.dumps({"private_key": locked, "passphrase": "sesame"}), "no key"):
        with pytest.raises(Permanent, match="private key cannot be read") as raised:
            async with way.courier(key=wrong):
                pass
        assert "sesame" not in str(raised.value)


async def test_nobody_is_dialled_who_must_not_be(way: Way) -> None:
    """Addresses that are not public are refused, unless the stack is one that may dial them."""
    from orbweaver.adapters.sftp_connection import Identity, connected

    identity = Identity.of(way.sshd.key)
    for host in (sshd.HOST, "localhost", "169.254.169.254"):
        with pytest.raises(Permanent, match="must not be dialled"):
            async with connected(replace(way.server(), host=host), identity, ()):
                pass
    assert "Connection from" not in way.sshd.log.read_text().partition("rdomain")[2]


async def test_a_server_that_is_not_there_is_tried_later(way: Way) -> None:
    """A name that cannot be resolved, a port where nobody listens, and one who speaks no SSH."""
    quiet = await asyncio.start_server(lambda _, writer: writer.close(), sshd.HOST, 0)
    port = quiet.sockets[0].getsockname()[1]
    cases: list[dict[str, Any]] = [{"host": "nowhere.invalid"}, {"port": 1}, {"port": port}]
    try:
        for case in cases:
            with pytest.raises(Transient):
                async with way.courier(**case):
                    pass
    finally:
        quiet.close()


# --- what servers do --------------------------------------------------------------------------


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Any]:
    """Give what starts a server with other options."""
    if sshd.program() is None:
        pytest.skip(sshd.ABSENT)

    def serve(*options: str, internal: str = "") -> Any:
        return sshd.serving(tmp_path / "other", *options, internal=internal)

    return serve


async def _refused(running: Sshd) -> str:
    from tests.integration.delivery.conftest import Way

    way = Way(running)
    exported(way.world.files, {"c": [b"one"]})
    assert await deliverer(way).run(taken(), FOREVER_MS) == ()
    (mail,) = way.world.buried
    return mail.reason or ""


async def test_a_folder_that_may_not_be_written_is_said_once(made: Callable[..., Any]) -> None:
    """A server that serves for reading alone: the order is put aside with that."""
    with made(internal="-R") as running:
        assert "permission denied" in await _refused(running)


async def test_a_server_without_extensions_is_served_as_well(made: Callable[..., Any]) -> None:
    """Without fsync and posix-rename the file in the way is removed before the rename."""
    from tests.integration.delivery.conftest import Way

    with made(internal="-P fsync,posix-rename") as running:
        way = Way(running)
        for body in (b"one", b"three"):
            file = one_file(way, body)
            async with way.courier() as courier:
                with_extensions = courier._sftp._handler
                with_extensions._supports_posix_rename = False
                with_extensions._supports_fsync = False
                assert await courier.bring(file, FOREVER_MS)
            assert running.files() == {file.path: body}


async def test_a_server_that_takes_files_once_is_given_them_once(
    way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers in front of object stores open no file again for writing: it is begun anew."""
    file = one_file(way, big(3))
    async with cutting(way.sshd.port) as cutter:
        cutter.limits.append(round(2.5 * WINDOW_BYTES))
        with pytest.raises(Transient):
            async with way.courier(port=cutter.port) as courier:
                await courier.bring(file, FOREVER_MS)
    opened = asyncssh.SFTPClient.open

    async def once(sftp: asyncssh.SFTPClient, name: str, flags: int, **more: Any) -> Any:
        if flags == GROWING and await sftp.exists(name):
            raise asyncssh.SFTPFailure("Failure")
        return await opened(sftp, name, flags, **more)

    monkeypatch.setattr(asyncssh.SFTPClient, "open", once)
    async with way.courier() as courier:
        assert await courier.bring(file, FOREVER_MS)
    assert way.sshd.files() == {file.path: way.world.files[PREFIX + file.path]}


async def test_a_full_disk_is_waited_for(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    """SFTP 3 has no word for it but "Failure": it is tried again later, and no name is given."""
    manifest = exported(way.world.files, {"c": [b"one"]})

    async def full(*_: object) -> int:
        raise asyncssh.SFTPFailure("Failure")

    with monkeypatch.context() as patch:
        patch.setattr(asyncssh.SFTPClientFile, "write", full)
        assert await deliverer(way).run(taken(receives=3), FOREVER_MS) == ("m1",)
    assert [mail.delay_s for mail in way.world.sent] == [240]
    assert manifest.path not in way.sshd.files()
    assert await deliverer(way).run(taken(receives=4), FOREVER_MS) == ()
    lies(way.sshd.files(), manifest, way.world.files)


async def test_a_folder_of_ones_own(way: Way, tmp_path: Path) -> None:
    """Below the login's folder, or anywhere; folders that are missing are made."""
    file = one_file(way, b"one")
    near, far = way.sshd.folder / "in/box", tmp_path / "far"
    for folder, root in (("in/box", near), (str(far), far)):
        async with way.courier(folder=folder) as courier:
            assert await courier.bring(file, FOREVER_MS)
            assert await courier.sizes([file.path, "other"]) == {file.path: 3}
        assert (root / file.path).read_bytes() == b"one"


async def test_small_files_are_read_and_removed(way: Way) -> None:
    """What is not there is None and may be removed; what is too large is not read."""
    async with way.courier() as courier:
        assert await courier.read("a/b", 10) is None
        await courier.write("a/b", b"0123456789")
        await courier.write("a/b", b"012")
        assert await courier.read("a/b", 10) == b"012"
        with pytest.raises(TooLarge):
            await courier.read("a/b", 2)
        await courier.remove([Remains(path="a/b", sha256="0" * 64), Remains(path="a/c")])
        assert await courier.read("a/b", 10) is None
    assert way.sshd.files() == {}
