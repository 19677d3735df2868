"""Make the plan of a crawl from options, seed lists, and the definition that --config names."""

from __future__ import annotations

from argparse import Namespace
from itertools import chain
from typing import Any

from orbweaver.cli.context import CliContext
from orbweaver.cli.crawl_options import STANDARD_INPUT, given
from orbweaver.cli.exit_codes import UsageError
from orbweaver.cli.trust_files import absolute_files
from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.model.auth import absolute

# A delay above this causes a note, because the user might have meant milliseconds.
LONG_DELAY_MS = 30_000


def plan_of(arguments: Namespace, around: CliContext) -> CrawlSpec:
    """Make a plan from options and the definition that --config names. Raises UsageError."""
    parts = given(arguments) | _seeds_given(arguments, around)
    parts |= absolute_files(parts, around.folder)
    if (delay_ms := parts.get("delay_ms", 0)) > LONG_DELAY_MS:
        milliseconds = f" ({delay_ms // 1000}ms for milliseconds)" if delay_ms % 1000 == 0 else ""
        around.note(f"delay {delay_ms / 1000:g} s between two requests to a host{milliseconds}")
    if "auth" in parts:
        parts["auth"] = absolute(parts["auth"], f"{around.folder.resolve()}/")
    if arguments.config is None:
        return CrawlSpec(**parts)
    from orbweaver.cli.commands.init_check import plan_from

    return plan_from(arguments.config, parts, around)


def _seeds_given(arguments: Namespace, around: CliContext) -> dict[str, Any]:
    """Return the typed seeds and the seeds of lists as parts of a plan. Empty without seeds."""
    typed = [seed for seed in arguments.seeds if seed != STANDARD_INPUT]
    named = (*arguments.seed_lists, *(seed for seed in arguments.seeds if seed == STANDARD_INPUT))
    lists = tuple(dict.fromkeys(named))
    if arguments.column is not None and not lists:
        raise UsageError("--column names a column of a list: give --seeds FILE, too")
    if not (typed or lists):
        return {}
    if not lists:
        return {"seeds": tuple(typed)}
    from orbweaver.cli.seed_files import seeds_in

    listed = {name: seeds_in(name, around.folder, around, arguments.column) for name in lists}
    for name in (name for name, seeds in listed.items() if not seeds):
        around.note(f"{'the input' if name == STANDARD_INPUT else name} has no URL")
    return {"seeds": (*typed, *chain.from_iterable(listed.values()))}
