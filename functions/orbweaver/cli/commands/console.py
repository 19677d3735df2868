"""`console`: monitor and control crawls of a store, a local stack or AWS in a browser.

The server listens on this machine only and uses the credentials of the shell. docs/console.md
describes its access control.
"""

from __future__ import annotations

import asyncio
import secrets
import webbrowser
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from orbweaver.cli import option_types
from orbweaver.cli.command import command, option, stack_options
from orbweaver.cli.commands.metrics import address
from orbweaver.cli.context import CliContext
from orbweaver.cli.exit_codes import UsageError
from orbweaver.cli.export_files import OUT
from orbweaver.cli.session import Session, chosen, store_session
from orbweaver.cli.stack import StackPlace
from orbweaver.cli.store import opened_store, store_of

if TYPE_CHECKING:
    import argparse

    from orbweaver.cli.query.confined import ExportTables

LISTEN = "127.0.0.1:8788"
# A page that redirects to the console. All users of the machine can read command lines. They cannot
# read this file, so the token in the address remains secret.
DOOR = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={url}">\n'


async def console(arguments: argparse.Namespace, around: CliContext) -> int:
    from orbweaver.cli.audit.background import ExportedSites
    from orbweaver.console.actions import Actions
    from orbweaver.console.runs import CrawlWatcher, MeteredReadings, WatchedRuns
    from orbweaver.console.server import PlaceTaken, serving
    from orbweaver.console.stored import Tickets

    host, port = _place(arguments.listen)
    token = secrets.token_urlsafe(32)
    async with _session(arguments, around) as session:
        now_ms, poll_ms = around.clock.now_ms, round(session.place.poll_s * 1000)
        with _tables(arguments, around, session) as tables:
            sites = ExportedSites(tables=tables)
            actions = Actions(
                ports=session.ports,
                control=session.control,
                runs=WatchedRuns(
                    control=session.control,
                    watching=CrawlWatcher(MeteredReadings(session.read).read, now_ms, poll_ms),
                    where=session.place,
                    clock=around.clock,
                    newest=getattr(session.ports.pages, "newest", None),
                ),
                where=session.place,
                tables=tables,
                sites=sites,
                tickets=Tickets(now_ms),
            )
            try:
                async with (
                    aclosing(sites),
                    serving(actions, token, host, port) as url,
                ):
                    title = session.place.title
                    around.note(f"console of {title}, for this machine only; press Ctrl-C to stop")
                    around.write(f"{url}#token={token}")
                    with _opened(f"{url}#token={token}", around, wanted=not arguments.no_open):
                        await asyncio.Event().wait()
            except PlaceTaken as error:
                raise UsageError(f"--listen: {error}; port 0 selects a free one") from error
    return 0


@contextmanager
def _tables(
    arguments: argparse.Namespace, around: CliContext, session: Session
) -> Iterator[ExportTables]:
    """Open the tables of a stack's exports, or of exports in a folder."""
    from orbweaver.cli.query.confined import ExportTables

    named = arguments.source or OUT
    of_stack = arguments.source is None and isinstance(session.place, StackPlace)
    with TemporaryDirectory(prefix="orbweaver-") as folder:
        yield ExportTables(
            source=around.folder / named,
            named=named,
            folder=Path(folder),
            files=session.ports.files if of_stack else None,
        )


def _place(listen: str) -> tuple[str, int]:
    from orbweaver.api.fence import LOOPBACK

    host, port = address(listen)
    if host not in {*LOOPBACK, "::1"}:
        raise UsageError(
            f"--listen: other machines can reach {host[:60]}, and the console has no login."
            " For access from another one, use `ssh -L 8788:127.0.0.1:8788 -L 8789:127.0.0.1:8789`"
        )
    return host, port


@asynccontextmanager
async def _session(arguments: argparse.Namespace, around: CliContext) -> AsyncIterator[Session]:
    """Open the store or stack that the options name. With --workers, also run workers."""
    if not arguments.workers:
        async with chosen(arguments, around) as session:
            yield session
        return
    from orbweaver.app.store_service import ScheduleClock, WebhookPoster, polling
    from orbweaver.app.wiring import keep_made
    from orbweaver.cli.commands.serve import ended_export

    folder = store_of(arguments, around.folder, around.environment, makes=True)
    if folder is None:
        raise UsageError("--workers needs a store: a stack has its own workers")
    async with opened_store(folder, around.environment, works=arguments.workers) as ports:
        keep_made()
        session = store_session(ports, works=True)
        looks = [ScheduleClock(ports).poll, WebhookPoster(ports).poll]
        looks.append(ended_export(session, folder, around).poll)
        async with polling(*looks):
            yield session


@contextmanager
def _opened(url: str, around: CliContext, *, wanted: bool) -> Iterator[None]:
    """If `wanted`, open a browser at an address, through a file that only this user can read."""
    if not wanted:
        yield
        return
    with TemporaryDirectory(prefix="orbweaver-") as folder:
        door = Path(folder) / "console.html"
        door.write_text(DOOR.format(url=url))
        if not webbrowser.open(door.as_uri()):
            around.note("no browser found: open the address above in one")
        yield


COMMANDS = (
    command(
        "console",
        console,
        option(
            "--listen HOST:PORT",
            f"address, on this machine only ({LISTEN}); stored pages use the next port",
            default=LISTEN,
        ),
        option("--no-open", "print the address without opening a browser"),
        option(
            "--workers N",
            "also run this many workers on the store, as `serve` does (default: none)",
            type=option_types.processes,
            default=0,
        ),
        option(
            "--from DIR",
            f"folder of exports to query (default: {OUT}, or the exports of the stack)",
            dest="source",
        ),
        parents=(stack_options,),
    ),
)
