"""Secrets on this machine, from environment variables and files.

A name is `env:NAME` for a variable, `file:PATH` for any file, or a file in the folder of
secrets, with or without `secret:`. Errors never contain a secret.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from orbweaver.model.auth import ENV, FILE, SECRET, SSM
from orbweaver.model.errors import Permanent

if TYPE_CHECKING:
    from pathlib import Path

SECRET_BYTES_MAX = 1024 * 1024


class LocalSecrets:
    """Implements `Secrets` on this machine."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = environment

    async def read(self, name: str) -> str:
        if name.startswith(ENV):
            text = self._environment.get(name.removeprefix(ENV))
            if text is None:
                raise Permanent(f"there is no secret {name!r}: set the variable")
            return text
        if name.startswith(SSM):
            raise Permanent(f"{name!r} is a parameter of AWS, which only a stack reads")
        if name.startswith(FILE):
            path = self._folder / name.removeprefix(FILE)
            return await asyncio.to_thread(_text, path, name)
        return await asyncio.to_thread(self._read, name.removeprefix(SECRET))

    def _read(self, name: str) -> str:
        path = self._folder / name
        if not name or not path.resolve().is_relative_to(self._folder.resolve()):
            raise Permanent(f"{name!r} is not the name of a file in {self._folder}")
        return _text(path, name)


def _text(path: Path, name: str) -> str:
    try:
        with path.open("rb") as file:
            found = file.read(SECRET_BYTES_MAX + 1)
        if len(found) > SECRET_BYTES_MAX:
            raise Permanent(f"the secret {name!r} is longer than {SECRET_BYTES_MAX:,} bytes")
        return found.decode("utf-8").removesuffix("\n")
    except (OSError, UnicodeDecodeError) as error:
        said = f"there is no secret {name!r}: put its text into {path}"
        raise Permanent(f"{said} ({type(error).__name__})") from None
