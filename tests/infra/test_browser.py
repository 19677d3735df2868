"""Browser of the renderer: the packed parts, and the package's digest."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
from pathlib import Path

import brotli
import pytest

from infra import browser, node
from infra.wheels import AssetError
from orbweaver.rendering.launch import MANIFEST, PackedBrowser

CHROMIUM = b"#!/bin/sh\necho started\n" + os.urandom(50_000)


def archive(files: dict[str, bytes], mode: str = "w") -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as tar:  # type: ignore[call-overload] # any mode
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return made.getvalue()


def package(**parts: bytes) -> bytes:
    files = {
        "bin/chromium.br": brotli.compress(CHROMIUM, quality=1),
        "bin/al2023.tar.br": brotli.compress(archive({"lib/libnss3.so": b"nss"})),
        "bin/fonts.tar.br": brotli.compress(
            archive({"fonts.conf": b"elsewhere", "fonts/Open/Sans.ttf": b"sans"})
        ),
        "bin/swiftshader.tar.br": b"not looked at",
        "LICENSE": b"MIT",
        **parts,
    }
    return archive({f"package/{name}": content for name, content in files.items()}, "w:gz")


def offered(monkeypatch: pytest.MonkeyPatch, content: bytes) -> list[Path]:
    """Let npm fetch this content; return the target folders."""
    fetched: list[Path] = []

    def fetch(_root: Path, folder: Path) -> bytes:
        fetched.append(folder)
        return content

    monkeypatch.setattr(browser, "_fetched", fetch)
    return fetched


def test_browser_is_packed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = package()
    fetched, store = offered(monkeypatch, content), tmp_path / "store"
    pinned = browser.digest_of(content)
    (store / "browser-old").mkdir(parents=True)
    folder = browser.obtain(tmp_path, store, pinned)
    assert browser.obtain(tmp_path, store, pinned) == folder
    assert len(fetched) == 1
    assert list(store.iterdir()) == [folder]
    (tmp_path / "tmp").mkdir()
    program = PackedBrowser(folder=folder, parent=tmp_path / "tmp").unpacked()
    found = Path(program.path)
    assert found.read_bytes() == CHROMIUM
    files = {one.relative_to(found.parent).as_posix() for one in found.parent.rglob("*.*")}
    assert files == {"lib/libnss3.so", "fonts/Open/Sans.ttf", "fonts.conf"}
    assert (found.parent / "LICENSE").read_bytes() == b"MIT"
    assert "elsewhere" not in (found.parent / "fonts.conf").read_text()
    assert pinned in json.loads((folder / MANIFEST).read_text())["package"]


def test_package_with_other_digest_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered(monkeypatch, package())
    with pytest.raises(AssetError, match=r"not the one pinned in infra/browser\.py"):
        browser.obtain(tmp_path, tmp_path / "store")
    assert list((tmp_path / "store").iterdir()) == []


def test_incomplete_package_is_refused(tmp_path: Path) -> None:
    whole = io.BytesIO(package())
    with tarfile.open(fileobj=whole) as tar:
        files = {one.name: tar.extractfile(one).read() for one in tar}  # type: ignore[union-attr] # files
    del files["package/bin/fonts.tar.br"]
    with pytest.raises(AssetError, match=r"holds no package/bin/fonts\.tar\.br"):
        browser.pack(archive(files, "w:gz"), tmp_path)


@pytest.mark.parametrize("found", [True, False])
def test_missing_npm_or_registry_explains_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, found: bool
) -> None:
    monkeypatch.setattr(node, "folder", lambda: tmp_path if found else None)
    monkeypatch.setattr(node, "npm", lambda _folder: ["npm"])

    def fail(*_: object, **__: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess([], 1, "", "no such host")

    monkeypatch.setattr(subprocess, "run", fail)
    with pytest.raises(AssetError, match="npm registry reachable" if found else "install Node"):
        browser._fetched(tmp_path, tmp_path)
