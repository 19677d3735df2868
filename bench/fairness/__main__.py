"""`python -m bench.fairness`: a crawl of ten small hosts, alone and next to 100,000 queued URLs.

The queue holds packs of a crawl that lasts longer than an hour. They belong to one host without a
delay, which keeps workers busy with work, or to many hosts with one, which keeps them busy waiting.
The table shows the time of the small crawl, absolute and relative to the crawl alone:

    as it comes   MiniStack's queue, in order of arrival
    express       the same with `--priority high`: its own queue and workers
    fair          a queue with SQS's fairness by message group

A crawl that takes longer than `--limit` is cancelled, and the limit is printed.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from localstack import layout, stack
from localstack.errors import LocalStackError
from orbweaver.cli.stack import LOCAL_CONTEXT
from orbweaver.frontier.messages import Pack, encode
from orbweaver.model.target import Target
from tests.e2e.stand import Stand, until
from tests.sites import graph

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

    from tests.sites.graph import Graph
    from tests.sites.server import Answer, Asked

SMALL_HOSTS, SMALL_PAGES = 10, 10
SMALL_DELAY = "0.2"
PACK_URLS, BATCH = 25, 10
# Big crawls: name, number of hosts, and delay of each host.
BIG = (("a fast host", 1, "0"), ("slow hosts", 100, "1"))
EMULATOR = Path(__file__).with_name("emulator")
INTERRUPTED = 130
POLL_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Time of the small crawl in one cell of the table."""

    beside: str
    queue: str
    took_s: float
    ended: bool


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print the table. Returns 1 without a stack."""
    parser = argparse.ArgumentParser(prog="python -m bench.fairness", description=__doc__)
    parser.add_argument("--urls", type=int, default=100_000, help="how many are queued (100000)")
    parser.add_argument("--limit", type=float, default=90.0, help="seconds for a crawl (90)")
    parser.add_argument("--workers", type=int, default=2, help="workers on each queue (2)")
    parser.add_argument("--wait", type=float, help="for how long one waits for slots (as deployed)")
    asked = parser.parse_args(words)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        rows = [*_measured(asked, fair=False), *_measured(asked, fair=True)]
    except LocalStackError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    print(table(rows))
    return 0


def table(rows: Sequence[Took]) -> str:
    """Format the results, each relative to the crawl alone on the same queue."""
    alone = {row.queue: row.took_s for row in rows if row.beside == "nothing"}
    lines = [f"{'beside':24}{'queue':14}{'took':>10}{'ratio':>8}"]
    for row in rows:
        over = "" if row.ended else ">"
        ratio = f"{over}{row.took_s / alone[row.queue]:.1f}"
        lines.append(f"{row.beside:24}{row.queue:14}{f'{over}{row.took_s:.1f} s':>10}{ratio:>8}")
    return "\n".join(lines)


def _measured(asked: argparse.Namespace, *, fair: bool) -> Iterator[Took]:
    context = {**LOCAL_CONTEXT, "worker_concurrency_max": str(asked.workers)}
    if asked.wait:
        context["wait_s_max"] = str(asked.wait)
    settings = {"PYTHONPATH": f"{EMULATOR}:{layout.ROOT}"} if fair else {}
    with (
        tempfile.TemporaryDirectory() as folder,
        stack.temporary(context=context, settings=settings, say=_say) as stood,
        contextlib.ExitStack() as sites,
    ):
        bench = _Bench(Stand(stood, Path(folder)), sites, asked)
        queues = ["fair"] if fair else ["as it comes", "express"]
        bench.warm_up("as it comes")
        for queue in queues:
            yield bench.small("nothing", queue)
        for beside, hosts, delay in BIG:
            with bench.beside(hosts, delay):
                bench.warm_up("express")  # the express queue has its own workers from here on
                for queue in reversed(queues):
                    yield bench.small(beside, queue)


class _Bench:
    """A stack, and the sites to crawl."""

    def __init__(
        self, stand: Stand, sites: contextlib.ExitStack, asked: argparse.Namespace
    ) -> None:
        self._stand = stand
        self._asked = asked
        self._runs = 0
        paths = ["/", *(f"/{n}" for n in range(1, SMALL_PAGES))]
        tree = {
            path: graph.page(path, paths[3 * n + 1 : 3 * n + 4]) for n, path in enumerate(paths)
        }
        serve = graph.serve_in_background
        self._small = [sites.enter_context(serve(tree)) for _ in range(SMALL_HOSTS)]
        page = {"/page": _page}
        self._big = [
            sites.enter_context(serve(page)) for _ in range(max(hosts for _, hosts, _ in BIG))
        ]

    def warm_up(self, queue: str) -> None:
        """Start the workers of a queue, so that their start is not measured."""
        self.small("warming up", queue)

    def small(self, beside: str, queue: str) -> Took:
        self._runs += 1
        name = f"small-{self._runs}"
        lane = ("--priority", "high") if queue == "express" else ()
        seeds = [f"{site.url}/" for site in self._small]
        words = (*seeds, "--name", name, "--delay", SMALL_DELAY, "--json", *lane)
        deadline_s = time.monotonic() + self._asked.limit
        crawl = self._stand.orbweaver("start", *words).result["crawl"]
        took_s = self._ended_s(crawl)
        while took_s is None and time.monotonic() < deadline_s:
            time.sleep(POLL_S)
            took_s = self._ended_s(crawl)
        if took_s is None:
            self._stand.orbweaver("cancel", crawl)
        limit_s = self._asked.limit
        took = Took(beside=beside, queue=queue, took_s=took_s or limit_s, ended=took_s is not None)
        _say(f"beside {beside}, {queue}: {took.took_s:.1f} s{'' if took.ended else ' and more'}")
        return took

    @contextlib.contextmanager
    def beside(self, hosts: int, delay: str) -> Iterator[None]:
        """Queue the packs (batches of URLs) of a big crawl, and cancel it when the block ends."""
        sites = self._big[:hosts]
        # the scope: only the hosts of the seeds
        seeds = (f"{site.url}/none" for site in sites)
        words = (*seeds, "--name", f"big-{hosts}", "--delay", delay, "--json")
        crawl = self._stand.orbweaver("start", *words).result["crawl"]
        with self._held():  # all packs are queued before the first is received
            self._queue(crawl, sites)
        until(sites[0].log.paths, "the big crawl is under way", log=self._stand.log)
        try:
            yield
        finally:
            self._stand.orbweaver("cancel", crawl, code=None)
            with self._stand.client("sqs") as sqs:
                sqs.purge_queue(QueueUrl=self._stand.outputs["PackQueueUrl"])
            self._stand.wait_idle()

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        source = self._stand.outputs["CrawlEventSource"]
        with self._stand.client("lambda") as functions:
            functions.update_event_source_mapping(UUID=source, Enabled=False)
            yield
            functions.update_event_source_mapping(UUID=source, Enabled=True)

    def _queue(self, crawl: str, sites: Sequence[Graph]) -> None:
        """Queue packs that contain one host each, with the hosts in rotation."""
        at_ms = time.time_ns() // 1_000_000
        packs = range(self._asked.urls // PACK_URLS)
        with self._stand.client("sqs") as sqs:
            for first in range(0, len(packs), BATCH):
                entries = [
                    {
                        "Id": str(number),
                        "MessageBody": _pack(crawl, at_ms, sites, number),
                        "MessageGroupId": crawl,
                    }
                    for number in packs[first : first + BATCH]
                ]
                url = self._stand.outputs["PackQueueUrl"]
                sqs.send_message_batch(QueueUrl=url, Entries=entries)
        _say(f"{len(packs)} packs are queued")

    def _ended_s(self, crawl: str) -> float | None:
        """Return a crawl's duration from its own record, or None while it runs."""
        with self._stand.client("dynamodb") as dynamodb:
            item = dynamodb.get_item(
                TableName=self._stand.outputs["CrawlsTable"], Key={"k": {"S": crawl}}
            )["Item"]
        if item["state"]["S"] != "finished":
            return None
        return (int(item["finished_at_ms"]["N"]) - int(item["started_at_ms"]["N"])) / 1000


def _pack(crawl: str, at_ms: int, sites: Sequence[Graph], number: int) -> str:
    place, host = divmod(number, len(sites))
    targets = tuple(
        Target(url=f"{sites[host].url}/page?n={place * PACK_URLS + n}", depth=1)
        for n in range(PACK_URLS)
    )
    return encode(Pack(id=f"{crawl}/{number}", crawl=crawl, at_ms=at_ms, targets=targets))


def _page(asked: Asked) -> Answer:
    return graph.page(asked.target)


def _say(text: str) -> None:
    print(f"[fairness] {text}", file=sys.stderr, flush=True)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
