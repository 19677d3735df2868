"""Crawls an application in virtual time: the real worker, in-memory tables, recorded answers.

    python -m bench.yields.replay cgit --seeds 12 --requests 250,500,1000

The order of answers decides which URLs are requested next, so one crawl shows little about an order
of requests. Here a random seed determines the answers' times, and a crawl of a thousand requests
takes some seconds: compare two orders with the same dozen seeds. Answers are stored in
.local/yield/answers (delete it together with the application's folder in .local/yield/apps).
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import http.client
import itertools
import json
import logging
import statistics
from base64 import b64decode, b64encode
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from bench.serving import ADDRESS, HOME, Place
from bench.yields.application import placed
from bench.yields.applications import ALL
from bench.yields.judging import Request as Asked
from bench.yields.judging import novel, shares
from orbweaver.app.store_runner import BATCH_MESSAGES, BATCH_S, BATCHES
from orbweaver.frontier.messages import encode
from orbweaver.model.http_exchange import Response
from orbweaver.worker.pack import Delivery
from tests.memory import Moment
from tests.simulation import loop
from tests.unit.stage import CRAWL, NOW_MS, SmallWeb, Stage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bench.yields.application import Application
    from orbweaver.model.http_exchange import Failure, Request
    from orbweaver.worker.batch import Worker
    from tests.memory import ManualClock

PORT, LIMIT_S, BODY_BYTES_MAX = 4_599, 60.0, 1 << 20
AT_ONCE, POLL_S = 16, 0.02
# Seconds per answer: minimum, mean addition, and concurrent answers that add the same again.
LEAST_S, MORE_S, SHARED = 0.01, 0.03, 8
# Mean seconds of a table's operation, if there are several containers.
TABLE_S = 0.004
# A longer crawl is stuck.
LONGEST_S = 10_000.0

# Status, headers by lower-case names, body.
Kept: TypeAlias = tuple[int, dict[str, str], bytes]


class Answers:
    """The answers of an application, each requested once."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        self._path = path
        self._kept: dict[str, Kept] = {}
        with path.open(encoding="utf-8") as stored:
            for line in stored:
                target, status, headers, body = json.loads(line)
                self._kept[target] = (status, headers, b64decode(body))

    def get(self, target: str) -> Kept:
        kept = self._kept.get(target)
        if kept is None:
            kept = self._kept[target] = _asked(target)
            status, headers, body = kept
            with self._path.open("a", encoding="utf-8") as stored:
                print(json.dumps([target, status, headers, b64encode(body).decode()]), file=stored)
        return kept


def _asked(target: str) -> Kept:
    connection = http.client.HTTPConnection(ADDRESS, PORT, timeout=LIMIT_S)
    try:
        connection.request("GET", target, headers={"User-Agent": "Orbweaver"})
        answer = connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return answer.status, headers, answer.read(BODY_BYTES_MAX)
    finally:
        connection.close()


class _Clock:
    """The time of the event loop."""

    def now_ms(self) -> int:
        return NOW_MS + round(asyncio.get_running_loop().time() * 1000)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))


class _Web:
    """Recorded answers, each after a time determined by the seed."""

    def __init__(self, answers: Answers, seed: int) -> None:
        self.requests: list[Asked] = []
        self._answers = answers
        self._random = Random(seed)
        self._busy = 0

    async def fetch(self, request: Request) -> Response | Failure:
        target = request.url.removeprefix(f"http://{ADDRESS}:{PORT}") or "/"
        status, headers, body = self._answers.get(target)
        at_us = round(asyncio.get_running_loop().time() * 1e6)
        self.requests.append(Asked(at_us=at_us, status=status, method="GET", target=target))
        self._busy += 1
        alone_s = LEAST_S + self._random.expovariate(1 / MORE_S)
        taken_s = alone_s * (1 + self._busy / SHARED)
        await asyncio.sleep(taken_s)
        self._busy -= 1
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        read = body[: request.body_bytes_max] if kind in request.accept else None
        return Response(
            status=status,
            headers=headers,
            body=read,
            latency_ms=round(taken_s * 1000),
            received=len(body),
        )


