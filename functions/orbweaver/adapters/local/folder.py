"""Files in a local folder.

A key is a path relative to the folder. A file is written to a temporary path and renamed, so that
readers see the whole file or none.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import file_digest
from pathlib import Path
from secrets import token_hex
from shutil import copyfile

from orbweaver.model.errors import Permanent, PortError, Transient, check_cut, check_size
from orbweaver.model.ports import Print

PARTIAL = ".partial"
# Errors after which a retry can succeed: they end by themselves, or when the disk has space.
TRANSIENT_ERRORS = frozenset(
    {
        errno.EAGAIN,
        errno.EINTR,
        errno.EIO,
        errno.EMFILE,
        errno.ENOENT,  # when writing: another writer has just removed the empty folder
        errno.ENFILE,
        errno.ENOSPC,
        errno.EDQUOT,
        errno.ETIMEDOUT,
    }
)


class FolderError(PortError):
    """The file system failed. The cause is the OSError."""


class _TransientFolderError(FolderError, Transient): ...


class _PermanentFolderError(FolderError, Permanent): ...


class FolderFiles:
    """Implements `Files` in a local folder."""

    def __init__(self, folder: Path, *, durable: bool = False) -> None:
        """`durable`: a write that returned survives a power failure."""
        self._folder = folder
        self._durable = durable

    async def put(self, key: str, body: bytes) -> None:
        await asyncio.to_thread(self._put, key, body)

    async def put_file(self, key: str, path: Path, sha256: str) -> None:
        del sha256  # not needed for a local file
        await asyncio.to_thread(self._put_file, key, path)

    async def print_of(self, key: str) -> Print | None:
        return await asyncio.to_thread(self._print_of, key)

    async def get(self, key: str, bytes_max: int | None = None) -> bytes | None:
        return await asyncio.to_thread(self._get, key, bytes_max)

    async def cut(self, key: str, offset: int, length: int) -> bytes | None:
        return await asyncio.to_thread(self._cut, key, offset, length)

    async def link(self, key: str, seconds: int) -> str:
        del seconds  # these links do not expire
        return self._path(key).absolute().as_uri()

    async def list(self, prefix: str) -> tuple[str, ...]:
        return await asyncio.to_thread(self._list, prefix)

    async def folders(self, prefix: str) -> tuple[str, ...]:
        return await asyncio.to_thread(self._folders, prefix)

    async def delete(self, keys: Sequence[str]) -> None:
        await asyncio.to_thread(self._delete, keys)

    async def delete_unmodified(self, prefix: str, since_ms: int) -> int:
        """Delete the files of folders that have no new file since a time. Return their number."""
        return await asyncio.to_thread(self._delete_unmodified, prefix, since_ms * 1_000_000)

    def _put(self, key: str, body: bytes) -> None:
        with self._partial(key) as partial:
            partial.write_bytes(body)

    def _put_file(self, key: str, source: Path) -> None:
        with self._partial(key) as partial:
            copyfile(source, partial)

    @contextmanager
    def _partial(self, key: str) -> Iterator[Path]:
        """Yield a temporary path, which is renamed to the file's path after the block."""
        with _port_errors(key):
            path = self._path(key)
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_name(f".{path.name}.{token_hex(4)}{PARTIAL}")
            try:
                yield partial
                if self._durable:
                    _sync(partial)
                partial.replace(path)
                if self._durable:
                    _sync(path.parent)
            finally:
                partial.unlink(missing_ok=True)

    def _print_of(self, key: str) -> Print | None:
        with _port_errors(key):
            try:
                with self._path(key).open("rb") as file:
                    digest = file_digest(file, "sha256").hexdigest()
                    return Print(bytes=file.tell(), sha256=digest)
            except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
                return None

    def _get(self, key: str, bytes_max: int | None) -> bytes | None:
        with _port_errors(key):
            try:
                path = self._path(key)
                check_size(key, path.stat().st_size, bytes_max)
                return path.read_bytes()
            except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
                return None

    def _cut(self, key: str, offset: int, length: int) -> bytes | None:
        with _port_errors(key):
            try:
                with self._path(key).open("rb") as file:
                    file.seek(offset)
                    return check_cut(key, file.read(length), length)
            except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
                return None

    def _list(self, prefix: str) -> tuple[str, ...]:
        with _port_errors(prefix):
            names = (
                path.relative_to(self._folder).as_posix()
                # All names with the prefix are in the prefix's own folder.
                for path in self._below(prefix.rpartition("/")[0]).rglob("*")
                if path.suffix != PARTIAL and path.is_file()
            )
            return tuple(sorted(name for name in names if name.startswith(prefix)))

    def _folders(self, prefix: str) -> tuple[str, ...]:
        with _port_errors(prefix):
            try:
                folders = [path for path in self._below(prefix).iterdir() if path.is_dir()]
            except (FileNotFoundError, NotADirectoryError):
                return ()
            return tuple(sorted(f"{prefix}{path.name}/" for path in folders))

    def _delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            with _port_errors(key):
                path = self._path(key)
                path.unlink(missing_ok=True)
                self._prune(path.parent)

    def _delete_unmodified(self, prefix: str, since_ns: int) -> int:
        deleted = 0
        with _port_errors(prefix):
            for root, _, names in os.walk(self._below(prefix)):
                folder = Path(root)
                # Another process may delete the same files.
                with suppress(FileNotFoundError):
                    # A store has many files. Files of a new folder are not checked.
                    if names and folder.stat().st_mtime_ns < since_ns:
                        for path in map(folder.joinpath, names):
                            if path.stat().st_mtime_ns < since_ns:
                                path.unlink()
                                deleted += 1
                        self._prune(folder)
        return deleted

    def _prune(self, folder: Path) -> None:
        while folder != self._folder and folder.is_relative_to(self._folder):
            try:
                folder.rmdir()
            except OSError:
                return
            folder = folder.parent

    def _below(self, prefix: str) -> Path:
        return self._path(prefix) if prefix else self._folder

    def _path(self, key: str) -> Path:
        # A check of the name alone. Asking the file system would take longer than reading a text.
        if not key or key.startswith("/") or os.path.normpath(key).split("/")[0] == "..":
            raise Permanent(f"{key!r} is not a name below the folder")
        return self._folder / key


def _sync(path: Path) -> None:
    """Flush a file or a folder's entries to disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


@contextmanager
def _port_errors(key: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        kind = _TransientFolderError if error.errno in TRANSIENT_ERRORS else _PermanentFolderError
        code = errno.errorcode.get(error.errno or 0, "unknown")
        raise kind(f"{key}: {code}") from error
