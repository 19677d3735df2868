"""The deployed stack of a run: tuned for speed, with its crawls and tables.

Rules
- The stack is deployed like `orbweaver local up`; the tuning is applied by the APIs.
- The function's timeout is short. The queues' visibility timeout is the deployed multiple of it
  (six, see `infra/frontier.py`). So messages of a killed worker return within a minute.
- Only workers use the proxy, by a variable of the function.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localstack.stack import Stack
from tests.chaos.evidence import Letter, Row
from tests.chaos.scale import Tuning
from tests.e2e.announcements import listening
from tests.e2e.stand import QUEUES, CommandStand, Stand

RULE = "chaos-completed"
COUNTS_PREFIX = "n."
READY_S_MAX = 30.0
TIMED_OUT = "killing worker"  # In the emulator's log, once per invocation.


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """State and counters of a crawl in its table."""

    state: str
    counts: dict[str, int]

    def sum(self, *keys: str) -> int:
        return sum(self.counts.get(key, 0) for key in keys)


class Rig:
    """A stack with open clients."""

    def __init__(self, stand: Stand, folder: Path, clients: dict[str, Any], events: str) -> None:
        """Use open clients by service, and the queue of announcements."""
        self.stand = stand
        self.emulator = stand.emulator
        self.function = self.stand.outputs["WorkerFunction"]
        self._folder = folder
        self._clients = clients
        self._events = events

    def tune(self, tuning: Tuning, endpoint_url: str) -> None:
        """Set the timeouts and the endpoint of the workers, and the queues to match."""
        functions, sqs = self._clients["lambda"], self._clients["sqs"]
        found = functions.get_function_configuration(FunctionName=self.function)
        variables = found["Environment"]["Variables"] | tuning.variables()
        variables["AWS_ENDPOINT_URL"] = endpoint_url
        functions.update_function_configuration(
            FunctionName=self.function,
            Timeout=tuning.timeout_s,
            Environment={"Variables": variables},
        )
        for name in QUEUES:
            url = self.stand.outputs[name]
            names = ["RedrivePolicy", "VisibilityTimeout"]
            known = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
            redrive = json.loads(known["RedrivePolicy"])
            redrive["maxReceiveCount"] = tuning.receive_max
            visibility_s = int(known["VisibilityTimeout"]) * tuning.timeout_s // found["Timeout"]
            sqs.set_queue_attributes(
                QueueUrl=url,
                Attributes={
                    "VisibilityTimeout": str(visibility_s),
                    "RedrivePolicy": json.dumps(redrive),
                },
            )

    def start(self, crawl: str, url: str, endpoint_url: str, *options: str) -> None:
        environment = self.stand.environment | {"AWS_ENDPOINT_URL": endpoint_url}
        shell = CommandStand(self._folder, environment)
        shell.orbweaver("start", url, "--name", crawl, "--id", crawl, *options)

    def send(self, *bodies: str) -> None:
        for first in range(0, len(bodies), 10):
            self.stand.send(*bodies[first : first + 10], queue="PackQueueUrl")

    def books(self, crawl: str) -> Books:
        state, counts = "unknown", dict[str, int]()
        for item in self.stand.scan("CrawlsTable"):
            if item["k"]["S"] == crawl:
                state = item["state"]["S"]
            elif item["k"]["S"].startswith(f"{crawl}#count#"):
                for name, value in item.items():
                    if name.startswith(COUNTS_PREFIX):
                        key = name.removeprefix(COUNTS_PREFIX)
                        counts[key] = counts.get(key, 0) + int(value["N"])
        return Books(state=state, counts=counts)

    def rows(self, crawl: str) -> tuple[Row, ...]:
        return tuple(
            Row(
                url=item["url"]["S"],
                outcome=item["outcome"]["S"],
                reason=item["reason"]["S"],
                sent_ms=int(item["fetched_at"]["N"]),
            )
            for item in self.stand.scan("PagesTable")
            if item["k"]["S"].startswith(f"{crawl}#")
        )

    def dead(self) -> tuple[Letter, ...]:
        return tuple(
            Letter(
                body=message["Body"],
                reason=message.get("MessageAttributes", {})
                .get("reason", {})
                .get("StringValue", "none"),
            )
            for message in self.stand.take(self.stand.outputs["DeadLetterQueueUrl"])
        )

    def timeouts(self) -> int:
        return self.emulator.log.read_text(errors="replace").count(TIMED_OUT)

    def queued(self) -> int:
        """Count messages on the normal and express queue: waiting, delayed or in flight."""
        return self.stand.queued()

    def announced(self) -> list[dict[str, Any]]:
        return [json.loads(message["Body"])["detail"] for message in self.stand.take(self._events)]

    def wait_ready(self) -> None:
        deadline_s = time.monotonic() + READY_S_MAX
        while time.monotonic() < deadline_s:
            found = self._clients["lambda"].get_function_configuration(FunctionName=self.function)
            if found.get("LastUpdateStatus") in (None, "Successful"):
                return
            time.sleep(0.1)
        raise RuntimeError(f"{self.function} does not take its configuration")


@contextlib.contextmanager
def standing(stack: Stack, folder: Path) -> Iterator[Rig]:
    stand = Stand(stack, folder)
    with listening(stand, RULE) as events, contextlib.ExitStack() as clients:
        opened = {name: clients.enter_context(stand.client(name)) for name in ("lambda", "sqs")}
        yield Rig(stand, folder, opened, events)
