"""Folders that a test can read but not write, even if root runs it."""

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
    """Make a folder read-only; root drops its privileges, because permissions do not bind it."""
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
    """Make the folder writable inside such a block."""
    os.seteuid(os.getuid())
    folder.chmod(0o755)
    try:
        yield
    finally:
        folder.chmod(0o555)
        if os.getuid() == ROOT:
            os.seteuid(NOBODY)
