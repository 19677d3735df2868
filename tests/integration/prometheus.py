"""A real Prometheus that scrapes one address every second."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

PROGRAM = shutil.which("prometheus", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/bin")
NEEDED = pytest.mark.skipif(
    PROGRAM is None, reason="no prometheus on this machine: Debian's package of that name has it"
)
CONFIG = """\
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: orbweaver
    metrics_path: {path}
    static_configs: [{{targets: ["{place}"]}}]
"""
LOCAL = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prometheus:
    """A running Prometheus; `log` is its output."""

    url: str
    log: Path

    def ask(self, query: str) -> list[tuple[dict[str, str], float]]:
        try:
            found = self._get("query", query=query)["result"]
        except OSError:
            return []
        return [(one["metric"], float(one["value"][1])) for one in found]

    def value(self, query: str) -> float | None:
        found = self.ask(query)
        return found[0][1] if found else None

    def targets(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._get("targets")["activeTargets"]
        return found

    def _get(self, what: str, **parameters: str) -> Any:
        url = f"{self.url}/api/v1/{what}?{urlencode(parameters)}"
        with urlopen(url, timeout=5) as answer:  # noqa: S310 - loopback
            return json.load(answer)["data"]


@contextlib.contextmanager
def prometheus(folder: Path, target: str) -> Iterator[Prometheus]:
    assert PROGRAM is not None
    place, _, path = target.removeprefix("http://").partition("/")
    (folder / "prometheus.yml").write_text(CONFIG.format(place=place, path=f"/{path}"))
    with socket.create_server((LOCAL, 0)) as free:
        port = free.getsockname()[1]
    log = folder / "prometheus.log"
    with log.open("wb") as written:
        running = subprocess.Popen(
            [
                PROGRAM,
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={LOCAL}:{port}",
            ],
            stdout=written,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
    try:
        yield Prometheus(url=f"http://{LOCAL}:{port}", log=log)
    finally:
        running.terminate()
        running.wait(20)
