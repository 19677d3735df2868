"""Lambda entry points translate an event into one call and a response."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import handlers
from handlers import api, delivery, exporter, notifier, starter, worker
from orbweaver.delivery.deliverer import ReceivedOrder
from orbweaver.worker.pack import Delivery

LINES_MAX = 25


@dataclass
class FakeContainer:
    """Records its calls, and returns the given answers."""

    failed: tuple[str, ...] = ()
    calls: list[tuple[Any, ...]] = field(default_factory=list)

    def process_batch(self, deliveries: list[Delivery], remaining_ms: int) -> tuple[str, ...]:
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

    def deliver(self, taken: ReceivedOrder, remaining_ms: int) -> tuple[str, ...]:
        self.calls.append((taken, remaining_ms))
        return self.failed

    def answer(self, event: dict[str, Any]) -> dict[str, Any]:
        self.calls.append((event,))
        return {"statusCode": 202}


class Context:
    """Context of an invocation."""

    aws_request_id = "request"

    def get_remaining_time_in_millis(self) -> int:
        return 60_000


def installed(
    monkeypatch: pytest.MonkeyPatch, module: Any, container: FakeContainer
) -> FakeContainer:
    monkeypatch.setattr(module, "container", lambda: container)
    return container


def record(place: int) -> dict[str, Any]:
    return {
        "messageId": f"m{place}",
        "receiptHandle": "h",
        "body": f"https://example.com/{place}",
        "attributes": {"ApproximateReceiveCount": str(place + 1), "SentTimestamp": "1"},
    }


@pytest.mark.parametrize("failed", [(), ("m1",), ("m0", "m1")])
def test_worker_handler_names_failed_messages(
    monkeypatch: pytest.MonkeyPatch, failed: tuple[str, ...]
) -> None:
    """Records become deliveries, and the response names only failed ones (cases 7, 11)."""
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


def test_worker_handler_passes_queue_name(monkeypatch: pytest.MonkeyPatch) -> None:
    container = installed(monkeypatch, worker, FakeContainer())
    taken = record(0) | {"eventSourceARN": "arn:aws:sqs:eu-west-1:123456789012:Orbweaver-seeds"}
    worker.handler({"Records": [taken]}, Context())
    (((delivery,), _),) = container.calls
    assert delivery.queue == "Orbweaver-seeds"


@pytest.mark.parametrize(
    ("module", "event", "more", "response"),
    [
        (exporter, {"day": "2026-11-21"}, ("request", 60_000), {"days": ["2026-11-21"]}),
        (api, {"httpMethod": "POST"}, (), {"statusCode": 202}),
        (starter, {"due": "now"}, (), {"crawl": "c"}),
        (notifier, {"detail": {}}, (), {"webhook": "delivered"}),
    ],
)
def test_handler_passes_event_and_result(
    monkeypatch: pytest.MonkeyPatch, module: Any, event: Any, more: Any, response: Any
) -> None:
    container = installed(monkeypatch, module, FakeContainer())
    assert module.handler(event, Context()) == response
    assert container.calls == [(event, *more)]


@pytest.mark.parametrize("failed", [(), ("m1",)])
def test_delivery_handler_passes_message_with_receives(
    monkeypatch: pytest.MonkeyPatch, failed: tuple[str, ...]
) -> None:
    container = installed(monkeypatch, delivery, FakeContainer(failed=failed))
    response = delivery.handler({"Records": [record(1)]}, Context())
    taken = ReceivedOrder(id="m1", body="https://example.com/1", handle="h", receives=2)
    assert container.calls == [(taken, 60_000)]
    assert response == {"batchItemFailures": [{"itemIdentifier": name} for name in failed]}


def test_failure_outside_messages_fails_whole_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lambda returns the whole batch to the queue (case 9)."""

    class Broken(FakeContainer):
        def process_batch(self, deliveries: list[Delivery], remaining_ms: int) -> tuple[str, ...]:
            raise RuntimeError("broken")

    installed(monkeypatch, worker, Broken())
    with pytest.raises(RuntimeError):
        worker.handler({"Records": [record(0)]}, Context())


def test_handlers_are_short_and_have_no_branches() -> None:
    folder = Path(handlers.__file__).parent
    for path in folder.glob("*.py"):
        source = path.read_text()
        assert len(source.splitlines()) <= LINES_MAX, path.name
        branching = (ast.If, ast.IfExp, ast.Match, ast.Try, ast.While)
        assert not [node for node in ast.walk(ast.parse(source)) if isinstance(node, branching)]
