"""`serve`: work on a store until stopped: workers, schedules, webhooks, the HTTP API, metrics."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from orbweaver.cli.command import WORKERS, command, option, store_option
from orbweaver.cli.commands.metrics import Board, address, scraping
from orbweaver.cli.exit_codes import UsageError
from orbweaver.cli.session import store_session
from orbweaver.cli.store import STORE, opened_store

if TYPE_CHECKING:
    import argparse

    from orbweaver.cli.session import Surroundings

LISTEN = "127.0.0.1:8787"


async def serve(arguments: argparse.Namespace, around: Surroundings) -> int:
    """Work on a store until that is ended from outside."""
    from aiohttp import web

    from orbweaver.app.store_service import (
        LOOPBACK,
        ScheduleClock,
        WebhookPoster,
        http_api,
        looking,
    )

    host, port = address(arguments.listen)
    folder = around.folder / (arguments.store or STORE)
    async with opened_store(folder, around.environment, works=arguments.workers) as ports:
        board = Board(session=store_session(ports, works=True))
        app = http_api(ports, LOOPBACK | {host, f"[{host}]"})
        app.router.add_get("/metrics", scraping(board))
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
            for name, bound, *_ in runner.addresses:
                shown = f"[{name}]" if ":" in name else name
                around.note(f"serving {folder} on http://{shown}:{bound}; Ctrl-C ends it")
            async with looking(ScheduleClock(ports).look, WebhookPoster(ports).look):
                await asyncio.Event().wait()
        except OSError as error:
            raise UsageError(
                f"--listen: {host}:{port} cannot be taken: {error.strerror}"
            ) from error
        finally:
            with contextlib.suppress(asyncio.CancelledError):
                await runner.cleanup()
    return 0


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
        parents=(store_option,),
    ),
)
