"""Deliver files over SFTP, resume interrupted transfers, and publish only complete files.

A file is sent as `<name>.<start of its SHA-256>.part`, in windows that the server acknowledges one
by one. The complete part is renamed. Sources: draft-ietf-secsh-filexfer-02 (SFTP 3), OpenSSH's
PROTOCOL (its extensions), asyncssh 2.24.
"""

from __future__ import annotations

import asyncio
import hashlib
import posixpath
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar, cast

import asyncssh

from orbweaver.adapters.local.sftp_connection import translated
from orbweaver.delivery.plan import FileRemoval
from orbweaver.exporting.manifest import File
from orbweaver.model.errors import Transient, check_size
from orbweaver.model.ports import Clock, Files

# A part resumes at the start of its last window, because requests within a window can overtake each
# other. Do not change this size, because parts written with another size would be misread.
WINDOW_BYTES = 4 * 1024 * 1024
# Bytes that are read back and compared before a transfer resumes. A server that crashed might have
# lost some.
COMPARED_BYTES = 64 * 1024
AT_ONCE = 16
DIGITS = 16
# Flags to open a part. Parts are never truncated, so two writers of one part write the same bytes
# to the same places.
GROWING = asyncssh.FXF_WRITE | asyncssh.FXF_CREAT
# Timeout of a window. It equals a minimum rate of 35 KB/s.
OPERATION_S = 120

T = TypeVar("T")

ABSENT = (asyncssh.SFTPNoSuchFile, asyncssh.SFTPNoSuchPath)


