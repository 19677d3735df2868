"""`serve`: work on a store until stopped: workers, schedules, webhooks, the HTTP API, metrics."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from orbweaver.cli.command import WORKERS, command, option, store_option
from orbweaver.cli.commands.metrics import Board, address, listening, scraping
from orbweaver.cli.session import store_session
from orbweaver.cli.store import STORE, opened_store

if TYPE_CHECKING:
    import argparse

    from orbweaver.cli.session import Surroundings

LISTEN = "127.0.0.1:8787"


async def serve(arguments: argparse.Namespace, around: Surroundings) -> int:
    """Work on a store until that is ended from outside."""
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
        async with (
            listening(app, host, port) as urls,
            looking(ScheduleClock(ports).look, WebhookPoster(ports).look),
        ):
            around.note(*(f"serving {folder} on {url}; Ctrl-C ends it" for url in urls))
            await asyncio.Event().wait()
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
