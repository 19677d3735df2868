"""`console`: see and steer crawls in a browser, over a store, a local stack or AWS.

It listens on this machine alone, with the credentials of the shell; docs/console.md says what keeps
others out.
"""

from __future__ import annotations

import asyncio
import secrets
import shlex
import webbrowser
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from orbweaver.cli import option_types
from orbweaver.cli.command import command, option, stack_options
from orbweaver.cli.commands.metrics import address
from orbweaver.cli.commands.workers import ask_to_switch
from orbweaver.cli.exit_codes import UsageError
from orbweaver.cli.export_files import OUT
from orbweaver.cli.session import Session, StackPlace, Surroundings, chosen, store_session
from orbweaver.cli.stack import ENDPOINT, REGIONS, StackUnreachable, sources_of
from orbweaver.cli.store import StorePlace, opened_store, store_of
from orbweaver.model.errors import Transient

if TYPE_CHECKING:
    import argparse

    from orbweaver.cli.query.confined import ExportTables

LISTEN = "127.0.0.1:8788"
# A file that leads a browser on: an address on a command line can be read by every user.
DOOR = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={url}">\n'


async def console(arguments: argparse.Namespace, around: Surroundings) -> int:
    """Serve the console until that is ended from outside."""
    from orbweaver.console.actions import Actions
    from orbweaver.console.runs import WatchedRuns
    from orbweaver.console.server import PlaceTaken, serving
    from orbweaver.console.tickets import Tickets
    from orbweaver.console.watching import MeteredReadings, Watching

    host, port = _place(arguments.listen)
    token = secrets.token_urlsafe(32)
    async with _session(arguments, around) as session:
        now_ms, poll_ms = around.clock.now_ms, round(session.place.poll_s * 1000)
        where = Whereabouts(session=session, stack=arguments.stack)
        with _tables(arguments, around, session) as tables:
            actions = Actions(
                ports=session.ports,
                control=session.control,
                runs=WatchedRuns(
                    control=session.control,
                    watching=Watching(MeteredReadings(session.read).look, now_ms, poll_ms),
                    where=where,
                    clock=around.clock,
                    newest=getattr(session.ports.pages, "newest", None),
                ),
                where=where,
                tables=tables,
                tickets=Tickets(now_ms),
            )
            try:
                async with serving(actions, token, host, port) as url:
                    around.note(
                        f"the console of {where.title}, for this machine alone; Ctrl-C ends it"
                    )
                    around.write(f"{url}#token={token}")
                    with _opened(f"{url}#token={token}", around, wanted=not arguments.no_open):
                        await asyncio.Event().wait()
            except PlaceTaken as error:
                raise UsageError(f"--listen: {error}; port 0 takes a free one") from error
    return 0


@contextmanager
def _tables(
    arguments: argparse.Namespace, around: Surroundings, session: Session
) -> Iterator[ExportTables]:
    """Have the tables of exports: those of a stack, or in a folder."""
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
            f"--listen: other machines can reach {host[:60]}, and the console knows no users."
            " From another one, `ssh -L 8788:127.0.0.1:8788 -L 8789:127.0.0.1:8789` brings it there"
        )
    return host, port


@asynccontextmanager
async def _session(arguments: argparse.Namespace, around: Surroundings) -> AsyncIterator[Session]:
    """Open what the options name; with --workers, work on a store as `serve` does."""
    if not arguments.workers:
        async with chosen(arguments, around) as session:
            yield session
        return
    from orbweaver.app.store_service import ScheduleClock, WebhookPoster, looking
    from orbweaver.app.wiring import keep_made
    from orbweaver.cli.commands.serve import ended_export

    folder = store_of(arguments, around.folder, around.environment, makes=True)
    if folder is None:
        raise UsageError("--workers: these would work on a store: a stack has its own")
    async with opened_store(folder, around.environment, works=arguments.workers) as ports:
        keep_made()
        session = store_session(ports, works=True)
        looks = [ScheduleClock(ports).look, WebhookPoster(ports).look]
        looks.append(ended_export(session, folder, around).look)
        async with looking(*looks):
            yield session


@dataclass(frozen=True, slots=True, kw_only=True)
class Whereabouts:
    """The store or stack of a session, in words."""

    session: Session
    # The name of the stack, where it is one.
    stack: str = ""

    @property
    def title(self) -> str:
        """Name it."""
        match self.session.place:
            case StorePlace(ports=ports):
                return f"the store {shlex.quote(str(ports.folder))}"
            case StackPlace(environment=environment):
                endpoint = environment.get(ENDPOINT)
                if endpoint:
                    return f"the stack on this machine, at {endpoint}"
                return f"the stack on AWS, in {environment.get(REGIONS[0], 'its region')}"
            case _:
                return "the stack"

    @property
    def billed(self) -> bool:
        """Whether what it uses is paid for."""
        return self.session.place.billed

    async def idle_workers(self) -> str | None:
        """Say that nothing works on what is queued, and what to type."""
        return await self.session.place.idle_workers()

    async def depths(self) -> dict[str, int] | None:
        """Count the messages on the queues."""
        found = await self.session.place.depths()
        return None if found is None else asdict(found)

    async def workers(self) -> dict[str, str] | None:
        """Say how the workers of a stack are switched; a store has no switch."""
        match self.session.place:
            case StackPlace(machine=machine, environment=environment, workers=named) if named:
                with _passing():
                    found = await asyncio.to_thread(sources_of, named, machine, environment)
                return {source.queue: source.state for source in found}
            case _:
                return None

    async def alarms(self) -> list[dict[str, Any]] | None:
        """List the alarms of a stack, those that are raised first; a store has none."""
        match self.session.place:
            case StackPlace(machine=machine, environment=environment):
                with _passing():
                    found = await asyncio.to_thread(machine.alarms, self.stack, environment)
                return None if found is None else [asdict(alarm) for alarm in found]
            case _:
                return []

    async def switch(self, *, on: bool) -> dict[str, str] | None:
        """Ask for the workers of a stack to be switched, which takes a while."""
        match self.session.place:
            case StackPlace(machine=machine, environment=environment, workers=named):
                act = partial(ask_to_switch, machine, named, environment, on=on)
                with _passing():
                    await asyncio.to_thread(act)
        return await self.workers()


@contextmanager
def _passing() -> Iterator[None]:
    """Have a stack that is out of reach be asked again."""
    try:
        yield
    except StackUnreachable as error:
        raise Transient(str(error)) from error


@contextmanager
def _opened(url: str, around: Surroundings, *, wanted: bool) -> Iterator[None]:
    """Open a browser at an address, by way of a file that this user alone can read."""
    if not wanted:
        yield
        return
    with TemporaryDirectory(prefix="orbweaver-") as folder:
        door = Path(folder) / "console.html"
        door.write_text(DOOR.format(url=url))
        if not webbrowser.open(door.as_uri()):
            around.note("there is no browser to open here: open that address in one")
        yield


COMMANDS = (
    command(
        "console",
        "see and steer crawls in a browser",
        console,
        option(
            "--listen HOST:PORT",
            f"where it is, on this machine alone ({LISTEN}); stored pages are on the next port",
            default=LISTEN,
        ),
        option("--no-open", "print the address, and open no browser"),
        option(
            "--workers N",
            "work on the store meanwhile, by so many processes, as `serve` does; default: none",
            type=option_types.positive,
            default=0,
        ),
        option(
            "--from DIR",
            f"exports to query: in this folder; default: {OUT}, or those of the stack",
            dest="source",
        ),
        parents=(stack_options,),
    ),
)
