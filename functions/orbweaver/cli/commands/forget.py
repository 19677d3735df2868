"""`forget`: erase a URL, a host or a crawl (erasure/erasure.py).

The user needs permissions that no function of the stack has (docs/privacy.md).
"""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING

from orbweaver.app.wiring import stores_of
from orbweaver.cli import text
from orbweaver.cli.command import answer, command, confirmed, exclusive_options, option
from orbweaver.cli.context import CliContext
from orbweaver.cli.exit_codes import FAILED, OK
from orbweaver.cli.session import Session, chosen
from orbweaver.cli.store import StorePlace
from orbweaver.control.crawl_control import ControlError
from orbweaver.erasure.scope import scope_of_crawl, scope_of_host, scope_of_url

if TYPE_CHECKING:
    from orbweaver.erasure.erasure import ErasurePreview, Forgotten
    from orbweaver.erasure.ports import Stores
    from orbweaver.erasure.scope import ErasureScope

# Displayed names of the counts, in the order in which the data are erased.
WORDS = {
    "dead_letters": "dead letters",
    "claims": "claims",
    "definitions": "definitions of crawls, changed",
    "samples": "lists of examples, changed",
    "records": "page records",
    "mentions_in_records": "records of other pages, changed",
    "bodies": "bodies",
    "texts": "texts",
    "screenshots": "screenshots",
    "links": "lists of links, of its pages or changed",
    "claim_files": "files of digests of claims, removed",
    "segments": "files of stored pages, changed or removed",
    "export_files": "exported files, changed or removed",
    "rows": "rows of them",
    "cells": "rows of them that mention it, changed",
    "snapshots": "files that change feeds compare with",
    "work_files": "files of unfinished exports",
    "tables": "tables of items, in the catalogue",
    "query_results": "results of all queries",
    "cookies": "sites' cookies in crawls",
    "hosts": "hosts",
    "crawls": "crawls",
}
ELSEWHERE = {
    "expiring": "messages, journals and waiting packs: workers skip the erased URLs in them. Most"
    " expire within 26 days, and packs of a paused crawl when it resumes or ends",
    "logs": "functions' logs may contain it for log_retention_d days: wait, or delete the streams",
    "backups": "point-in-time recovery keeps old tables for 35 days: restore none from before now"
    " or run this command on a restored table",
    "copies": "`export --out`, mails, webhooks, and deliveries of days without rows left: their"
    " holders must remove them",
}
# Keys of `ELSEWHERE` (data that the command cannot erase) that only a stack has.
OF_A_STACK = ("logs", "backups")
AGAIN = "a crawl that finds it stores it again: `exclude` in its definition prevents that"


def forget(arguments: Namespace, around: CliContext) -> int:
    if not arguments.yes and not arguments.dry_run:
        found = _counted(asyncio.run(_look(arguments, around)))
        warned = (*found, "and its data in files; this cannot be undone")
        if not confirmed(around, "forget", "erase it?", *warned, fix="--yes, or --dry-run"):
            around.note("nothing was erased")
            return FAILED
    return asyncio.run(_forget(arguments, around))


async def _look(arguments: Namespace, around: CliContext) -> Mapping[str, int]:
    async with chosen(arguments, around) as session:
        _, _, look = await _preview(arguments, session, around)
    return look.found


async def _forget(arguments: Namespace, around: CliContext) -> int:
    from orbweaver.erasure.erasure import Forgetter

    async with chosen(arguments, around, writes=not arguments.dry_run) as session:
        stores, scope, look = await _preview(arguments, session, around)
        if arguments.dry_run:
            done = await Forgetter(stores, around.note).count(scope, look)
        else:
            idle = session.place.reclaimed()  # must follow the reading of the crawls
            done = await Forgetter(stores, around.note, idle=idle).forget(scope, look)
        # Schedules whose definitions contain the erased URL or host are reported.
        found = await session.ports.schedules.list() if not arguments.dry_run else ()
        schedules = [one.name for one in found if scope.text(one.input)]
        elsewhere = _elsewhere(session)
    _show(done, "would be erased" if arguments.dry_run else "erased", elsewhere, arguments, around)
    if arguments.dry_run:
        return OK
    if not arguments.json:
        around.note("", "not erased by this command:", *text.table(list(elsewhere.items())))
        if arguments.crawl is None:
            around.note(AGAIN)
        around.note(
            *(f"the schedule {name} starts it again" for name in map(text.clean, schedules))
        )
    return FAILED if done.left else OK


async def _preview(
    arguments: Namespace, session: Session, around: CliContext
) -> tuple[Stores, ErasureScope, ErasurePreview]:
    """Return the scope of the erasure, and counts of the data in it.

    Raises ControlError if the data cannot be erased now.
    """
    from orbweaver.erasure.erasure import preview, refuse

    stores = stores_of(session.ports)
    scope = await _scope(arguments, stores)
    around.note("scanning the tables")
    look = await preview(stores, scope)
    if not arguments.dry_run:
        refuse(look)
    return stores, scope, look


async def _scope(arguments: Namespace, stores: Stores) -> ErasureScope:
    from orbweaver.erasure.erasure import exported

    crawls = await stores.crawls.list()
    try:
        if arguments.url is not None:
            return scope_of_url(arguments.url, crawls, mentions=arguments.mentions)
        if arguments.host is not None:
            return scope_of_host(arguments.host, mentions=arguments.mentions)
    except ValueError as error:
        raise ControlError(f"orbweaver forget: {error}") from error
    return scope_of_crawl(arguments.crawl, crawls, await exported(stores.files))


def _elsewhere(session: Session) -> Mapping[str, str]:
    """Return the data that the command cannot erase. A store has fewer such data than a stack."""
    if isinstance(session.place, StorePlace):
        return {place: words for place, words in ELSEWHERE.items() if place not in OF_A_STACK}
    return ELSEWHERE


def _show(
    done: Forgotten,
    word: str,
    elsewhere: Mapping[str, str],
    arguments: Namespace,
    around: CliContext,
) -> None:
    said = _counted(done.done)
    body = {"type": "result", "dry_run": arguments.dry_run, "forgotten": dict(done.done)}
    body |= {"left": list(done.left), "elsewhere": elsewhere}
    title = f"{word}:" if said else f"nothing {word}: no data found"
    answer(arguments, around, body, title, *said)
    if arguments.json:
        return
    if others := done.done.get("mentions", 0):
        what = text.plural(others, "record")
        around.note(f"stored bodies and texts of other pages mention it ({what}) and are kept")
        around.note("--mentions erases them, too")
    around.note(*(f"left: {line}" for line in map(text.clean, done.left)))


def _counted(counts: Mapping[str, int]) -> list[str]:
    rows = [(f"{counts[kind]:,}", words) for kind, words in WORDS.items() if counts.get(kind)]
    return text.table(rows, right=(0,))


_HOST = "all URLs of a host: example.org, example.org:8080 or https://example.org"
COMMANDS = (
    command(
        "forget",
        forget,
        exclusive_options(
            option("--url URL", "one URL, in all crawls"),
            option("--host HOST", _HOST),
            option("--crawl ID", "a run, or all runs of a name"),
            required=True,
        ),
        option("--mentions", "also erase bodies and texts of other pages that mention it"),
        option("--dry-run", "count without erasing"),
        option("--yes", "do not ask for confirmation"),
    ),
)
