"""SFTP servers: identity checks, and servers' limits and refusals."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import asyncssh
import pytest

from orbweaver.adapters.local.sftp import GROWING, WINDOW_BYTES
from orbweaver.delivery.plan import FileRemoval, host_keys_of
from orbweaver.exporting.manifest import PREFIX
from orbweaver.model.address_policy import PUBLIC_ONLY
from orbweaver.model.errors import Permanent, TooLarge, Transient
from tests.integration.delivery.conftest import Way
from tests.integration.delivery.sending import FOREVER_MS, big, deliverer, one_file
from tests.sites import sshd
from tests.sites.cutter import cutting
from tests.sites.sshd import Sshd
from tests.unit.delivering import exported, lies, taken


def other_key(kind: str = "ssh-ed25519") -> asyncssh.SSHKey:
    return asyncssh.generate_private_key(kind)


@pytest.mark.parametrize("kind", ["ssh-ed25519", "ecdsa-sha2-nistp256", "fingerprint"])
async def test_unknown_host_key_is_refused(way: Way, kind: str) -> None:
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
async def test_host_key_is_accepted_in_each_form(way: Way, written: str) -> None:
    key = way.sshd.host_key
    text = {
        "key": key,
        "line": f"# comment\n[{sshd.HOST}]:{way.sshd.port} {key}",
        "fingerprint": asyncssh.import_public_key(key).get_fingerprint("sha256"),
        "one of two": f"{other_key().export_public_key().decode()}\n{key}",
    }[written]
    async with way.courier(keys=host_keys_of(text)) as courier:
        assert await courier.read("nothing", 10) is None


async def test_refused_user_key_dead_letters_order_at_once(way: Way) -> None:
    exported(way.world.files, {"c": [b"one"]})
    key = other_key().export_private_key().decode()
    assert await deliverer(way, key=key).run(taken(), FOREVER_MS) == ()
    (mail,) = way.world.buried
    assert mail.reason is not None
    assert mail.reason.endswith("the server does not take the secret's key")
    assert way.world.sent == []


async def test_user_key_with_passphrase_is_accepted(way: Way) -> None:
    """The secret holds key and passphrase; no error contains the passphrase."""
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


async def test_non_public_address_is_not_dialled(way: Way) -> None:
    from orbweaver.adapters.local.sftp_connection import SftpIdentity, connected

    identity = SftpIdentity.parse(way.sshd.key)
    for host in (sshd.HOST, "localhost", "169.254.169.254"):
        with pytest.raises(Permanent, match="must not be dialled"):
            async with connected(replace(way.server(), host=host), identity, PUBLIC_ONLY):
                pass
    assert "Connection from" not in way.sshd.log.read_text().partition("rdomain")[2]


async def test_unreachable_server_is_retried_later(way: Way) -> None:
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


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Any]:
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


async def test_read_only_server_dead_letters_order_at_once(made: Callable[..., Any]) -> None:
    with made(internal="-R") as running:
        assert "permission denied" in await _refused(running)


async def test_server_without_extensions_is_supported(made: Callable[..., Any]) -> None:
    """Without fsync and posix-rename the existing file is removed before the rename."""
    from tests.integration.delivery.conftest import Way

    with made(internal="-P fsync,posix-rename") as running:
        way = Way(running)
        for body in (b"one", b"three"):
            file = one_file(way, body)
            async with way.courier() as courier:
                with_extensions = courier._sftp._handler
                with_extensions._supports_posix_rename = False
                with_extensions._supports_fsync = False
                assert await courier.transfer(file, FOREVER_MS)
            assert running.files() == {file.path: body}


async def test_write_once_server_gets_whole_files(
    way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gateways to object stores do not reopen files for writing, so a transfer restarts."""
    file = one_file(way, big(3))
    async with cutting(way.sshd.port) as cutter:
        cutter.limits.append(round(2.5 * WINDOW_BYTES))
        with pytest.raises(Transient):
            async with way.courier(port=cutter.port) as courier:
                await courier.transfer(file, FOREVER_MS)
    opened = asyncssh.SFTPClient.open

    async def once(sftp: asyncssh.SFTPClient, name: str, flags: int, **more: Any) -> Any:
        if flags == GROWING and await sftp.exists(name):
            raise asyncssh.SFTPFailure("Failure")
        return await opened(sftp, name, flags, **more)

    monkeypatch.setattr(asyncssh.SFTPClient, "open", once)
    async with way.courier() as courier:
        assert await courier.transfer(file, FOREVER_MS)
    assert way.sshd.files() == {file.path: way.world.files[PREFIX + file.path]}


