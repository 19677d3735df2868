"""What a container imports before its first invocation, by name: times are no test's business."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from localstack import layout
from orbweaver.adapters.aws.clients import Aws
from orbweaver.adapters.web import tls

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aiobotocore.session import AioSession

# A prepared container's; measured, and little more. Who needs more says so here.
MODULES_MAX = {
    "worker": 773,
    "renderer": 793,
    "api": 818,
    "exporter": 700,
    "starter": 719,
    "notifier": 650,
    "delivery": 640,
    "console": 838,
}
# Of no use to any function before it is at work, or at all; each took 5 ms to 100 ms.
HEAVY = (
    *("aioboto3", "boto3", "s3transfer", "aiofiles"),
    *("aiohttp.web", "aiohttp.test_utils", "asyncssh", "pyarrow", "bcrypt", "html_to_markdown"),
    *("multiprocessing", "publicsuffixlist", "pydantic", "re2", "sqlite3", "unittest", "xml.sax"),
    *("tests.memory", "orbweaver.cli.main", "orbweaver.exporting.formats.parquet"),
)
# Of use to some functions only.
HEAVY_TO_WORKERS = (
    *("orbweaver.extraction.extract", "orbweaver.exporting.manifest", "orbweaver.control.schedule"),
    *(
        "orbweaver.frontier.dead_letters",
        "orbweaver.control.crawl_spec",
        "orbweaver.exporting.formats",
    ),
)

# Says what is imported once a container is ready, and what of aiohttp's own contexts there is.
READY = """
import gc, json, sys
import handlers.{handler}
from aiohttp import connector
contexts = connector._SSL_CONTEXT_VERIFIED, connector._SSL_CONTEXT_UNVERIFIED
known = [context.cert_store_stats()["x509_ca"] for context in contexts]
print(json.dumps([sorted(sys.modules), known, gc.isenabled(), gc.get_freeze_count() > 0]))
"""


def ready(handler: str, **variables: str) -> tuple[list[str], list[int], bool, bool]:
    """Import a handler as Lambda does, in a process of its own."""
    environment = {
        "PYTHONPATH": str(Path(layout.ROOT) / "functions"),
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": layout.REGION,
        **variables,
    }
    words = [sys.executable, "-c", READY.format(handler=handler)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    modules, known, collecting, frozen = json.loads(done.stdout)
    return modules, known, collecting, frozen


@pytest.mark.thorough
@pytest.mark.parametrize("handler", MODULES_MAX)
def test_a_container_imports_what_it_needs(handler: str) -> None:
    """A prepared container has nothing heavy, no authorities read for nobody, and is frozen."""
    browser = {"ORBWEAVER_BROWSER": "/nowhere"} if handler == "renderer" else {}
    modules, known, collecting, frozen = ready(handler, AWS_LAMBDA_FUNCTION_NAME=handler, **browser)
    assert ("orbweaver.rendering.renderer" in modules) is (handler == "renderer")
    assert not set(HEAVY) & set(modules)
    if handler == "worker":
        assert not set(HEAVY_TO_WORKERS) & set(modules)
    # Debian's Python has that of its own.
    assert len(set(modules) - {"sitecustomize"}) <= MODULES_MAX[handler]
    assert known == [0, 0]
    assert collecting
    assert frozen


def test_nothing_is_prepared_elsewhere() -> None:
    """Whoever imports a handler outside of Lambda has no container for it, and collects garbage."""
    modules, _, collecting, frozen = ready("worker")
    assert "orbweaver.worker.batch" not in modules
    assert collecting
    assert not frozen


def test_a_worker_is_ready_before_its_first_batch() -> None:
    """What a batch takes is imported by then: actors, fetcher, metrics, clients."""
    modules, *_ = ready("worker", AWS_LAMBDA_FUNCTION_NAME="worker")
    needed = {
        "orbweaver.worker.batch",
        "orbweaver.worker.fetch_pack",
        "orbweaver.worker.response_handling",
        "orbweaver.parsing.page",
    }
    needed |= {
        "orbweaver.adapters.web.client",
        "orbweaver.adapters.aws.emf",
        "orbweaver.adapters.aws.sqs",
    }
    assert needed <= set(modules)


# --- what is made once ------------------------------------------------------------------------


class FakeSession:
    """Notes which clients are made; making one takes a moment."""

    def __init__(self) -> None:
        self.made: list[str] = []

    @asynccontextmanager
    async def create_client(self, service: str, **_: object) -> AsyncIterator[Any]:
        self.made.append(service)
        await asyncio.sleep(0)
        yield self

    async def list_things(self, **parameters: object) -> dict[str, Any]:
        return parameters


async def test_a_client_is_opened_by_its_first_call_and_once() -> None:
    """Calls that come together open one client, and none is opened for nobody."""
    session = FakeSession()
    async with Aws(cast("AioSession", session)) as clients:
        later, same, other = (clients.later(name) for name in ("sqs", "sqs", "s3"))
        assert session.made == []
        asked = await asyncio.gather(later.list_things(a=1), same.list_things(a=2))
        assert [*asked] == [{"a": 1}, {"a": 2}]
        assert session.made == ["sqs"]
        await clients.open("sqs", "s3")
        assert await other.list_things() == {}
        assert session.made == ["sqs", "s3"]


def test_authorities_are_read_once() -> None:
    """There is one context, and it verifies certificates by their alternative names."""
    context = tls.context()
    assert tls.context() is context
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert not context.hostname_checks_common_name
    assert context.cert_store_stats()["x509_ca"] > 0


def test_a_system_without_authorities_has_botocores(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where OpenSSL finds none, the list that botocore brings along is believed."""
    monkeypatch.setenv(tls.FILE, str(tmp_path / "none"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    assert tls.context().cert_store_stats()["x509_ca"] > 100


@pytest.mark.parametrize("file", [None, "/somewhere/else.pem"])
def test_authorities_are_out_of_sight_for_a_moment(
    monkeypatch: pytest.MonkeyPatch, file: str | None
) -> None:
    """A context made meanwhile believes nobody; afterwards all is as it was."""
    monkeypatch.delenv(tls.FILE, raising=False)
    if file is not None:
        monkeypatch.setenv(tls.FILE, file)
    with tls.without_authorities():
        assert ssl.create_default_context().cert_store_stats()["x509_ca"] == 0
    assert os.environ.get(tls.FILE) == file
