"""Access files of exports by paths below a prefix, with retries of transient errors.

Files of a chunk are first written into a temporary folder.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Protocol, TypeVar

from orbweaver.exporting import formats
from orbweaver.exporting.formats import Writer
from orbweaver.exporting.formats.warc import WarcWriter
from orbweaver.exporting.manifest import PREFIX, File, Manifest, decode_manifest
from orbweaver.frontier.retrying import RetryPolicy, all_of
from orbweaver.model.columns import Table
from orbweaver.model.ports import Clock, Files, Print
from orbweaver.model.value import positional_value_class, value_class

T = TypeVar("T")
# Concurrent file operations: enough to hide S3's latency, and few enough to leave connections for
# other work.
AT_ONCE = 16


@value_class
class Store:
    """A bucket or a folder with retries. `prefix` is empty or ends in a slash."""

    files: Files
    clock: Clock
    random: Random
    prefix: str = PREFIX

    def key(self, path: str) -> str:
        return f"{self.prefix}{path}"

    @property
    def patience(self) -> RetryPolicy:
        return RetryPolicy(clock=self.clock, random=self.random)

    async def call(self, call: Callable[[], Awaitable[T]]) -> T:
        return await self.patience.call(call)

    async def each(self, calls: Iterable[Callable[[], Awaitable[T]]]) -> list[T]:
        """Call functions concurrently, at most `AT_ONCE` at a time, with retries.

        Returns their results in the order of `calls`.
        """
        return await all_of(map(self.call, calls), AT_ONCE)

    async def get(self, path: str) -> bytes | None:
        return await self.call(lambda: self.files.get(self.key(path)))

    async def put(self, path: str, body: bytes) -> None:
        await self.call(lambda: self.files.put(self.key(path), body))

    async def put_file(self, path: str, local: Path, sha256: str) -> None:
        await self.call(lambda: self.files.put_file(self.key(path), local, sha256))

    async def delete(self, paths: Sequence[str]) -> None:
        if paths:
            keys = [self.key(path) for path in paths]
            await self.call(lambda: self.files.delete(keys))

    async def folders(self, prefix: str) -> tuple[str, ...]:
        key = self.key(prefix)
        found = await self.call(lambda: self.files.folders(key))
        return tuple(prefix + name[len(key) :] for name in found)

    async def damaged(self, files: Sequence[File]) -> list[File]:
        """Return the files that are missing, or whose stored contents differ from the entry."""
        keys = [self.key(file.path) for file in files]
        prints = await self.each((lambda key=key: self.files.print_of(key)) for key in keys)  # type: ignore[misc]
        return [
            file
            for file, found in zip(files, prints, strict=True)
            if found != Print(bytes=file.bytes, sha256=file.sha256)
        ]

    async def manifest(self, path: str) -> tuple[bytes | None, Manifest | None]:
        body = await self.get(path)
        return body, None if body is None else decode_manifest(body)

    async def list(self, prefix: str) -> tuple[str, ...]:
        key = self.key(prefix)
        found = await self.call(lambda: self.files.list(key))
        return tuple(prefix + name[len(key) :] for name in found)


class ChunkWorkspace(Protocol):
    """Temporary folder of one chunk."""

    def writer(self, name: str, table: Table) -> Writer: ...

    def archive(self, name: str) -> WarcWriter: ...


class Workspace(Protocol):
    """Provides temporary folders."""

    def opened(self) -> AbstractContextManager[ChunkWorkspace]:
        """Create a temporary folder for a chunk. It is removed when the context ends."""


@value_class
class FolderWorkspace:
    """Provides temporary folders below `folder`. None: below the system's temporary folder."""

    folder: Path | None = None

    @contextmanager
    def opened(self) -> Iterator[ChunkWorkspace]:
        with TemporaryDirectory(dir=self.folder, prefix="orbweaver-") as folder:
            yield _ChunkFolder(Path(folder))


@positional_value_class
class _ChunkFolder:
    folder: Path

    def writer(self, name: str, table: Table) -> Writer:
        return formats.writer(name, table, self.folder)

    def archive(self, name: str) -> WarcWriter:
        return formats.archive(self.folder, name)
