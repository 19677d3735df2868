"""Definitions before a start: the same as TOML and as a document, and a look at the first page.

A text that is no TOML yet is no problem of a request: what is wrong with it is what was asked.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from orbweaver.app.wiring import previewing
from orbweaver.control.definition import parse
from orbweaver.control.definition_lines import lines_of_keys
from orbweaver.control.definition_toml import toml_of
from orbweaver.control.spec_checks import crawl_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orbweaver.app.ports import PortSet

_PLACE = re.compile(r" \(at line (\d+), column \d+\)$")


def forms_of(toml: str | None, document: Mapping[str, Any] | None) -> dict[str, Any]:
    """Read a definition from TOML, or write a document as TOML; the lines of its keys."""
    text = toml_of(document or {}) if toml is None else toml
    try:
        read = tomllib.loads(text)
        return {"toml": text, "document": read, "lines": lines_of_keys(text), "broken": None}
    except RecursionError:
        why, line = "it is nested too deeply", None
    except ValueError as error:
        place = _PLACE.search(str(error))
        why, line = _PLACE.sub("", str(error)), place and int(place[1])
    return {"toml": text, "document": None, "lines": {}, "broken": {"text": why, "line": line}}


async def preview_of(ports: PortSet, document: Mapping[str, Any]) -> dict[str, Any]:
    """Ask for the first page of a definition's crawl; raises DefinitionError."""
    crawl = crawl_of(parse(document), ports.clock.now_ms())
    async with previewing(ports) as previewer:
        return asdict(await previewer.preview(crawl))
