"""Modules that a container imports before its first invocation."""

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

# Counted in a prepared container, plus a few. Raise a number here on purpose only.
MODULES_MAX = {
    "worker": 774,
    "renderer": 794,
    "api": 820,
    "exporter": 700,
    "starter": 720,
    "notifier": 650,
    "delivery": 640,
    "console": 840,
}
# No function needs these before its first invocation. Each takes 5 ms to 100 ms.
HEAVY = (
    *("aioboto3", "boto3", "s3transfer", "aiofiles"),
    *("aiohttp.web", "aiohttp.test_utils", "asyncssh", "duckdb", "bcrypt", "html_to_markdown"),
    *("multiprocessing", "publicsuffixlist", "pydantic", "re2", "sqlite3", "unittest", "xml.sax"),
    *(
        "tests.memory",
        "orbweaver.library",
        "orbweaver.cli.main",
        "orbweaver.exporting.formats.parquet",
    ),
)
# Only some functions need these.
HEAVY_TO_WORKERS = (
    *("orbweaver.extraction.extract", "orbweaver.exporting.manifest", "orbweaver.control.schedule"),
    *(
        "orbweaver.frontier.dead_letters",
        "orbweaver.control.crawl_spec",
        "orbweaver.exporting.formats",
    ),
)

# Prints the imported modules of a ready container, and the known authorities of aiohttp's contexts.
READY = """
import gc, json, sys
import handlers.{handler}
from aiohttp import connector
contexts = connector._SSL_CONTEXT_VERIFIED, connector._SSL_CONTEXT_UNVERIFIED
known = [context.cert_store_stats()["x509_ca"] for context in contexts]
print(json.dumps([sorted(sys.modules), known, gc.isenabled(), gc.get_freeze_count() > 0]))
"""


def ready(handler: str, **variables: str) -> tuple[list[str], list[int], bool, bool]:
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
def test_prepared_container_imports_only_needed_modules(handler: str) -> None:
    browser = {"ORBWEAVER_BROWSER": "/nowhere"} if handler == "renderer" else {}
    modules, known, collecting, frozen = ready(handler, AWS_LAMBDA_FUNCTION_NAME=handler, **browser)
    assert ("orbweaver.rendering.renderer" in modules) is (handler == "renderer")
    assert not set(HEAVY) & set(modules)
    if handler == "worker":
        assert not set(HEAVY_TO_WORKERS) & set(modules)
    # Debian's Python imports this module itself.
    assert len(set(modules) - {"sitecustomize"}) <= MODULES_MAX[handler]
    assert known == [0, 0]
    assert collecting
    assert frozen


def test_handler_outside_lambda_prepares_no_container() -> None:
    modules, _, collecting, frozen = ready("worker")
    assert "orbweaver.worker.batch" not in modules
    assert collecting
    assert not frozen


def test_worker_imports_all_modules_before_first_batch() -> None:
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


# --- objects that are made once ---------------------------------------------------------------


class FakeSession:
    """Records which clients are created; each creation takes a moment."""

    def __init__(self) -> None:
        self.made: list[str] = []

    @asynccontextmanager
    async def create_client(self, service: str, **_: object) -> AsyncIterator[Any]:
        self.made.append(service)
        await asyncio.sleep(0)
        yield self

    async def list_things(self, **parameters: object) -> dict[str, Any]:
        return parameters


async def test_client_is_opened_once_by_its_first_call() -> None:
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


def test_tls_context_is_made_once_and_checks_names() -> None:
    context = tls.context()
    assert tls.context() is context
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert not context.hostname_checks_common_name
    assert context.cert_store_stats()["x509_ca"] > 0


def test_system_without_authorities_uses_list_of_botocore(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(tls.FILE, str(tmp_path / "none"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    assert tls.context().cert_store_stats()["x509_ca"] > 100


@pytest.mark.parametrize("file", [None, "/somewhere/else.pem"])
def test_without_authorities_hides_them_temporarily(
    monkeypatch: pytest.MonkeyPatch, file: str | None
) -> None:
    monkeypatch.delenv(tls.FILE, raising=False)
    if file is not None:
        monkeypatch.setenv(tls.FILE, file)
    with tls.without_authorities():
        assert ssl.create_default_context().cert_store_stats()["x509_ca"] == 0
    assert os.environ.get(tls.FILE) == file
