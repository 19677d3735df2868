"""A log of the AWS permissions that a process needs, written by its clients during tests.

Each permission is one JSON line with function, action and resource, without keys and URLs. It is
written before the request is sent, so denied requests are included.
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
    """Appends permissions to a file. Several processes can share it."""

    def __init__(self, path: str, function: str) -> None:
        self._path = path
        self._function = function
        self._written: set[Permission] = set()

    def watch(self, client: Any) -> None:
        service = client.meta.service_model.service_id.hyphenize()
        events = client.meta.events
        events.register_last(f"provide-client-params.{service}", self._before_call)
        events.register_last(f"after-call.{service}", self._after_call)

    def _before_call(
        self, params: dict[str, Any], model: Any, context: dict[str, Any], **_: Any
    ) -> None:
        service = model.service_model.service_name
        context[ASKED] = service, params
        self._write(permissions.needed(service, model.name, params))

    def _after_call(self, http_response: Any, context: dict[str, Any], **_: Any) -> None:
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
