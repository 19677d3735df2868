"""A usage meter with a test clock, and clients whose calls it counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from botocore.hooks import HierarchicalEmitter

from orbweaver.adapters.aws.usage_meter import UsageMeter

TABLES = {
    "Stack-urls": "urls",
    "Stack-hosts": "hosts",
    "Stack-packs": "packs",
    "Stack-crawls": "crawls",
}
PUT = {"TableName": "Stack-urls", "Item": {"k": {"S": "x"}}}


@dataclass
class Named:
    """An object with a name, like models of botocore."""

    name: str
    service_model: Any = None


@dataclass
class Answered:
    """The status of a response."""

    status_code: int


@dataclass
class FakeClient:
    """A client of a service with answers of the test."""

    service: str
    events: HierarchicalEmitter = field(default_factory=HierarchicalEmitter)

    @property
    def meta(self) -> FakeClient:
        return self

    @property
    def service_model(self) -> FakeClient:
        return self

    @property
    def service_id(self) -> FakeClient:
        return self

    @property
    def service_name(self) -> str:
        return self.service

    def hyphenize(self) -> str:
        return self.service

    def ask(
        self,
        operation: str,
        asked: dict[str, Any],
        answer: dict[str, Any] | None,
        *,
        status: int = 200,
    ) -> None:
        """Emit the botocore events of a call. A call without an answer is lost."""
        model = Named(operation, self)
        context: dict[str, Any] = {}
        name = f"{self.service}.{operation}"
        said = {"params": asked, "model": model, "context": context}
        self.events.emit(f"provide-client-params.{name}", **said)
        if answer is None:
            self.events.emit(f"after-call-error.{name}", exception=TimeoutError(), context=context)
        else:
            self.events.emit(
                f"after-call.{name}",
                http_response=Answered(status),
                parsed=answer,
                model=model,
                context=context,
            )


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def meter_by(clock: Clock) -> UsageMeter:
    """Return a meter of a function with 1,000 MB."""
    return UsageMeter(tables=TABLES, memory_mb=1_000, clock_s=clock)


def used(meter: UsageMeter) -> dict[str, int]:
    """Return the usage of this invocation without its fixed part."""
    counts = meter.total.counts
    return {key: n for key, n in counts.items() if not key.endswith(".run")}
