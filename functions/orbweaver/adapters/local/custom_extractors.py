"""Load the user's extractor functions from a module that is deployed with the worker.

All functions of the module are extractors if their names do not begin with an underscore.
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

# Name of the deployed module. The user's file can have another name.
MODULE = "orbweaver_extractor"


class ExtractorError(Exception):
    """The module cannot be imported. The text is the reason."""


def deployed(module: str) -> Mapping[str, Extractor]:
    """Return the functions of a module, given by name or file.

    If the module cannot be imported, every function exists and fails.
    """
    if not module:
        return {}
    if module.endswith(".py"):
        try:
            return of_file(Path(module))
        except ExtractorError as error:
            return _BrokenModule(str(error))
    try:
        return functions_of(importlib.import_module(module))
    except Exception as error:  # noqa: BLE001 - code of the user's own raises what it likes
        return _BrokenModule(f"the module cannot be imported: {type(error).__name__}: {error}")


def of_file(path: Path) -> Mapping[str, Extractor]:
    """Return the functions of a file. Raises ExtractorError."""
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
    return {
        name: function
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if not name.startswith("_") and function.__module__ == module.__name__
    }


class _BrokenModule(Mapping[str, "Extractor"]):
    """A module that cannot be imported: every function exists and fails. The crawl goes on."""

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
