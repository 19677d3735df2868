"""Files in a folder: when they reach the disk, and which folders a listing reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orbweaver.adapters.local.folder import FolderFiles

if TYPE_CHECKING:
    import pytest


async def test_durable_file_is_synced_before_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Order: sync the file, rename it, sync the folder. Without `durable` there is no sync."""
    synced: list[tuple[bool, bool]] = []

    def fsync(number: int) -> None:
        kind = Path(f"/proc/self/fd/{number}").resolve().is_dir()
        synced.append((kind, (tmp_path / "bodies" / "x").exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    await FolderFiles(tmp_path).put("bodies/y", b"1")
    assert synced == []
    await FolderFiles(tmp_path, durable=True).put("bodies/x", b"1")
    assert synced == [(False, False), (True, True)]


async def test_listing_reads_only_folders_of_prefix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = FolderFiles(tmp_path)
    for key in ("bodies/a/1", "exports/day/1", "exports/day/10", "exports/days/1", "exports/2"):
        await files.put(key, b"")
    looked: list[Path] = []
    scandir = os.scandir

    def watched(path: str) -> Any:
        looked.append(Path(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", watched)
    assert await files.list("exports/day/1") == ("exports/day/1", "exports/day/10")
    assert await files.list("nothing/here") == ()
    assert tmp_path / "bodies" not in looked
    assert await files.list("exports/d") == ("exports/day/1", "exports/day/10", "exports/days/1")
