"""Contract of files: exports in a bucket or in a folder."""

from __future__ import annotations

import asyncio
import os
from hashlib import sha256
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from orbweaver.adapters.local.folder import FolderFiles
from orbweaver.model.errors import Permanent, TooLarge
from orbweaver.model.ports import Print
from tests.contract.worlds import AWS_WORLDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from orbweaver.model.ports import Files
    from tests.contract.worlds import Opener

NAMES = (
    "pages/2026-01-15/part-2.jsonl.gz",
    "pages/2026-01-15/part-10.jsonl.gz",
    "pagesX",
    "b/ü ?#%.csv",
)


@pytest.fixture(params=["memory", "folder", *AWS_WORLDS])
async def files(
    request: pytest.FixtureRequest, opener: Opener, tmp_path: Path
) -> AsyncIterator[Files]:
    if request.param == "folder":
        yield FolderFiles(tmp_path / "out")
        return
    async with opener(request.param) as world:
        yield world.container().files


async def test_file_is_read_as_written(files: Files) -> None:
    for number, body in enumerate((b"", b"\x00\xff\r\n", b"x" * 3_000_000)):
        await files.put(f"file-{number}", body)
        assert await files.get(f"file-{number}") == body


async def test_read_over_size_limit_is_refused(files: Files) -> None:
    await files.put("large", b"12345")
    assert await files.get("large", 5) == b"12345"
    with pytest.raises(TooLarge, match="5 bytes, and at most 4 are read"):
        await files.get("large", 4)
    assert await files.get("nothing", 4) is None


async def test_link_names_one_file_and_expires(files: Files) -> None:
    link = await files.link("b/ü ?#%.csv", 900)
    assert unquote(urlsplit(link).path).endswith("b/ü ?#%.csv")
    if link.startswith("http"):
        query = parse_qs(urlsplit(link).query)
        assert query["X-Amz-Expires"] == ["900"]
        assert query["X-Amz-Algorithm"] == ["AWS4-HMAC-SHA256"]


async def test_local_file_is_uploaded_whole(files: Files, tmp_path: Path) -> None:
    for number, body in enumerate((b"", b"\x00\xff\r\n", b"x" * 3_000_000)):
        local = tmp_path / "local"
        local.write_bytes(body)
        digest = sha256(body).hexdigest()
        await files.put_file(f"some/file-{number}", local, digest)
        assert await files.get(f"some/file-{number}") == body
        assert await files.print_of(f"some/file-{number}") == Print(bytes=len(body), sha256=digest)


async def test_file_facts_do_not_depend_on_upload_method(files: Files) -> None:
    await files.put("some/file", b"123")
    digest = sha256(b"123").hexdigest()
    assert await files.print_of("some/file") == Print(bytes=3, sha256=digest)
    for key in ("nothing", "some"):
        assert await files.print_of(key) is None


async def test_direct_subfolders_are_listed(files: Files) -> None:
    assert await files.folders("") == ()
    for name in ("pages/jsonl/a", "pages/csv/b/c", "items/x/y/z", "file"):
        await files.put(name, b"x")
    assert await files.folders("") == ("items/", "pages/")
    assert await files.folders("pages/") == ("pages/csv/", "pages/jsonl/")
    assert await files.folders("pages/jsonl/") == ()
    assert await files.folders("nothing/") == ()
    await files.delete(["items/x/y/z", "pages/csv/b/c"])
    assert await files.folders("") == ("pages/",)


async def test_range_read_returns_whole_range_or_fails(files: Files) -> None:
    await files.put("file", b"0123456789")
    assert await files.cut("file", 0, 4) == b"0123"
    assert await files.cut("file", 7, 3) == b"789"
    for offset, length in ((8, 3), (10, 1), (99, 1)):
        with pytest.raises(Permanent):
            await files.cut("file", offset, length)
    assert await files.cut("nothing", 0, 1) is None


async def test_absent_file_is_none(files: Files) -> None:
    await files.put("pages/one", b"1")
    assert await files.get("nothing") is None
    assert await files.get("pages") is None
    assert await files.get("pages/one/more") is None


async def test_file_is_replaced_by_last_write(files: Files) -> None:
    await files.put("name", b"first")
    await files.put("name", b"2nd")
    assert await files.get("name") == b"2nd"
    assert await files.list("") == ("name",)


async def test_concurrent_writers_leave_one_whole_file(files: Files) -> None:
    bodies = [bytes([number]) * 200_000 for number in range(5)]
    await asyncio.gather(*(files.put("name", body) for body in bodies))
    assert await files.get("name") in bodies
    assert await files.list("") == ("name",)


async def test_names_are_listed_by_prefix_sorted(files: Files) -> None:
    assert await files.list("") == ()
    for name in NAMES:
        await files.put(name, b"x")
    assert await files.list("") == tuple(sorted(NAMES))
    assert await files.list("pages/") == tuple(sorted(NAMES[:2]))
    assert await files.list("pages/2026-01-15/part-1") == (NAMES[1],)
    assert await files.list("nothing") == ()


async def test_delete_ignores_absent_files(files: Files) -> None:
    for name in NAMES:
        await files.put(name, b"x")
    await files.delete([NAMES[0], "nothing", NAMES[3]])
    await files.delete([])
    assert await files.list("") == tuple(sorted(NAMES[1:3]))


async def test_delete_of_more_than_1000_files(files: Files) -> None:
    await files.put("part-1004", b"x")
    await files.delete([f"part-{number:04}" for number in range(1_005)])
    assert await files.list("") == ()


@pytest.mark.parametrize("key", ["", "../outside", "a/../../outside", "/etc/outside"])
async def test_key_outside_folder_is_refused(tmp_path: Path, key: str) -> None:
    files = FolderFiles(tmp_path / "out")
    for attempt in (files.put(key, b"x"), files.get(key), files.delete([key])):
        with pytest.raises(Permanent):
            await attempt


async def test_unwritable_folder_reports_error_code(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"in the way")
    files = FolderFiles(tmp_path)
    with pytest.raises(Permanent, match="EEXIST"):
        await files.put("file/below", b"x")
    (tmp_path / "folder").mkdir()
    with pytest.raises(Permanent, match="EISDIR"):
        await files.put("folder", b"x")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]  # noqa: PTH208 - no blocking Path
