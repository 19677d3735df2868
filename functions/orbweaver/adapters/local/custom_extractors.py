"""Extractors: functions of the user's own, in a module that is deployed with the worker.

- The module is imported once, by the container that needs it. Where that fails, every function of
  it fails with the same words, and pages have invalid items with that reason; the crawl goes on.
- Functions are those that the module defines itself, and whose names begin with no underscore.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from orbweaver.extraction.extract import Extractor
    from orbweaver.parsing.page import Page

# What the module is called where it is deployed, whatever the user's file is called.
MODULE = "orbweaver_extractor"


class ExtractorError(Exception):
    """A module cannot be imported; the text says why."""


def deployed(module: str) -> Mapping[str, Extractor]:
    """Return the functions of a module: its name where it is deployed, its file on a store."""
    if not module:
        return {}
    if module.endswith(".py"):
        try:
            return of_file(Path(module))
        except ExtractorError as error:
            return _Broken(str(error))
    try:
        return functions_of(importlib.import_module(module))
    except Exception as error:  # noqa: BLE001 - code of the user's own raises what it likes
        return _Broken(f"the module cannot be imported: {type(error).__name__}: {error}")


def of_file(path: Path) -> Mapping[str, Extractor]:
    """Return the functions of a file; raises ExtractorError."""
    if not path.is_file():
        raise ExtractorError(f"there is no {path}")
    spec = importlib.util.spec_from_file_location(MODULE, path)
    if spec is None or spec.loader is None:
        raise ExtractorError(f"{path} is no Python module")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        raise ExtractorError(f"{path} cannot be imported: {said}") from error
    return functions_of(module)


def functions_of(module: ModuleType) -> Mapping[str, Extractor]:
    """List the public functions that a module defines."""
    return {
        name: function
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if not name.startswith("_") and function.__module__ == module.__name__
    }


class _Broken(Mapping[str, "Extractor"]):
    """Every function there may be, and none that works."""

    def __init__(self, why: str) -> None:
        self._why = why

    def __getitem__(self, name: str) -> Extractor:
        def fail(_page: Page, _url: str) -> NoReturn:
            raise ExtractorError(self._why)

        return fail

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0
