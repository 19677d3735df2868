"""A deployed stack or a store for tests: commands, AWS APIs, and results.

Tests never wait a fixed time: `until` polls until a condition holds or a timeout ends.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from localstack import cdk
from localstack.stack import Stack
from orbweaver.adapters.dynamodb.counters import shard
from orbweaver.adapters.dynamodb.table import from_item
from orbweaver.model.crawl import Counters

T = TypeVar("T")
Row = dict[str, Any]
TABLES = ("UrlsTable", "PagesTable", "HostsTable", "CrawlsTable", "PacksTable")
QUEUES = ("CrawlQueueUrl", "PackQueueUrl", "ExpressQueueUrl")
OUTCOMES = ("fetched", "unchanged", "redirected", "skipped", "failed")
LIMITS = ("bytes", "dollars", "host_pages")
PROGRAM = Path(sys.executable).with_name("orbweaver")  # As `make setup` installs it.
# For tests whose run on a store repeats the proof of lower layers: only `make test-long` has it.
STORE_IN_LONG = pytest.mark.parametrize(
    "anywhere", ["stack", pytest.param("store", marks=pytest.mark.long)], indirect=True
)
COMMAND_S_MAX = 200.0
WAIT_S_MAX = 60.0
POLL_S = 0.1
LOG_LINES_SHOWN = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A finished command."""

    code: int
    out: str
    err: str

    @property
    def result(self) -> dict[str, Any]:
        last: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return last


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawled:
    """A finished crawl: the command's result and the exported rows."""

    result: dict[str, Any]
    rows: tuple[Row, ...]

    def urls(self, outcome: str, reason: str | None = None) -> list[str]:
        """Return the URLs with this outcome, sorted; a URL with two rows appears twice."""
        return sorted(
            row["url"]
            for row in self.rows
            if row["outcome"] == outcome and reason in (None, row["reason"])
        )


class CommandStand:
    """A place to crawl in by command line; `folder` receives the commands' files.

    `where` holds the options with which `orbweaver crawl` uses it.
    """

    def __init__(self, folder: Path, environment: dict[str, str], *where: str) -> None:
        self.environment = environment
        self.where = where
        self._folder = folder
        self._crawls = 0

    def log(self) -> str:
        return ""

    def orbweaver(self, *words: str, code: int | None = 0, folder: Path | None = None) -> Ran:
        """Run a command as a user does; `code` None accepts any exit code."""
        done = subprocess.run(
            [PROGRAM, *words],
            cwd=folder or self._folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_S_MAX,
        )
        said = f"orbweaver {' '.join(words)}\n{done.stdout}{done.stderr}"
        assert code in (None, done.returncode), f"{said}\n{self.log()}"
        return Ran(code=done.returncode, out=done.stdout, err=done.stderr)

    def crawl(self, url: str, *options: str) -> Crawled:
        self._crawls += 1
        out = self._folder / f"out-{self._crawls}"
        words = ("crawl", url, *options, *self.where, "--out", str(out), "--json")
        ran = self.orbweaver(*words)
        return self._crawled(ran, out)

    def start(self, url: str, *options: str) -> Crawled:
        """Run `orbweaver start --wait` and `orbweaver export`, as with a stack on AWS."""
        self._crawls += 1
        out = self._folder / f"out-{self._crawls}"
        ran = self.orbweaver("start", url, *options, "--wait", "--json")
        self.orbweaver("export", "--crawl", ran.result["crawl"], "--out", str(out))
        return self._crawled(ran, out)

    def _crawled(self, ran: Ran, out: Path) -> Crawled:
        result = ran.result
        assert result["type"] == "result"
        assert result["state"] == "finished"
        assert result["queue"]["dead"] == 0, f"{ran.out}\n{self.log()}"
        crawled = Crawled(result=result, rows=tuple(read_export(out)))
        assert result["claimed"] == sum(result["outcomes"][outcome] for outcome in OUTCOMES)
        if result["nothing_new"]:
            return crawled  # Its files also hold an earlier run's pages.
        counted = Counter(str(row["outcome"]) for row in crawled.rows)
        # URLs not requested because of a limit have no record.
        counted["skipped"] += sum(result["reasons"]["skipped"].get(limit, 0) for limit in LIMITS)
        assert {outcome: counted[outcome] for outcome in OUTCOMES} == result["outcomes"]
        return crawled


