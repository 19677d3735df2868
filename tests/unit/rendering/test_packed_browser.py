"""A packed browser is unpacked once, completely or not at all."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orbweaver.model.compression import zstd_module
from orbweaver.model.settings import INSTALLED, SettingsError
from orbweaver.rendering.launch import (
    ARCHIVE,
    MANIFEST,
    BrowserUnusable,
    PackedBrowser,
    environment_of,
    find_program,
)

FILES = {
    "headless_shell": b"#!/bin/sh\necho $LD_LIBRARY_PATH $FONTCONFIG_PATH\n",
    "lib/libx.so": os.urandom(100_000),
    "fonts/Sans/Sans.ttf": os.urandom(5_000),
}


def packed(
    folder: Path, files: dict[str, bytes] = FILES, sizes: dict[str, int] | None = None
) -> PackedBrowser:
    folder.mkdir(exist_ok=True)
    with (
        zstd_module().open(folder / ARCHIVE, "wb") as out,
        tarfile.open(fileobj=out, mode="w|") as tar,
    ):
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o755 if "/" not in name else 0o644
            tar.addfile(member, io.BytesIO(content))
    known = {**{name: len(content) for name, content in files.items()}, **(sizes or {})}
    (folder / MANIFEST).write_text(json.dumps({"package": "small 1", "files": known}))
    parent = folder.parent / "unpacked"
    parent.mkdir(exist_ok=True)
    return PackedBrowser(folder=folder, parent=parent)


def folders(browser: PackedBrowser) -> list[Path]:
    assert browser.parent is not None
    return [path for path in browser.parent.iterdir() if path.suffix != ".lock"]


def test_browser_is_unpacked_with_libraries_and_fonts(tmp_path: Path) -> None:
    browser = packed(tmp_path / "packed")
    program = browser.unpacked()
    (folder,) = folders(browser)
    found = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    fonts = found.pop("fonts.conf").decode()
    assert found == FILES
    assert f"<dir>{folder}/fonts</dir>" in fonts
    environment = environment_of("/profile", program.environment)
    done = subprocess.run([program.path], env=environment, capture_output=True, check=True)
    assert done.stdout.decode().split() == [f"{folder}/lib", str(folder)]
    assert environment["HOME"] == "/profile"
    assert not os.access(folder / "lib" / "libx.so", os.X_OK)


def test_concurrent_calls_unpack_browser_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser, begun = packed(tmp_path / "packed"), []
    unpack = PackedBrowser._unpack

    def counted(self: PackedBrowser, target: Path, sizes: dict[str, int]) -> None:
        begun.append(target)
        unpack(self, target, sizes)

    monkeypatch.setattr(PackedBrowser, "_unpack", counted)
    with ThreadPoolExecutor(8) as pool:
        programs = {one.result().path for one in [pool.submit(browser.unpacked) for _ in range(8)]}
    assert programs == {browser.unpacked().path}
    assert len(begun) == len(folders(browser)) == 1


def test_incomplete_folder_is_unpacked_again(tmp_path: Path) -> None:
    browser = packed(tmp_path / "packed")
    (tmp_path / "unpacked").mkdir(exist_ok=True)
    program = Path(browser.unpacked().path)
    (folder,) = folders(browser)
    (folder / "lib" / "libx.so").write_bytes(b"short")
    unfinished = folder.with_suffix(".new")
    unfinished.mkdir()
    (unfinished / "headless_shell").write_bytes(b"half")
    assert Path(browser.unpacked().path) == program
    assert (folder / "lib" / "libx.so").read_bytes() == FILES["lib/libx.so"]
    assert folders(browser) == [folder]


def test_other_browser_gets_other_folder(tmp_path: Path) -> None:
    first = packed(tmp_path / "packed").unpacked()
    (tmp_path / "packed" / MANIFEST).write_text(
        (tmp_path / "packed" / MANIFEST).read_text().replace("small 1", "small 2")
    )
    second = PackedBrowser(folder=tmp_path / "packed", parent=tmp_path / "unpacked").unpacked()
    assert Path(first.path).exists()
    assert Path(second.path).parent != Path(first.path).parent


def cut(folder: Path) -> None:
    whole = (folder / ARCHIVE).read_bytes()
    (folder / ARCHIVE).write_bytes(whole[: len(whole) // 2])


def damaged(folder: Path) -> None:
    (folder / ARCHIVE).write_bytes(b"not an archive")


@pytest.mark.parametrize("damage", [cut, damaged])
def test_damaged_archive_is_refused_and_leaves_nothing(tmp_path: Path, damage: object) -> None:
    browser = packed(tmp_path / "packed")
    assert callable(damage)
    damage(browser.folder)
    with pytest.raises(BrowserUnusable, match=ARCHIVE):
        browser.unpacked()
    assert not folders(browser)


@pytest.mark.parametrize(
    ("sizes", "said"), [({"lib/liby.so": 7}, "lacks files"), ({"headless_shell": 7}, "lacks files")]
)
def test_wrong_file_size_is_refused(tmp_path: Path, sizes: dict[str, int], said: str) -> None:
    with pytest.raises(BrowserUnusable, match=said):
        packed(tmp_path / "packed", sizes=sizes).unpacked()


@pytest.mark.parametrize("name", ["../outside", "/outside", "other"])
def test_file_missing_from_manifest_is_refused(tmp_path: Path, name: str) -> None:
    browser = packed(tmp_path / "packed", {**FILES, name: b"x"})
    manifest = {"package": "", "files": {known: len(content) for known, content in FILES.items()}}
    (browser.folder / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(BrowserUnusable, match="holds"):
        browser.unpacked()
    assert not folders(browser)


def test_full_disk_leaves_no_file_and_next_call_retries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = packed(tmp_path / "packed")
    copy, full = shutil.copyfileobj, [True]

    def write(source: io.BytesIO, out: io.BytesIO, size: int) -> None:
        copy(source, out, size)
        if full.pop() if full else False:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", write)
    with pytest.raises(OSError, match="No space"):
        browser.unpacked()
    assert not folders(browser)
    assert Path(browser.unpacked().path).exists()


def test_find_program_follows_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The setting is a folder with a packed browser, a program, or `installed`."""
    browser = packed(tmp_path / "packed")
    unpack = find_program(str(browser.folder))
    assert callable(unpack)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "unpacked"))
    assert unpack().path == browser.unpacked().path
    assert find_program("/usr/bin/some-browser") == "/usr/bin/some-browser"
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert find_program(INSTALLED) == "/usr/bin/chromium-headless-shell"
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(SettingsError, match="ORBWEAVER_BROWSER is 'installed', and none is"):
        find_program(INSTALLED)
