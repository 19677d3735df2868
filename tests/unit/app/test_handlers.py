"""Lambda entry points translate: an event in, one call, a response out."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import handlers
from handlers import api, delivery, exporter, notifier, starter, worker
from orbweaver.delivery.deliverer import Taken
from orbweaver.worker.pack import Delivery

LINES_MAX = 25


@dataclass
class FakeContainer:
    """Notes what it is called with, and answers as told."""

    failed: tuple[str, ...] = ()
    calls: list[tuple[Any, ...]] = field(default_factory=list)

    def work(self, deliveries: list[Delivery], remaining_ms: int) -> tuple[str, ...]:
        self.calls.append((deliveries, remaining_ms))
        return self.failed

    def export(self, event: dict[str, Any], identity: str, remaining_ms: int) -> dict[str, Any]:
        self.calls.append((event, identity, remaining_ms))
        return {"days": ["2026-11-21"]}

    def fire(self, event: dict[str, Any]) -> dict[str, str]:
        self.calls.append((event,))
        return {"crawl": "c"}

    def notify(self, event: dict[str, Any]) -> dict[str, str]:
        self.calls.append((event,))
        return {"webhook": "delivered"}

    def deliver(self, taken: Taken, remaining_ms: int) -> tuple[str, ...]:
        self.calls.append((taken, remaining_ms))
        return self.failed

    def answer(self, event: dict[str, Any]) -> dict[str, Any]:
        self.calls.append((event,))
        return {"statusCode": 202}


class Context:
    """What Lambda tells of an invocation."""

    aws_request_id = "request"

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


def installed(
    monkeypatch: pytest.MonkeyPatch, module: Any, container: FakeContainer
) -> FakeContainer:
    """Put a container in the place of the process's."""
    monkeypatch.setattr(module, "container", lambda: container)
    return container


def record(place: int) -> dict[str, Any]:
    """Make a record as the event source does."""
    return {
        "messageId": f"m{place}",
        "receiptHandle": "h",
        "body": f"https://example.com/{place}",
        "attributes": {"ApproximateReceiveCount": str(place + 1), "SentTimestamp": "1"},
    }


@pytest.mark.parametrize("failed", [(), ("m1",), ("m0", "m1")])
def test_the_worker_names_what_is_to_come_back(
    monkeypatch: pytest.MonkeyPatch, failed: tuple[str, ...]
) -> None:
    """Records become deliveries; the failed ones, and no other, are named (cases 7, 11)."""
    container = installed(monkeypatch, worker, FakeContainer(failed=failed))
    response = worker.handler({"Records": [record(0), record(1)]}, Context())
    assert container.calls == [
        (
            [
                Delivery(id="m0", body="https://example.com/0", receives=1, handle="h"),
                Delivery(id="m1", body="https://example.com/1", receives=2, handle="h"),
            ],
            60_000,
        )
    ]
    assert response == {"batchItemFailures": [{"itemIdentifier": name} for name in failed]}


def test_the_worker_is_told_which_queue_a_message_came_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The name of the queue goes along: what may come from there is for the worker to know."""
    container = installed(monkeypatch, worker, FakeContainer())
    taken = record(0) | {"eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:Orbweaver-seeds"}
    worker.handler({"Records": [taken]}, Context())
    (((delivery,), _),) = container.calls
    assert delivery.queue == "Orbweaver-seeds"


def test_the_exporter_is_given_its_event_and_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes through as it is, with what is the same when Lambda repeats it, and how long."""
    container = installed(monkeypatch, exporter, FakeContainer())
    assert exporter.handler({"day": "2026-11-21"}, Context()) == {"days": ["2026-11-21"]}
    assert container.calls == [({"day": "2026-11-21"}, "request", 60_000)]


def test_the_api_answers_with_what_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The request goes through as it is, and so does the answer."""
    container = installed(monkeypatch, api, FakeContainer())
    assert api.handler({"httpMethod": "POST"}, Context()) == {"statusCode": 202}
    assert container.calls == [({"httpMethod": "POST"},)]


def test_the_starter_is_given_what_was_fired(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event goes through as it is, and so does what came of it."""
    container = installed(monkeypatch, starter, FakeContainer())
    assert starter.handler({"due": "now"}, Context()) == {"crawl": "c"}
    assert container.calls == [({"due": "now"},)]


def test_the_notifier_is_given_what_was_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event goes through as it is, and so does what came of it."""
    container = installed(monkeypatch, notifier, FakeContainer())
    assert notifier.handler({"detail": {}}, Context()) == {"webhook": "delivered"}
    assert container.calls == [({"detail": {}},)]


@pytest.mark.parametrize("failed", [(), ("m1",)])
def test_the_delivery_queue_hands_over_one_message(
    monkeypatch: pytest.MonkeyPatch, failed: tuple[str, ...]
) -> None:
    """The message goes through with how often it was taken; it comes back if it is named."""
    container = installed(monkeypatch, delivery, FakeContainer(failed=failed))
    response = delivery.handler({"Records": [record(1)]}, Context())
    taken = Taken(id="m1", body="https://example.com/1", handle="h", receives=2)
    assert container.calls == [(taken, 60_000)]
    assert response == {"batchItemFailures": [{"itemIdentifier": name} for name in failed]}


def test_a_failure_outside_a_message_fails_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is raised outside the guard reaches Lambda, which returns the whole batch (case 9)."""

    class Broken(FakeContainer):
        def work(self, deliveries: list[Delivery], remaining_ms: int) -> tuple[str, ...]:
            raise RuntimeError("broken")

    installed(monkeypatch, worker, Broken())
    with pytest.raises(RuntimeError):
        worker.handler({"Records": [record(0)]}, Context())


def test_handlers_only_translate() -> None:
    """No handler is longer than 25 lines, or decides anything."""
    folder = Path(handlers.__file__).parent
    for path in folder.glob("*.py"):
        source = path.read_text()
        assert len(source.splitlines()) <= LINES_MAX, path.name
        branching = (ast.If, ast.IfExp, ast.Match, ast.Try, ast.While)
        assert not [node for node in ast.walk(ast.parse(source)) if isinstance(node, branching)]