@contextlib.contextmanager
def store_stand(folder: Path) -> Iterator[CommandStand]:
    """Create a store in a folder, and a process that serves it."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    words = [str(PROGRAM), "serve", "--workers", "1", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(
        words, cwd=folder, env=kept, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as serving:
        assert serving.stdout is not None
        assert "serving" in serving.stdout.readline()
        try:
            yield CommandStand(folder, kept)
        finally:
            serving.send_signal(signal.SIGTERM)
            serving.communicate(timeout=COMMAND_S_MAX)


class Stand(CommandStand):
    """The session's stack; `folder` receives the commands' files."""

    def __init__(self, stack: Stack, folder: Path) -> None:
        super().__init__(folder, stack.environment(), "--port", str(stack.emulator.port))
        self.outputs = stack.outputs
        self.emulator = stack.emulator

    def client(self, service: str) -> AbstractContextManager[Any]:
        return cdk.client(service, self.environment)

    @contextlib.contextmanager
    def reconfigured(
        self, function: str, variables: Mapping[str, object], *, timeout_s: int | None = None
    ) -> Iterator[None]:
        """Run a function with other variables and another timeout for a block."""
        with self.client("lambda") as functions:
            before = functions.get_function_configuration(FunctionName=function)
            kept = before["Environment"]["Variables"]
            changed = {**kept, **{name: str(value) for name, value in variables.items()}}

            def configure(values: dict[str, str], limit_s: int) -> None:
                functions.update_function_configuration(
                    FunctionName=function, Timeout=limit_s, Environment={"Variables": values}
                )

            configure(changed, timeout_s or before["Timeout"])
            try:
                yield
            finally:
                configure(kept, before["Timeout"])

    def log(self) -> str:
        lines = self.emulator.log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-LOG_LINES_SHOWN:])

    def send(self, *bodies: str, queue: str = "CrawlQueueUrl") -> None:
        """Send messages in one call, by default to the seed queue."""
        entries = [{"Id": str(place), "MessageBody": body} for place, body in enumerate(bodies)]
        with self.client("sqs") as sqs:
            sent = sqs.send_message_batch(QueueUrl=self.outputs[queue], Entries=entries)
        assert not sent.get("Failed")

    def take(self, queue_url: str) -> list[dict[str, Any]]:
        """Receive all visible messages of a queue."""
        taken: list[dict[str, Any]] = []
        with self.client("sqs") as sqs:
            while True:
                found = sqs.receive_message(
                    QueueUrl=queue_url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
                ).get("Messages", [])
                if not found:
                    return taken
                for message in found:
                    sqs.delete_message(QueueUrl=queue_url, ReceiptHandle=message["ReceiptHandle"])
                taken += found

    def queued(self, *, delayed: bool = True) -> int:
        """Count the messages on all queues, in flight included, and delayed unless excluded."""
        return self._count("", "NotVisible", *(("Delayed",) if delayed else ()))

    def in_work(self) -> int:
        return self._count("NotVisible")

    def purge(self) -> None:
        """Delete all crawl messages, delayed and in flight included."""
        with self.client("sqs") as sqs:
            for name in QUEUES:
                sqs.purge_queue(QueueUrl=self.outputs[name])

    def _count(self, *names: str) -> int:
        attributes = [f"ApproximateNumberOfMessages{name}" for name in names]
        total = 0
        with self.client("sqs") as sqs:
            for name in QUEUES:
                found = sqs.get_queue_attributes(
                    QueueUrl=self.outputs[name], AttributeNames=attributes
                )["Attributes"]
                total += sum(int(found[attribute]) for attribute in attributes)
        return total

    def scan(self, output: str) -> list[dict[str, Any]]:
        """Return all items of the table of this output."""
        with self.client("dynamodb") as dynamodb:
            pages = dynamodb.get_paginator("scan").paginate(
                TableName=self.outputs[output], ConsistentRead=True
            )
            return [item for page in pages for item in page["Items"]]

    def files(self, prefix: str = "", bucket: str | None = None) -> Iterator[tuple[str, bytes]]:
        """Yield keys and bodies, without files that are deleted meanwhile."""
        bucket = bucket or self.outputs["Bucket"]
        with self.client("s3") as s3:
            pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
            for key in [entry["Key"] for page in pages for entry in page.get("Contents", ())]:
                with contextlib.suppress(s3.exceptions.NoSuchKey):
                    yield key, s3.get_object(Bucket=bucket, Key=key)["Body"].read()

    def lines(self, group: str) -> list[str]:
        """Return the log lines of the group of this output."""
        with self.client("logs") as logs:
            pages = logs.get_paginator("filter_log_events").paginate(
                logGroupName=self.outputs[group]
            )
            return [str(event["message"]).strip() for page in pages for event in page["events"]]

    def export_day(self, day: str) -> None:
        """Begin the export of a day, as its schedule does."""
        with self.client("lambda") as functions:
            answer = functions.invoke(
                FunctionName=self.outputs["ExporterFunction"], Payload=json.dumps({"day": day})
            )
            said = answer["Payload"].read()
        assert "FunctionError" not in answer, f"{said!r}\n{self.log()}"
        assert json.loads(said) == {"days": [day]}

    def unsettled(self) -> int:
        items = self.scan("CrawlsTable")
        counters = Counters.build(
            tuple(shard(from_item(item)) for item in items if "#count#" in item["k"]["S"])
        )
        return counters.claimed - counters.done

    def wait_idle(self) -> None:
        """Wait until the queues are empty or each claimed URL has an outcome.

        Delayed messages of finished packs (batches of URLs) or ended crawls can remain.
        """

        def is_idle() -> bool:
            if self.queued(delayed=False):
                return False
            return self.unsettled() == 0 or self.queued() == 0

        until(is_idle, "the queues are empty, or all URLs done", log=self.log)


def read_export(folder: Path) -> list[Row]:
    """Read rows by the manifests, whose hashes must match."""
    rows: list[Row] = []
    for manifest in sorted(folder.glob("manifests/dt=*/*.json")):
        for file in json.loads(manifest.read_text())["files"]:
            body = (folder / file["path"]).read_bytes()
            assert hashlib.sha256(body).hexdigest() == file["sha256"]
            if (file["table"], file["format"]) == ("pages", "jsonl"):
                lines = gzip.decompress(body).splitlines()
                assert len(lines) == file["rows"]
                rows += map(json.loads, lines)
    return rows


def until(
    condition: Callable[[], T],
    what: str,
    *,
    timeout_s: float = WAIT_S_MAX,
    log: Callable[[], str] = str,
) -> T:
    """Poll a condition and return its value; fail after the timeout."""
    deadline_s = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < deadline_s, f"not within {timeout_s} s: {what}\n{log()}"
        time.sleep(POLL_S)
    return found


def names(urls: Sequence[str] | set[str] | frozenset[str], site: str) -> list[str]:
    """Shorten a site's URLs to sorted paths, for readable differences."""
    return sorted(url.removeprefix(site) for url in urls)
