"""A file that is hashed and counted while it is written."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A file that is done; `suffix` is what its name should end in."""

    path: Path
    suffix: str
    rows: int
    bytes: int
    sha256: str


class HashedFile:
    """A new file in a folder."""

    def __init__(self, folder: Path, suffix: str) -> None:
        # Buffered: gzip and CSV come in small pieces.
        self._file = tempfile.NamedTemporaryFile(dir=folder, suffix=suffix, delete=False)  # noqa: SIM115 - see `close`
        self.folder, self._suffix = folder, suffix
        self._digest = hashlib.sha256()
        self.bytes = 0

    def write(self, data: bytes) -> int:
        """Append bytes."""
        self._digest.update(data)
        self.bytes += len(data)
        return self._file.write(data)

    def flush(self) -> None:
        """Hand on to the system what is buffered; Arrow asks for it."""
        self._file.flush()

    @property
    def closed(self) -> bool:
        """Whether it is closed; Arrow asks."""
        return self._file.closed

    def close(self) -> None:
        """Close the file; again, it does nothing."""
        self._file.close()

    def made(self, rows: int) -> Made:
        """Close the file, and say what it is."""
        self.close()
        return Made(
            path=Path(self._file.name),
            suffix=self._suffix,
            rows=rows,
            bytes=self.bytes,
            sha256=self._digest.hexdigest(),
        )

    def discard(self) -> None:
        """Remove the file, unless it is done."""
        if not self._file.closed:
            self.close()
            Path(self._file.name).unlink(missing_ok=True)
