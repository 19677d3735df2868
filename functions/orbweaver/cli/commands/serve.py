"""`serve`: work on a store until stopped: workers, schedules, webhooks, the HTTP API, metrics.

Each crawl that ends meanwhile is exported to `out/<crawl>`, where queries look. With `--out`, each
day is exported instead once it is over, as a stack does every night. An export is a process of its
own, because it holds an event loop up for as long as it takes.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from orbweaver.cli.command import WORKERS, command, option, store_option
from orbweaver.cli.commands.metrics import Board, address, listening, scraping
from orbweaver.cli.export_files import OUT, check_folder, check_writable
from orbweaver.cli.session import Session, store_session
from orbweaver.cli.store import opened_store
from orbweaver.exporting.manifest import MANIFESTS, days_between, manifest_path
from orbweaver.exporting.requests import LATE_HOURS
from orbweaver.model.page_record import DAY_MS
from orbweaver.model.settings import CORES, STORE

if TYPE_CHECKING:
    import argparse

    from orbweaver.cli.session import Surroundings

LISTEN = "127.0.0.1:8787"
# How often days are looked for that are over, and how many of those that were missed are made up.
LOOK_MS, DAYS_MAX = 10 * 60_000, 7
# How often crawls that have ended are looked for, and how long `orbweaver crawl` may take to begin
# to write the files of its own.
ENDED_LOOK_MS, ENDED_WAIT_MS = 5_000, 10_000


async def serve(arguments: argparse.Namespace, around: Surroundings) -> int:
    """Work on a store until that is ended from outside."""
    from orbweaver.app.store_service import (
        TOKEN_FILE,
        ScheduleClock,
        WebhookPoster,
        api_fence,
        http_api,
        kept_token,
        looking,
    )
    from orbweaver.app.wiring import keep_made

    host, port = address(arguments.listen)
    folder = around.folder / (arguments.store or STORE)
    place = None if arguments.out is None else around.folder / arguments.out
    if place is not None:
        check_folder(place, None)
        check_writable(place)
    async with opened_store(folder, around.environment, works=arguments.workers or CORES) as ports:
        keep_made()
        session = store_session(ports, works=True)
        board = Board(session=session)
        token = None if arguments.open else kept_token(folder)
        app = http_api(ports, api_fence((host, f"[{host}]"), token))
        app.router.add_get("/metrics", scraping(board))
        looks = [ScheduleClock(ports).look, WebhookPoster(ports).look]
        if place is not None:
            looks.append(DailyExport(session, place, _exporting(folder, place, around)).look)
        else:
            looks.append(ended_export(session, folder, around).look)
        async with listening(app, host, port) as urls, looking(*looks):
            around.note(*(f"serving {folder} on {url}; Ctrl-C ends it" for url in urls))
            if token is None:
                around.note("every program that reaches it may start, cancel and read crawls")
            else:
                around.note(f"requests need the token in {folder / TOKEN_FILE}")
            await asyncio.Event().wait()
    return 0


class DailyExport:
    """Exports days that are over into a folder, each until its manifest lies there."""

    def __init__(
        self, session: Session, place: Path, export: Callable[[str], Awaitable[object]]
    ) -> None:
        """Take what exports a day into that folder."""
        self._session, self._place, self._export = session, place, export
        self._next_ms = 0

    async def look(self) -> None:
        """Export what is over; what failed is tried again at a later look."""
        now_ms = self._session.ports.clock.now_ms()
        if now_ms < self._next_ms:
            return
        self._next_ms = now_ms + LOOK_MS
        crawls = await self._session.control.crawls()
        last_ms = now_ms - DAY_MS - LATE_HOURS * 3_600_000
        first_ms = min((crawl.started_at_ms for crawl in crawls), default=now_ms)
        for day in days_between(first_ms, last_ms)[-DAYS_MAX:]:
            if not (self._place / manifest_path(day)).is_file():
                await self._export(day)


class EndedExport:
    """Exports crawls into folders of their own, once they end while this process works.

    `orbweaver crawl` on the same store writes its own files: a crawl with a manifest has them.
    """

    def __init__(
        self, session: Session, out: Path, export: Callable[[str], Awaitable[object]]
    ) -> None:
        """Take the parent folder of all exports, and the function that exports a crawl."""
        self._session, self._out, self._export = session, out, export
        self._since_ms = session.ports.clock.now_ms()
        self._next_ms = 0
        # Crawls that were tried, and when they may be again.
        self._again_ms: dict[str, int] = {}

    async def look(self) -> None:
        """Export crawls that have ended; a failed export is repeated at a later look."""
        now_ms = self._session.ports.clock.now_ms()
        if now_ms < self._next_ms:
            return
        self._next_ms = now_ms + ENDED_LOOK_MS
        for crawl in await self._session.control.crawls():
            ended_ms = crawl.finished_at_ms
            if ended_ms is None or not self._since_ms <= ended_ms <= now_ms - ENDED_WAIT_MS:
                continue
            if now_ms < self._again_ms.get(crawl.id, 0):
                continue
            self._again_ms[crawl.id] = now_ms + LOOK_MS
            if any((self._out / crawl.id / MANIFESTS).rglob("*.json")):
                continue
            if (await self._session.control.status(crawl.id)).counters.claimed:
                await self._export(crawl.id)


def ended_export(session: Session, store: Path, around: Surroundings) -> EndedExport:
    """Make what exports crawls of a store to `out` below the folder of the command."""
    out = around.folder / OUT

    async def export(crawl_id: str) -> None:
        run = _exporting(store, out / crawl_id, around, "--crawl")
        await run(crawl_id)

    return EndedExport(session, out, export)


def _exporting(
    store: Path, place: Path, around: Surroundings, by: str = "--day"
) -> Callable[[str], Awaitable[object]]:
    """Make what runs `orbweaver export` of a day, or of a crawl."""
    words = ["-m", "orbweaver.cli.main", "export", "--store", str(store), "--out", str(place)]

    async def export(what: str) -> None:
        running = await asyncio.create_subprocess_exec(
            sys.executable,
            *words,
            by,
            what,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the process that it is typed at
        )
        try:
            code = await running.wait()
        except asyncio.CancelledError:
            running.terminate()
            await running.wait()
            raise
        said = "is exported" if code == 0 else "could not be exported, and is tried again later"
        around.note(f"{what} {said}")

    return export


COMMANDS = (
    command(
        "serve",
        "work on the crawls of a store until stopped; with schedules, webhooks and the HTTP API",
        serve,
        WORKERS,
        option(
            "--listen HOST:PORT",
            f"where the HTTP API and /metrics are ({LISTEN}); port 0 takes a free one",
            default=LISTEN,
        ),
        option(
            "--open",
            "answer requests without the token of the store: only on a machine and a network"
            " whose users may all start, cancel and read crawls",
        ),
        option(
            "--out DIR",
            "export each day once it is over, into this folder; default: each crawl to out/ID",
        ),
        parents=(store_option,),
    ),
)
