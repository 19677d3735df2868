"""Files over TLS, as on AWS: bodies go in chunks with a checksum behind, when repeated too."""

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
    """Have TLS in front of both, and an environment that leads there."""
    async with fronted(request.getfixturevalue(request.param), tmp_path) as made:
        for variable, value in layout.client_environment(made.url).items():
            monkeypatch.setenv(variable, value)
        monkeypatch.setenv("AWS_CA_BUNDLE", str(made.bundle))
        yield made


@pytest.fixture
async def files(front: Front, session: AioSession) -> AsyncIterator[BucketFiles]:
    """Give a bucket behind it."""
    async with Aws(None, validates=True) as clients:
        client = await clients.client("s3")
        await client.create_bucket(Bucket=BUCKET)
        front.sent.clear()
        yield BucketFiles(client, bucket=BUCKET)


def body_of(size: int) -> bytes:
    """Make a body that no two sizes share."""
    return Random(size).randbytes(size)


@pytest.mark.parametrize("size", SIZES)
async def test_a_body_goes_in_chunks_and_comes_back(
    front: Front, files: BucketFiles, size: int
) -> None:
    """Unsigned chunks, their true length, and a CRC-32 that fits what was sent."""
    body = body_of(size)
    await files.put("bodies/x", body)
    (sent,) = front.sent
    assert sent.headers["content-encoding"] == "aws-chunked"
    assert sent.headers["x-amz-content-sha256"] == "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
    assert sent.headers["x-amz-trailer"] == "x-amz-checksum-crc32"
    assert sent.body == body
    assert await files.get("bodies/x") == body


@pytest.mark.parametrize("size", SIZES)
async def test_a_refused_body_is_sent_again_whole(
    front: Front, files: BucketFiles, size: int
) -> None:
    """A body that was read to its end once is read from its beginning by the next tries."""
    front.busy = 2
    await files.put("bodies/x", body_of(size))
    assert [sent.body for sent in front.sent] == [body_of(size)] * 3
    assert await files.get("bodies/x") == body_of(size)


async def test_a_file_with_a_sum_of_its_own(
    front: Front, files: BucketFiles, tmp_path: Path
) -> None:
    """A file from disk says its SHA-256 ahead, and is sent again from its beginning as well."""
    body = body_of(3_000_000)
    (path := tmp_path / "file").write_bytes(body)
    front.busy = 2
    digest = sha256(body).hexdigest()
    await files.put_file("exports/x", path, digest)
    assert {"x-amz-checksum-sha256" in sent.headers for sent in front.sent} == {True}
    assert [sent.body for sent in front.sent] == [body] * 3
    assert await files.print_of("exports/x") == Print(bytes=len(body), sha256=digest)


async def test_files_are_listed_and_deleted(front: Front, files: BucketFiles) -> None:
    """A request with a body of XML has its checksum, too."""
    for key in ("a/1", "a/ü ?#%"):
        await files.put(key, b"x")
    assert await files.list("a/") == ("a/1", "a/ü ?#%")
    await files.delete(["a/1", "a/ü ?#%"])
    assert any("checksum" in name or name == "content-md5" for name in front.sent[-1].headers)
    assert await files.list("a/") == ()
