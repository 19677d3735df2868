"""Read a crawl's definition from the arguments of a Python program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from orbweaver.control.crawl_spec import SETTINGS, CrawlSpec
from orbweaver.control.definition import parse, put_at
from orbweaver.model.crawl_settings import Setting


def spec_of(
    seeds: str | Sequence[str], definition: Mapping[str, Any] | None, options: Mapping[str, Any]
) -> CrawlSpec:
    """Return the definition of a crawl. Raises TypeError for an unknown option, or ValueError."""
    document: dict[str, Any] = dict(definition or {})
    given = [seeds] if isinstance(seeds, str) else [*seeds]
    if given:
        document["seeds"] = given
    for name, value in options.items():
        setting = _OPTIONS.get(name)
        if setting is None:
            near = get_close_matches(name, _OPTIONS, n=1)
            hint = (
                f": did you mean {near[0]}?" if near else ": docs/definition.md lists all options"
            )
            raise TypeError(f"there is no option {name!r}{hint}")
        put_at(document, setting.key, _value(setting, value))
    return parse(document)


def _name_of(setting: Setting) -> str:
    return setting.argument or setting.key.replace(".", "_")


def _value(setting: Setting, value: Any) -> Any:
    """Convert an option's value to a definition's value. True for a switch inverts its default."""
    if setting.kind == "switch" and not setting.metavar:
        if not isinstance(value, bool):
            raise TypeError(f"{_name_of(setting)} is True or False, not {value!r}")
        return value is not setting.default
    if isinstance(value, tuple):
        return [*value]
    return [value] if setting.kind == "texts" and isinstance(value, str) else value


_OPTIONS = {_name_of(setting): setting for setting in SETTINGS if setting.key != "seeds"}
