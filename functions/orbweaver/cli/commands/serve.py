"""`serve`: run a store's workers, schedules, webhooks, HTTP API and metrics until stopped.

Each crawl that ends is exported to `out/<crawl>`, where `query` finds the files. With `--out`, each
day is exported once it is over, as a stack does every night. An export runs in a separate process,
because it would block the event loop.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from orbweaver.cli.command import PROXIES, WORKERS, command, log_options, option, store_option
from orbweaver.cli.commands.metrics import Board, address, listening, scraping
from orbweaver.cli.export_files import OUT, check_folder, check_writable
from orbweaver.cli.proxy_options import proxies_of
from orbweaver.cli.session import Session, store_session
from orbweaver.cli.store import opened_store
from orbweaver.exporting.manifest import MANIFESTS, days_between, manifest_path
from orbweaver.exporting.run_state import LATE_HOURS
from orbweaver.model.page_record import DAY_MS
from orbweaver.model.settings import CORES, STORE

if TYPE_CHECKING:
    import argparse

    from orbweaver.cli.context import CliContext

LISTEN = "127.0.0.1:8787"
# Interval of the check for past days without an export, and the maximum number of such days.
LOOK_MS, DAYS_MAX = 10 * 60_000, 7
# Interval of the check for ended crawls. An ended crawl is exported only after `ENDED_WAIT_MS`,
# because `orbweaver crawl` might write its files.
ENDED_LOOK_MS, ENDED_WAIT_MS = 5_000, 10_000


async def serve(arguments: argparse.Namespace, around: CliContext) -> int:
    from orbweaver.app.store_runner import store_settings
    from orbweaver.app.store_service import (
        TOKEN_FILE,
        ScheduleClock,
        WebhookPoster,
        api_fence,
        http_api,
        polling,
        read_or_create_token,
    )
    from orbweaver.app.wiring import keep_made

    host, port = address(arguments.listen)
    folder = around.folder / (arguments.store or STORE)
    place = None if arguments.out is None else around.folder / arguments.out
    if place is not None:
        check_folder(place, None)
        check_writable(place)
    proxies = proxies_of(arguments, around, store_settings(around.environment))
    works = arguments.workers or CORES
    opening = opened_store(folder, around.environment, works=works, proxies=proxies)
    async with opening as ports:
        keep_made()
        session = store_session(ports, works=True)
        board = Board(session=session)
        token = None if arguments.open else read_or_create_token(folder)
        app = http_api(ports, api_fence((host, f"[{host}]"), token))
        app.router.add_get("/metrics", scraping(board))
        looks = [ScheduleClock(ports).poll, WebhookPoster(ports).poll]
        if place is not None:
            looks.append(DailyExport(session, place, _exporting(folder, place, around)).poll)
        else:
            looks.append(ended_export(session, folder, around).poll)
        async with listening(app, host, port) as urls, polling(*looks):
            around.note(*(f"serving {folder} on {url}; press Ctrl-C to stop" for url in urls))
            if token is None:
                around.note("every program that can reach it may start, cancel and read crawls")
            else:
                around.note(f"requests need the token in {folder / TOKEN_FILE}")
            await asyncio.Event().wait()
    return 0


class DailyExport:
    """Exports past days into a folder. A day is exported completely when its manifest exists."""

    def __init__(
        self, session: Session, place: Path, export: Callable[[str], Awaitable[object]]
    ) -> None:
        self._session, self._place, self._export = session, place, export
        self._next_ms = 0

    async def poll(self) -> None:
        """Export past days that have no export yet. A later call retries a failed export."""
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
    """Exports crawls that end while this process runs, each into its own folder.

    A crawl whose folder has a manifest is skipped, because `orbweaver crawl` wrote its files.
    """

    def __init__(
        self, session: Session, out: Path, export: Callable[[str], Awaitable[object]]
    ) -> None:
        self._session, self._out, self._export = session, out, export
        self._since_ms = session.ports.clock.now_ms()
        self._next_ms = 0
        # By crawl id: the time before which a crawl is not exported again after a failure.
        self._again_ms: dict[str, int] = {}

    async def poll(self) -> None:
        """Export ended crawls that have no export yet. A later call retries a failed export."""
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


def ended_export(session: Session, store: Path, around: CliContext) -> EndedExport:
    """Return an exporter that writes each ended crawl of a store to `out` in the current folder."""
    out = around.folder / OUT

    async def export(crawl_id: str) -> None:
        run = _exporting(store, out / crawl_id, around, "--crawl")
        await run(crawl_id)

    return EndedExport(session, out, export)


def _exporting(
    store: Path, place: Path, around: CliContext, by: str = "--day"
) -> Callable[[str], Awaitable[object]]:
    """Return a function that runs `orbweaver export` to the folder `place` in a subprocess.

    Its argument is a day, or the crawl if `by` is `--crawl`.
    """
    words = ["-m", "orbweaver.cli.main", "export", "--store", str(store), "--out", str(place)]

    async def export(what: str) -> None:
        running = await asyncio.create_subprocess_exec(
            sys.executable,
            *words,
            by,
            what,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C must reach only the parent
        )
        try:
            code = await running.wait()
        except asyncio.CancelledError:
            running.terminate()
            await running.wait()
            raise
        said = "is exported" if code == 0 else "could not be exported; the export is retried later"
        around.note(f"{what} {said}")

    return export


COMMANDS = (
    command(
        "serve",
        serve,
        WORKERS,
        PROXIES,
        option(
            "--listen HOST:PORT",
            f"address of the HTTP API and /metrics ({LISTEN}); port 0 selects a free one",
            default=LISTEN,
        ),
        option(
            "--open",
            "accept requests without the token of the store; only on a machine and a network"
            " whose users may all start, cancel and read crawls",
        ),
        option(
            "--out DIR",
            "export each past day to this folder (default: each ended crawl to out/ID)",
        ),
        parents=(store_option, log_options),
    ),
)