class SftpCourier:
    """Implements `Courier` for a folder on an SFTP server."""

    def __init__(
        self, sftp: asyncssh.SFTPClient, *, files: Files, prefix: str, folder: str, clock: Clock
    ) -> None:
        """Deliver files below `prefix` to `folder`, which can be relative to the login folder."""
        self._sftp = sftp
        self._files = files
        self._prefix = prefix
        self._folder = folder
        self._clock = clock
        self._folders: set[str] = set()

    async def read(self, path: str, bytes_max: int) -> bytes | None:
        with translated(f"reading {path}"):
            try:
                async with self._opened(self._remote_path(path), asyncssh.FXF_READ) as file:
                    size = (await file.stat()).size or 0
                    check_size(path, size, bytes_max)
                    return await _read(file, size, 0)
            except ABSENT:
                return None

    async def sizes(self, paths: Sequence[str]) -> Mapping[str, int]:
        found: dict[str, int] = {}

        async def look(path: str) -> None:
            size = await self._size(self._remote_path(path))
            if size is not None:
                found[path] = size

        await _for_each(look, paths)
        return found

    async def write(self, path: str, body: bytes) -> None:
        digest = hashlib.sha256(body).hexdigest()
        final = self._remote_path(path)
        part = _part_of(final, digest)
        with translated(f"writing {path}"):
            await self._make_folder(final)
            async with self._opened(part, GROWING) as file:
                await self._put(file, body, 0, (path, len(body)))
                await _flush(file)
            await self._put_in_place(part, final, len(body))

    async def remove(self, remains: Sequence[FileRemoval]) -> None:

        async def clear(one: FileRemoval) -> None:
            final = self._remote_path(one.path)
            names = [final] if one.sha256 is None else [final, _part_of(final, one.sha256)]
            with translated(f"removing {one.path}"):
                for name in names:
                    await self._unlink(name)

        await _for_each(clear, remains)
        with translated("removing folders"):
            await self._prune({posixpath.dirname(one.path) for one in remains})

    async def _prune(self, folders: set[str]) -> None:
        for folder in sorted(folders, key=lambda one: -one.count("/")):
            inner = folder
            while inner and await self._is_removed(self._remote_path(inner)):
                inner = posixpath.dirname(inner)

    async def _is_removed(self, folder: str) -> bool:
        self._folders.discard(folder)
        try:
            await _with_timeout(self._sftp.rmdir(folder))
        except ABSENT:
            return True  # so that its parent is checked too
        except asyncssh.SFTPError:
            return False  # it is not empty, or the server refuses
        return True

    async def transfer(self, file: File, deadline_ms: int) -> bool:
        final = self._remote_path(file.path)
        part = _part_of(final, file.sha256)
        with translated(f"bringing {file.path}"):
            await self._make_folder(final)
            start, digest = await self._begun(part, file)
            async with self._opened(part, GROWING) as remote:
                if not await self._write_windows(remote, file, start, digest, deadline_ms):
                    return False
                await _flush(remote)
            # The export may have been rewritten during the transfer.
            if digest.hexdigest() != file.sha256:
                await self._unlink(part)
                raise Transient(f"{file.path} is not what its manifest says: it is being made anew")
            await self._put_in_place(part, final, file.bytes)
        return True

    # --- growing a file ---------------------------------------------------------------------

    async def _begun(self, part: str, file: File) -> tuple[int, hashlib._Hash]:
        """Return the offset to resume a part at, and the hash of the file's bytes before it."""
        size = await self._size(part)
        if size is not None and size > file.bytes:
            await self._unlink(part)
            size = None
        start = (size - 1) // WINDOW_BYTES * WINDOW_BYTES if size else 0
        digest, last = hashlib.sha256(), b""
        for offset in range(0, start, WINDOW_BYTES):
            last = await self._window(file, offset)
            digest.update(last)
        if last and not await self._goes_on(part, start, last[-COMPARED_BYTES:]):
            await self._unlink(part)
            return 0, hashlib.sha256()
        return start, digest

    async def _goes_on(self, part: str, start: int, expected: bytes) -> bool:
        """Whether a part has the expected bytes before `start` and can be continued."""
        try:
            async with self._opened(part, asyncssh.FXF_READ) as file:
                if await _read(file, len(expected), start - len(expected)) != expected:
                    return False
            async with self._opened(part, GROWING):
                return True
        except (*ABSENT, asyncssh.SFTPFailure, asyncssh.SFTPOpUnsupported):
            # Servers in front of object stores can only write a file once, from start to end.
            return False

    async def _write_windows(
        self,
        remote: asyncssh.SFTPClientFile,
        file: File,
        start: int,
        digest: hashlib._Hash,
        deadline_ms: int,
    ) -> bool:
        """Write a file's windows from `start`.

        Return False if `deadline_ms` passed before the last.
        """
        ahead = await self._window(file, start)
        for offset in range(start, file.bytes, WINDOW_BYTES):
            window, following = ahead, offset + WINDOW_BYTES
            digest.update(window)
            ahead, _ = await asyncio.gather(
                self._window(file, following),
                self._put(remote, window, offset, (file.path, file.bytes)),
            )
            # At least two windows, because the first may have existed. So repeated calls complete.
            if start < offset < file.bytes - WINDOW_BYTES and self._clock.now_ms() >= deadline_ms:
                return False
        return True

    async def _put(
        self, remote: asyncssh.SFTPClientFile, body: bytes, offset: int, whole: tuple[str, int]
    ) -> None:
        """Write a window. An error contains the reason and the progress of the `whole` file.

        `whole` is the path and size of the file.
        """
        try:
            await _with_timeout(remote.write(body, offset))
        except asyncssh.SFTPFailure as error:
            path, size = whole
            why = await self._refusal_reason(
                posixpath.dirname(self._remote_path(path)) or ".", len(body)
            )
            done = f"{offset:,} of {size:,} bytes of {path} are written"
            raise Transient(f"bringing {path}: {why}; {done}") from error

    async def _refusal_reason(self, folder: str, wanted: int) -> str:
        # SFTP 3 has no code for a full disk.
        try:
            disk = await _with_timeout(self._sftp.statvfs(folder))
        except asyncssh.Error:
            return "the server takes no more, and does not say why: its disk or a quota may be full"
        free = disk.bavail * disk.frsize
        if free < wanted:
            return f"the server's disk is full: {free:,} bytes are free"
        return f"the server takes no more, though {free:,} bytes are free: a quota may be full"

    async def _window(self, file: File, offset: int) -> bytes:
        """Read a window of a file from the bucket, b"" after the end."""
        length = min(WINDOW_BYTES, file.bytes - offset)
        if length <= 0:
            return b""
        window = await self._files.cut(self._prefix + file.path, offset, length)
        if window is None:
            raise Transient(f"{file.path} is not in the bucket any more: it is being made anew")
        return window

    async def _put_in_place(self, part: str, final: str, size: int) -> None:
        there = await self._size(part)
        if there not in (size, None):
            raise Transient(f"the server has {there:,} bytes of {final}, and was sent {size:,}")
        try:
            await _with_timeout(self._rename(part, final))
        except ABSENT:
            # Another worker was faster, or an earlier attempt's rename did succeed.
            if await self._size(final) != size:
                raise

    async def _rename(self, part: str, final: str) -> None:
        try:
            await self._sftp.posix_rename(part, final)
        except asyncssh.SFTPOpUnsupported:
            # Without `posix-rename@openssh.com`, readers may miss the file for a moment.
            await self._unlink(final)
            await self._sftp.rename(part, final)

    # --- names ------------------------------------------------------------------------------

    @asynccontextmanager
    async def _opened(self, name: str, flags: int) -> AsyncIterator[asyncssh.SFTPClientFile]:
        async with await _with_timeout(self._sftp.open(name, flags, encoding=None)) as file:
            yield file

    def _remote_path(self, path: str) -> str:
        return posixpath.join(self._folder, path) if self._folder else path

    async def _make_folder(self, final: str) -> None:
        folder = posixpath.dirname(final)
        if folder and folder not in self._folders:
            await _with_timeout(self._sftp.makedirs(folder, exist_ok=True))
            self._folders.add(folder)

    async def _size(self, name: str) -> int | None:
        with translated(f"looking at {name}"):
            try:
                return (await _with_timeout(self._sftp.stat(name))).size
            except ABSENT:
                return None

    async def _unlink(self, name: str) -> None:
        try:
            await _with_timeout(self._sftp.remove(name))
        except ABSENT:
            return


def _part_of(final: str, sha256: str) -> str:
    return f"{final}.{sha256[:DIGITS]}.part"


async def _read(file: asyncssh.SFTPClientFile, length: int, offset: int) -> bytes:
    return cast("bytes", await _with_timeout(file.read(length, offset)))


async def _flush(file: asyncssh.SFTPClientFile) -> None:
    try:
        await _with_timeout(file.fsync())
    except asyncssh.SFTPOpUnsupported:
        return


async def _with_timeout(act: Awaitable[T]) -> T:
    async with asyncio.timeout(OPERATION_S):
        return await act


async def _for_each(act: Callable[[T], Awaitable[None]], things: Sequence[T]) -> None:
    for start in range(0, len(things), AT_ONCE):
        await asyncio.gather(*(act(thing) for thing in things[start : start + AT_ONCE]))
