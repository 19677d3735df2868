"""Definitions of new crawls: conversion between TOML and JSON, and a preview of the first page.

Invalid TOML is a normal result, not a failed request.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

from orbweaver.api.problems import Refused
from orbweaver.app.wiring import previewing
from orbweaver.control.definition import DefinitionError, DefinitionProblem, check, parse, read
from orbweaver.control.definition_lines import document_in, line_of, lines_of_keys, toml_of
from orbweaver.control.rule_trial import RuleTrial, StoredReader
from orbweaver.control.spec_checks import crawl_of
from orbweaver.model.url import redacted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orbweaver.app.ports import PortSet
    from orbweaver.control.crawl_control import Control
    from orbweaver.model.item_rules import ItemRule

T = TypeVar("T")
STAND_IN = "https://example.com/"
OWN_FUNCTION = "functions of your own are tried by `orbweaver extract --extractor FILE`"
TOML_CHARS_MAX = 1_000_000
LARGE = "`orbweaver start --config FILE` takes it"
# A single thread, so that many browser tabs slow the console down no more than one tab.
_READER = ThreadPoolExecutor(1, "definition")
_PLACE = re.compile(r" \(at line (\d+), column \d+\)$")


def forms_of(toml: str | None, document: Mapping[str, Any] | None) -> dict[str, Any]:
    """Convert a definition from TOML or from JSON to both.

    Raises Refused for too long TOML, DefinitionError for TOML that takes too long to parse.
    """
    text = toml_of(document or {}) if toml is None else toml
    if len(text) > TOML_CHARS_MAX:
        raise Refused(400, f"toml has more than {TOML_CHARS_MAX:,} characters: {LARGE}")
    try:
        read = document_in(text)
        return {"toml": text, "document": read, "lines": lines_of_keys(text), "broken": None}
    except DefinitionError:  # too expensive to parse
        raise
    except RecursionError:
        why, line = "it is nested too deeply", None
    except ValueError as error:
        place = _PLACE.search(str(error))
        why, line = _PLACE.sub("", str(error)), place and int(place[1])
    return {"toml": text, "document": None, "lines": {}, "broken": {"text": why, "line": line}}


async def off_loop(read: Callable[..., T], *given: Any) -> T:
    """Call `read` in the parser thread, because a large definition takes seconds of CPU."""
    return await asyncio.get_running_loop().run_in_executor(_READER, read, *given)


def rules_in(toml: str) -> tuple[tuple[ItemRule, ...], list[dict[str, Any]]]:
    """Parse a definition's item rules. If any is invalid, return all problems with line numbers."""
    forms = forms_of(toml, None)
    if (broken := forms["broken"]) is not None:
        return (), [{"path": "", **broken}]
    document = {"seeds": [STAND_IN], "items": forms["document"].get("items", [])}
    plan, problems = read(document)
    found = [*problems, *check(plan, problems)]
    found += [
        DefinitionProblem(f"items[{place}].extractor", OWN_FUNCTION)
        for place, rule in enumerate(plan.items)
        if rule.extractor is not None
    ]
    lines = forms["lines"]
    told = [{"path": one.path, "text": one.text, "line": line_of(one.path, lines)} for one in found]
    return plan.items, told


async def trial_of(
    ports: PortSet, control: Control, crawl: str, toml: str, url: str | None
) -> dict[str, Any]:
    """Try the item rules in `toml` on a run's stored page.

    If `url` is None, the rules are tried on several pages that match.
    """
    rules, problems = await off_loop(rules_in, toml)
    owner = await control.find(crawl)
    if problems or not rules:
        return {"problems": problems, "page": None, "coverage": None}
    reader = StoredReader(files=ports.files, reader=ports.reader, clock=ports.clock)
    trial = RuleTrial(lookout=control, reader=reader)
    if url is None:
        coverage = asdict(await trial.coverage(owner, rules))
        return {"problems": [], "page": None, "coverage": coverage}
    try:
        page = await trial.page(owner, url, rules)
    except ValueError as error:
        raise Refused(400, f"{redacted(url)!a} is no URL: {error}") from error
    return {"problems": [], "page": asdict(page), "coverage": None}


async def preview_of(ports: PortSet, document: Mapping[str, Any]) -> dict[str, Any]:
    """Fetch the page of a definition's first seed and check the links. Raises DefinitionError."""
    plan = await off_loop(parse, document)
    crawl = crawl_of(plan, ports.clock.now_ms())
    async with previewing(ports) as previewer:
        return asdict(await previewer.preview(crawl))
