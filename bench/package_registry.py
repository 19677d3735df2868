"""Verdaccio, a package registry with a web interface, served by its own program.

Its front page is a list that contains only the visible part, and each package has a page. This
module writes its storage: 60 packages, each with a description, a version and a manual.
"""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError

from bench.app_sites import PRODUCTS, AppSite, Truth

NAME = "verdaccio"
PROGRAM = f"node_modules/{NAME}/bin/{NAME}"
READY_S_MAX, POLL_S = 60.0, 0.2


def _name(number: int) -> str:
    return f"package{number}x"


def truth() -> dict[str, Truth]:
    paths = [f"/-/web/detail/{_name(number)}" for number in range(PRODUCTS)]
    found = {"/": Truth(links=frozenset(paths))}
    for number, path in enumerate(paths):
        found[path] = Truth(words=(_name(number), f"manual{number}x", f"1.{number}.0"))
    return found


def _package(number: int, url: str) -> dict[str, object]:
    name, version = _name(number), f"1.{number}.0"
    archive, at = f"{name}-{version}.tgz", "2026-01-01T00:00:00.000Z"
    readme = f"# {name}\n\nIts manual{number}x, at length.\n"
    shasum = "0" * 40
    released = {
        "name": name,
        "version": version,
        "description": f"It says word{number}x",
        "readme": readme,
        "dist": {"tarball": f"{url}/{name}/-/{archive}", "shasum": shasum},
        "_id": f"{name}@{version}",
    }
    return {
        "_id": name,
        "name": name,
        "dist-tags": {"latest": version},
        "versions": {version: released},
        "time": {"created": at, "modified": at, version: at},
        "readme": readme,
        "_attachments": {archive: {"shasum": shasum, "version": version}},
        "_uplinks": {},
        "_distfiles": {},
        "users": {},
        "_rev": "1-0",
    }


def configure(folder: Path, url: str) -> Path:
    """Write the packages and the configuration. Return the configuration file."""
    storage = folder / "storage"
    for number in range(PRODUCTS):
        place = storage / _name(number)
        place.mkdir(parents=True, exist_ok=True)
        (place / "package.json").write_text(json.dumps(_package(number, url)))
    names = [_name(number) for number in range(PRODUCTS)]
    (storage / ".verdaccio-db.json").write_text(json.dumps({"list": names, "secret": "x" * 32}))
    config = folder / "config.yaml"
    config.write_text(
        json.dumps(
            {
                "storage": str(storage),
                "auth": {"htpasswd": {"file": str(folder / "htpasswd"), "max_users": -1}},
                "packages": {"**": {"access": "$all"}},
                "uplinks": {},
                "log": {"type": "stdout", "format": "pretty", "level": "warn"},
                "listen": url.removeprefix("http://"),
            }
        )
    )
    return config


@contextmanager
def registry(folder: Path) -> Iterator[AppSite]:
    """Serve the packages. bench/framework_shops.py has installed Verdaccio in `folder`."""
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{chosen.getsockname()[1]}"
    config = configure(folder, url)
    words = ["node", str(folder / PROGRAM), "--config", str(config)]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(words, cwd=folder, stdout=log, stderr=log)
    try:
        _wait_ready(url, process)
        yield AppSite(folder, truth(), url=url)
    finally:
        process.terminate()
        process.wait()


def _wait_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline_s = time.monotonic() + READY_S_MAX
    while True:
        try:
            with urllib.request.urlopen(f"{url}/-/ping", timeout=5):  # noqa: S310 - its own server
                return
        except URLError:
            if process.poll() is not None or time.monotonic() > deadline_s:
                raise
            time.sleep(POLL_S)
