"""A small crawl with the doctor's own stack, of a local site or of a given URL."""

from __future__ import annotations

import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from localstack import sources
from localstack.doctor.ground import Check, Finding, Ground, expect, failed, skipped, until
from localstack.doctor.probe_lambda import taken
from localstack.doctor.probe_sqs import DEAD

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGES = 5
SWITCH_S_MAX = 120


class _Site(BaseHTTPRequestHandler):
    """Serves a few pages that link to each other."""

    def do_GET(self) -> None:
        known = self.path in {f"/{place}" for place in range(PAGES)}
        links = "".join(f'<a href="/{place}">{place}</a>' for place in range(PAGES))
        body = f"<!doctype html><title>{self.path}</title>{links}".encode() if known else b""
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words: object) -> None:
        """Log nothing."""


@contextlib.contextmanager
def site() -> Iterator[str]:
    """Serve the site on this machine during the block, and yield the URL of its first page."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Site) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/0"
        finally:
            server.shutdown()
            thread.join()


def switch(ground: Ground, *, on: bool) -> bool:
    """Switch the workers and wait. Return whether the switch has happened."""
    worker = ground.outputs["WorkerFunction"]
    wanted = sources.ON if on else sources.OFF

    def switched() -> bool:
        found = sources.read_sources(worker, ground.environment)
        for one in found:
            if one.is_off == on:
                sources.switch(one, ground.environment, on=on)
        return bool(found) and all(one.state == wanted for one in found)

    return bool(until(ground, switched, SWITCH_S_MAX))


def crawl(ground: Ground) -> Finding:
    if ground.crawl is None or (ground.url is None and not ground.emulator):
        return skipped("no site was named: give one of your own by --url")
    if not switch(ground, on=True):
        return failed("the workers cannot be switched on")
    try:
        with contextlib.ExitStack() as serving:
            url = ground.url or serving.enter_context(site())
            pages, failures = ground.crawl(url)
    finally:
        off = switch(ground, on=False)
    dead = taken(ground, DEAD)
    right = (pages == PAGES or (ground.url and pages > 0)) and not dead and not failures and off
    seen = {"pages": pages, "failures": failures, "dead_letters": dead, "switched_off": off}
    return expect(bool(right), "the crawl did not end as it should", **seen)


CHECKS = (
    Check(
        id="crawl.site",
        title="a small crawl comes to its end",
        run=crawl,
        assumptions=("A26", "A39", "A61"),
        full=True,
        do="run `orbweaver dlq list --stack OrbweaverDoctor`, and look at the worker's log group",
    ),
)
