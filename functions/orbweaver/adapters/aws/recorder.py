"""A record of AWS permissions that a process needed, made at its clients for tests.

Rules
- A line of JSON for each permission that is new to the process: the function, the action, the
  resource. Appended in one write, so that many processes may share a file.
- What a request needs is written before it is sent: that it is denied changes nothing.
- Nothing is written but names of tables, queues, buckets and the like: no keys, no URLs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from orbweaver.adapters.aws import permissions
from orbweaver.adapters.aws.permissions import Permission

ASKED = "orbweaver.recorded"


class Recorder:
    """Writes the permissions that clients need to a file."""

    def __init__(self, path: str, function: str) -> None:
        """Append to `path`, in the name of `function`."""
        self._path = path
        self._function = function
        self._written: set[Permission] = set()

    def watch(self, client: Any) -> None:
        """Write down what a client asks for from now on."""
        service = client.meta.service_model.service_id.hyphenize()
        events = client.meta.events
        events.register_last(f"provide-client-params.{service}", self._asked)
        events.register_last(f"after-call.{service}", self._answered)

    def _asked(self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any) -> None:
        service = model.service_model.service_name
        context[ASKED] = service, params
        self._write(permissions.needed(service, model.name, params))

    def _answered(self, http_response: Any, context: dict[str, Any], **_: Any) -> None:
        if http_response.status_code == HTTPStatus.NOT_FOUND:
            self._write(permissions.absent(*context[ASKED]))

    def _write(self, needed: Iterable[Permission]) -> None:
        fresh = set(needed) - self._written
        self._written |= fresh
        lines = "".join(
            json.dumps({"function": self._function, **one._asdict()}) + "\n"
            for one in sorted(fresh)
        )
        if lines:
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            try:
                os.write(file, lines.encode())
            finally:
                os.close(file)
