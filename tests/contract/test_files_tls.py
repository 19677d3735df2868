"""Files over TLS as on AWS: bodies are sent in chunks with a trailing checksum, also on retries."""

from __future__ import annotations

from hashlib import sha256
from random import Random
from typing import TYPE_CHECKING

import pytest

from localstack import layout
from orbweaver.adapters.aws.clients import Aws
from orbweaver.adapters.aws.s3 import BucketFiles
from orbweaver.model.ports import Print
from tests.contract.tls_front import Front, fronted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from aiobotocore.session import AioSession

BUCKET = "over-tls"
SIZES = (0, 10, 100_000, 3_000_000)


@pytest.fixture(params=["moto", pytest.param("ministack", marks=pytest.mark.emulator)])
async def front(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Front]:
    """Serve TLS in front of both backends and point the environment to it."""
    async with fronted(request.getfixturevalue(request.param), tmp_path) as made:
        for variable, value in layout.client_environment(made.url).items():
            monkeypatch.setenv(variable, value)
        monkeypatch.setenv("AWS_CA_BUNDLE", str(made.bundle))
        yield made


@pytest.fixture
async def files(front: Front, session: AioSession) -> AsyncIterator[BucketFiles]:
    async with Aws(None, validates=True) as clients:
        client = await clients.client("s3")
        await client.create_bucket(Bucket=BUCKET)
        front.sent.clear()
        yield BucketFiles(client, bucket=BUCKET)


def body_of(size: int) -> bytes:
    return Random(size).randbytes(size)


@pytest.mark.parametrize("size", SIZES)
async def test_body_is_sent_in_chunks_with_trailing_crc32(
    front: Front, files: BucketFiles, size: int
) -> None:
    body = body_of(size)
    await files.put("bodies/x", body)
    (sent,) = front.sent
    assert sent.headers["content-encoding"] == "aws-chunked"
    assert sent.headers["x-amz-content-sha256"] == "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
    assert sent.headers["x-amz-trailer"] == "x-amz-checksum-crc32"
    assert sent.body == body
    assert await files.get("bodies/x") == body


@pytest.mark.parametrize("size", SIZES)
async def test_refused_body_is_sent_again_from_start(
    front: Front, files: BucketFiles, size: int
) -> None:
    front.busy = 2
    await files.put("bodies/x", body_of(size))
    assert [sent.body for sent in front.sent] == [body_of(size)] * 3
    assert await files.get("bodies/x") == body_of(size)


async def test_file_with_own_sha256_is_sent_again_from_start(
    front: Front, files: BucketFiles, tmp_path: Path
) -> None:
    body = body_of(3_000_000)
    (path := tmp_path / "file").write_bytes(body)
    front.busy = 2
    digest = sha256(body).hexdigest()
    await files.put_file("exports/x", path, digest)
    assert {"x-amz-checksum-sha256" in sent.headers for sent in front.sent} == {True}
    assert [sent.body for sent in front.sent] == [body] * 3
    assert await files.print_of("exports/x") == Print(bytes=len(body), sha256=digest)


async def test_list_and_delete_requests_have_checksum(front: Front, files: BucketFiles) -> None:
    for key in ("a/1", "a/ü ?#%"):
        await files.put(key, b"x")
    assert await files.list("a/") == ("a/1", "a/ü ?#%")
    await files.delete(["a/1", "a/ü ?#%"])
    assert any("checksum" in name or name == "content-md5" for name in front.sent[-1].headers)
    assert await files.list("a/") == ()
