"""Folders that a test may read and not write, where it is run by root as well."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

ROOT, NOBODY = 0, 65_534


@contextmanager
def unwritable(folder: Path) -> Iterator[None]:
    """Take the right to write a folder; from root, whom permissions do not bind, all of root's."""
    folder.chmod(0o555)
    if os.getuid() == ROOT:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(os.getuid())
        folder.chmod(0o755)


@contextmanager
def writable(folder: Path) -> Iterator[None]:
    """Give it back for the length of a block within that."""
    os.seteuid(os.getuid())
    folder.chmod(0o755)
    try:
        yield
    finally:
        folder.chmod(0o555)
        if os.getuid() == ROOT:
            os.seteuid(NOBODY)
