"""Options of `crawl` and `start`. `cli/commands/crawl.py` has the functions of both commands."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from functools import cache
from typing import TYPE_CHECKING

from orbweaver.cli import crawl_options
from orbweaver.cli.command import (
    PORT_HELP,
    PROXIES,
    WORKERS,
    Command,
    add_formats,
    combined_options,
    json_option,
    log_options,
    option,
    out_option,
    progress_option,
    quiet_option,
    stack_options,
    store_option,
)

if TYPE_CHECKING:
    from orbweaver.cli.context import CliContext


def _crawl(arguments: Namespace, around: CliContext) -> int:
    from orbweaver.cli.commands.crawl import crawl

    return crawl(arguments, around)


def _start(arguments: Namespace, around: CliContext) -> int:
    from orbweaver.cli.commands.crawl import start

    return start(arguments, around)


@cache
def _plan() -> ArgumentParser:
    plan = ArgumentParser(add_help=False)
    crawl_options.add_plan(plan.add_argument_group("crawl options").add_argument)
    return plan


_CRAWL_OPTIONS = combined_options(
    WORKERS,
    option("--target local|aws", "crawl with the local stack instead of a store"),
    option("--port N", PORT_HELP),
    option("--extractor FILE", "module with custom extractor functions for [[items]]"),
    PROXIES,
    add_formats,
)


def _start_options(command: ArgumentParser) -> None:
    add = command.add_argument
    add("--wait", action="store_true", help="show progress until it ends")
    add("--id", help="id of this run; the same id again completes an interrupted start")
    key = "starts with the same key create one crawl, however often and from where"
    add("--idempotency-key", metavar="KEY", help=key)


COMMANDS = (
    Command(
        name="crawl",
        run=_crawl,
        options=_CRAWL_OPTIONS,
        parents=(
            _plan,
            store_option,
            json_option,
            out_option,
            progress_option,
            quiet_option,
            log_options,
        ),
    ),
    Command(
        name="start",
        run=_start,
        options=_start_options,
        parents=(_plan, stack_options, json_option, progress_option, quiet_option),
    ),
)
