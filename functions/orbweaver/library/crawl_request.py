"""A crawl as a Python program asks for it: seeds, a definition, and options by their names."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from orbweaver.control.crawl_spec import SETTINGS, CrawlSpec
from orbweaver.control.definition import parse
from orbweaver.model.crawl_settings import Setting

# Keys of a definition that are lists of tables have no option on the command line.
_TABLES = ("items", "rules")


def spec_of(
    seeds: str | Sequence[str], definition: Mapping[str, Any] | None, options: Mapping[str, Any]
) -> CrawlSpec:
    """Read what a program asks for; raises TypeError for an unknown option, or ValueError."""
    document: dict[str, Any] = copy.deepcopy(dict(definition or {}))
    given = [seeds] if isinstance(seeds, str) else [*seeds]
    if given:
        document["seeds"] = given
    for name, value in options.items():
        setting = _OPTIONS.get(name)
        if setting is None:
            near = get_close_matches(name, _OPTIONS, n=1)
            hint = f": did you mean {near[0]}?" if near else ": docs/definition.md has all of them"
            raise TypeError(f"there is no option {name!r}{hint}")
        _put(document, setting.key, _value(setting, value))
    return parse(document)


def _name_of(setting: Setting) -> str:
    """Name a setting as its option does: `--max-pages N` is max_pages."""
    if not setting.option:
        return setting.key if setting.key in _TABLES else setting.key.replace(".", "_")
    return setting.option.split()[0].lstrip("-").replace("-", "_")


def _value(setting: Setting, value: Any) -> Any:
    """Read a switch as its option does, which turns the default around; others as they are."""
    if setting.kind == "switch" and " " not in setting.option.partition("  ")[0]:
        if not isinstance(value, bool):
            raise TypeError(f"{_name_of(setting)} is True or False, not {value!r}")
        return value is not setting.default
    if isinstance(value, tuple):
        return [*value]
    return [value] if setting.kind == "texts" and isinstance(value, str) else value


def _put(document: dict[str, Any], key: str, value: Any) -> None:
    table, _, name = key.rpartition(".")
    holder = document.setdefault(table, {}) if table else document
    holder[name] = value


_OPTIONS = {_name_of(setting): setting for setting in SETTINGS if setting.key != "seeds"}
