"""Secrets on this machine, from environment variables and files.

A name is `env:NAME` for a variable, or the name of a file. Errors never contain a secret.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from orbweaver.model.errors import Permanent

if TYPE_CHECKING:
    from pathlib import Path

VARIABLE = "env:"


class LocalSecrets:
    """Implements `Secrets` on this machine."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = environment

    async def read(self, name: str) -> str:
        if name.startswith(VARIABLE):
            text = self._environment.get(name.removeprefix(VARIABLE))
            if text is None:
                raise Permanent(f"there is no secret {name!r}: set the variable")
            return text
        return await asyncio.to_thread(self._read, name)

    def _read(self, name: str) -> str:
        path = self._folder / name
        if not name or not path.resolve().is_relative_to(self._folder.resolve()):
            raise Permanent(f"{name!r} is not the name of a file in {self._folder}")
        try:
            return path.read_text(encoding="utf-8").removesuffix("\n")
        except (OSError, UnicodeDecodeError) as error:
            said = f"there is no secret {name!r}: put its text into {path}"
            raise Permanent(f"{said} ({type(error).__name__})") from None