async def test_full_disk_is_retried_later(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    """SFTP 3 reports a full disk as "Failure"; the file is not renamed."""
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


@pytest.mark.parametrize(
    ("free", "said"),
    [
        (2, "the server's disk is full: 2 bytes are free"),
        (9_000_000_000, "though 9,000,000,000 bytes are free: a quota may be full"),
        (None, "does not say why: its disk or a quota may be full"),
    ],
)
async def test_full_disk_is_named_in_error(
    way: Way,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    free: int | None,
    said: str,
) -> None:
    exported(way.world.files, {"c": [b"one"]})

    async def full(*_: object) -> int:
        raise asyncssh.SFTPFailure("Failure")

    async def room(*_: object) -> object:
        if free is None:
            raise asyncssh.SFTPOpUnsupported("no such extension")
        return SimpleNamespace(bavail=free, frsize=1)

    monkeypatch.setattr(asyncssh.SFTPClientFile, "write", full)
    monkeypatch.setattr(asyncssh.SFTPClient, "statvfs", room)
    assert await deliverer(way).run(taken(receives=3), FOREVER_MS) == ("m1",)
    errors = [str(vars(record).get("error", "")) for record in caplog.records]
    (error,) = filter(None, errors)
    assert said in error
    assert "; 0 of " in error


async def test_target_folder_is_created(way: Way, tmp_path: Path) -> None:
    file = one_file(way, b"one")
    near, far = way.sshd.folder / "in/box", tmp_path / "far"
    for folder, root in (("in/box", near), (str(far), far)):
        async with way.courier(folder=folder) as courier:
            assert await courier.transfer(file, FOREVER_MS)
            assert await courier.sizes([file.path, "other"]) == {file.path: 3}
        assert (root / file.path).read_bytes() == b"one"


async def test_read_of_missing_or_too_large_file_is_none(way: Way) -> None:
    async with way.courier() as courier:
        assert await courier.read("a/b", 10) is None
        await courier.write("a/b", b"0123456789")
        await courier.write("a/b", b"012")
        assert await courier.read("a/b", 10) == b"012"
        with pytest.raises(TooLarge):
            await courier.read("a/b", 2)
        await courier.remove([FileRemoval(path="a/b", sha256="0" * 64), FileRemoval(path="a/c")])
        assert await courier.read("a/b", 10) is None
    assert way.sshd.files() == {}


async def test_empty_folders_are_removed(way: Way) -> None:
    """A folder's name can contain personal data that must be erased. Other folders stay."""
    async with way.courier(folder="in/box") as courier:
        for path in ("items/shop/books/dt=1/a/x", "items/other/books/dt=1/b/x"):
            await courier.write(path, b"0")
        gone = [FileRemoval(path="items/shop/books/dt=1/a/x"), FileRemoval(path="items/never/x")]
        await courier.remove(gone)
        await courier.write("items/shop/again", b"0")
        await courier.remove([FileRemoval(path="items/shop/again")])
    folder = way.sshd.folder / "in/box"
    left = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    assert "items/other/books/dt=1/b/x" in left
    assert not any("shop" in path for path in left)
    async with way.courier(folder="in/box") as courier:
        await courier.remove([FileRemoval(path="items/other/books/dt=1/b/x")])
    assert list(folder.iterdir()) == []
