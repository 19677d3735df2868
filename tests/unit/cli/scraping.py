"""Scrape `orbweaver metrics` in the event loop that serves it."""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
from collections.abc import AsyncIterator

import aiohttp
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from orbweaver.cli.arguments import parse
from orbweaver.cli.commands import metrics
from tests.unit.cli.fakes import Stage

OPENMETRICS = "application/openmetrics-text; version=1.0.0"
Labels = frozenset[tuple[str, str]]


class Told(io.StringIO):
    """A stream that sets an event when something is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = asyncio.Event()

    def write(self, text: str) -> int:
        self.written.set()
        return super().write(text)


@contextlib.asynccontextmanager
async def serving(stage: Stage, line: str = "metrics --listen 127.0.0.1:0") -> AsyncIterator[str]:
    stage.err = told = Told()
    task = asyncio.create_task(metrics.metrics(parse(line.split()), stage.surroundings()))
    ready = asyncio.create_task(told.written.wait())
    try:
        await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        found = re.search(r"listening on (\S+)", stage.noted)
        assert found, stage.noted
        yield found[1]
    finally:
        ready.cancel()
        task.cancel()
        await asyncio.gather(task, ready, return_exceptions=True)


async def scraped(url: str, accept: str = OPENMETRICS) -> tuple[int, str, str]:
    async with (
        aiohttp.ClientSession() as client,
        client.get(url, headers={"accept": accept}) as answer,
    ):
        return answer.status, answer.headers["content-type"], await answer.text()


def samples(text: str) -> dict[tuple[str, Labels], float]:
    """Parse OpenMetrics with the strict parser."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
        for sample in family.samples
    }
