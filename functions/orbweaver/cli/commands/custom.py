"""Custom extraction functions: find the user's module, and check it against the item rules.

`extract` and `check` import the given module, or else the module that cdk.json deploys. `crawl`
deploys the module to the stack on this machine. `start` needs a stack that already has the module.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from orbweaver.adapters.local.custom_extractors import ExtractorError, of_file
from orbweaver.cli.context import CliContext
from orbweaver.cli.exit_codes import UsageError
from orbweaver.model.settings import Settings

if TYPE_CHECKING:
    from orbweaver.extraction.extract import Extractor, ItemRule

OPTION = "--extractor"
EXTRACTOR_HELP = "module with custom extractor functions (default: the one in cdk.json)"
DOCUMENTED = "see docs/extraction.md"
FIX = f"orbweaver deploy -c extractor=FILE ({DOCUMENTED})"


def functions(
    file: Path | None, around: CliContext, rules: Sequence[ItemRule]
) -> Mapping[str, Extractor]:
    """Import the custom functions, if rules name any.

    `file` is the module, by default the module that cdk.json deploys. Raises UsageError if a
    function is missing.
    """
    named = [rule for rule in rules if rule.extractor is not None]
    file = file or (_deployed(around) if named else None)
    if not named or file is None:
        return {}
    try:
        found = of_file(around.folder / file)
    except ExtractorError as error:
        raise UsageError(f"extractor: {error}") from error
    for rule in named:
        if rule.extractor not in found:
            known = f"it has {', '.join(sorted(found))}" if found else "it has none"
            missing = f"{file} has no function {rule.extractor}"
            raise UsageError(f"items {rule.name}: extractor: {missing} ({known})")
    return found


def module_of(file: Path | None, around: CliContext, rules: Sequence[ItemRule]) -> str:
    """Return the path of the module with the functions that rules name, or "".

    Raises UsageError if a function is missing.
    """
    if not functions(file, around, rules):
        return ""
    return str((around.folder / (file or _deployed(around) or "")).resolve())


def check_known(file: Path | None, around: CliContext, rules: Sequence[ItemRule]) -> None:
    """Raise UsageError if rules name functions, but `file` and cdk.json name no module."""
    if not functions(file, around, rules):
        _refuse(rules, f"no module defines it: give {OPTION} FILE")


def check_deployed(settings: Settings, rules: Sequence[ItemRule], fix: str) -> None:
    """Raise UsageError if rules name functions, but a stack with these settings has no module."""
    if not settings.function.extractor:
        _refuse(rules, f"the stack has no custom functions: {fix}")


def context_of(file: Path | None, around: CliContext, rules: Sequence[ItemRule]) -> dict[str, str]:
    """Check the module `file`, and return the context key that deploys it. Raises UsageError."""
    if file is None:
        return {}
    if not functions(file, around, rules):
        raise UsageError(f"{OPTION}: no rule uses a function of {file}: {DOCUMENTED}")
    return {"extractor": str((around.folder / file).resolve())}


def _refuse(rules: Sequence[ItemRule], why: str) -> None:
    for rule in rules:
        if rule.extractor is not None:
            raise UsageError(f"items {rule.name}: extractor {rule.extractor}: {why}")


def _deployed(around: CliContext) -> Path | None:
    """Return the module with custom functions that cdk.json deploys, or None."""
    try:
        context = json.loads((around.folder / "cdk.json").read_text())["context"]
        return Path(context["extractor"]) if context.get("extractor") else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