@dataclass(slots=True)
class _Queue:
    """Sent messages by due time, received by workers in batches.

    A single worker processes several batches at once, like the process of a local store. Several
    workers have one batch at a time and their own caches, like containers. Their tables take time,
    so that they run concurrently.
    """

    stage: Stage
    workers: Sequence[Worker]
    random: Random

    async def drain(self, first: str) -> None:
        numbers = itertools.count()
        due: list[tuple[float, int, str]] = [(0.0, next(numbers), first)]
        running: set[asyncio.Task[None]] = set()
        several = len(self.workers) > 1
        idle = [*self.workers] if several else [*self.workers] * BATCHES
        now = asyncio.get_running_loop().time
        while due or running or self.stage.world.sent:
            for mail in self.stage.world.sent:
                heapq.heappush(due, (now() + mail.delay_s, next(numbers), mail.body))
            self.stage.world.sent.clear()
            ready: list[tuple[float, int, str]] = []
            while idle and due and due[0][0] <= now():
                ready.append(heapq.heappop(due))
            if several:
                self.random.shuffle(ready)
                self.random.shuffle(idle)
            while idle and ready:
                bodies = [body for _, _, body in ready[:BATCH_MESSAGES]]
                del ready[:BATCH_MESSAGES]
                worker = idle.pop()
                task = asyncio.ensure_future(self._work(worker, bodies))
                running.add(task)
                task.add_done_callback(running.discard)
                task.add_done_callback(partial(_let, idle, worker))
            for entry in ready:
                heapq.heappush(due, entry)
            await asyncio.sleep(POLL_S)
            if now() > LONGEST_S:
                message = "the crawl stands still"
                raise RuntimeError(message)

    async def _work(self, worker: Worker, bodies: Sequence[str]) -> None:
        deliveries = [
            Delivery(id=str(place), body=body, receives=1) for place, body in enumerate(bodies)
        ]
        until_ms = self.stage.clock.now_ms() + round(BATCH_S * 1000)
        if failed := await worker.run(deliveries, until_ms):
            message = f"{len(failed)} of {len(bodies)} messages failed"
            raise RuntimeError(message)


def _let(idle: list[Worker], worker: Worker, _task: object) -> None:
    idle.append(worker)


def crawl(answers: Answers, start: str, pages: int, seed: int, workers: int = 1) -> Sequence[Asked]:
    """Crawl an application with a page limit. Return its requests in order of their start."""
    stage = Stage(clock=cast("ManualClock", _Clock()))
    web = _Web(answers, seed)
    stage.web = cast("SmallWeb", web)
    times = Random(seed + 1)

    async def gate(_effect: str, moment: Moment) -> None:
        if workers > 1 and moment is Moment.BEFORE:
            await asyncio.sleep(times.expovariate(1 / TABLE_S))

    containers: list[Worker] = []
    for _ in range(workers):
        stage.restart(gate)
        containers.append(stage.worker)
    ordered = replace(CRAWL, seeds=(start,), pages_max=pages, concurrency=AT_ONCE, obey_robots=True)
    queue = _Queue(stage, containers, Random(seed))
    loop.run(queue.drain(encode(stage.begin(ordered, start))))
    return sorted(web.requests, key=lambda request: request.at_us)


def measured(application: Application, place: Place, asked: argparse.Namespace) -> None:
    """Crawl with each seed, and print the shares found, with medians last."""
    truth = application.made(place)
    application.serve(place, PORT)
    answers = Answers(HOME / "answers" / f"{application.name}.jsonl")
    points = sorted(map(int, asked.requests.split(",")))
    start = f"http://{ADDRESS}:{PORT}/"
    rows: list[list[float]] = []
    for seed in range(asked.first, asked.first + asked.seeds):
        requests = crawl(answers, start, points[-1], seed, asked.workers)
        counts = novel(requests, truth, application.keys_of)
        counts += [0] * (points[-1] - len(counts))
        found = shares(counts, len(truth.articles), points)
        rows.append([100 * (share or 0.0) for share in found])
        again = len(requests) - len({request.target for request in requests})
        shown = (f"{share:6.1f}" for share in rows[-1])
        print(f"seed {seed:3}", *shown, f"{again:4} again" if again else "", flush=True)
    for name, of in _SUMMED.items():
        print(f"{name:8}", *(f"{of(column):6.1f}" for column in zip(*rows, strict=True)))


_SUMMED: dict[str, Any] = {"least": min, "median": statistics.median, "most": max}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.yields.replay")
    parser.add_argument("application", choices=tuple(ALL))
    parser.add_argument("--seeds", type=int, default=12, help="how many crawls (12)")
    parser.add_argument("--first", type=int, default=0, help="from which seed on (0)")
    parser.add_argument("--requests", default="500,1000", help="where shares are read (500,1000)")
    parser.add_argument("--workers", type=int, default=1, help="how many there are (1)")
    asked = parser.parse_args()
    logging.disable(logging.CRITICAL)
    with placed(asked.application) as place:
        measured(ALL[asked.application], place, asked)


if __name__ == "__main__":
    main()
