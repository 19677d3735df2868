"""Copy exports to another bucket, in any region or account. S3 itself makes the copies.

A copy is stored whole or not at all, and has at most 5 GB. Sources: Amazon S3 API reference,
CopyObject. User guide, "Controlling ownership of objects".
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from orbweaver.adapters.aws import clients
from orbweaver.adapters.aws.s3 import ABSENT, BucketFiles
from orbweaver.delivery.plan import FileRemoval
from orbweaver.exporting.manifest import File
from orbweaver.model.errors import Transient
from orbweaver.model.ports import Clock

AT_ONCE = 16
# The owner of the target bucket gets full control. Buckets without ACLs accept this ACL too.
OWNED = {"ACL": "bucket-owner-full-control"}


class BucketCourier:
    """Implements `Courier` for an S3 bucket."""

    def __init__(self, client: Any, *, source: str, target: str, prefix: str, clock: Clock) -> None:
        """Files with `prefix` in `source` get the same keys in `target`."""
        self._client = client
        self._source = source
        self._target = target
        self._prefix = prefix
        self._clock = clock
        self._there = BucketFiles(client, bucket=target)

    async def read(self, path: str, bytes_max: int) -> bytes | None:
        return await self._there.get(self._prefix + path, bytes_max)

    async def sizes(self, paths: Sequence[str]) -> Mapping[str, int]:
        found = await clients.all_of((self._size(path) for path in paths), AT_ONCE)
        return {path: size for path, size in zip(paths, found, strict=True) if size is not None}

    async def write(self, path: str, body: bytes) -> None:
        await clients.call(
            self._client,
            "put_object",
            Bucket=self._target,
            Key=self._prefix + path,
            Body=body,
            **OWNED,
        )

    async def transfer(self, file: File, deadline_ms: int) -> bool:
        if self._clock.now_ms() >= deadline_ms:
            return False
        key = self._prefix + file.path
        if await self._copied(key) != file.sha256:
            # The export is being rewritten. The copy is made again later.
            await self._there.delete([key])
            raise Transient(f"{file.path} is not what its manifest says: it is being made anew")
        return True

    async def remove(self, remains: Sequence[FileRemoval]) -> None:
        await self._there.delete([self._prefix + one.path for one in remains])

    async def _copied(self, key: str) -> str | None:
        answer = await self._copy(key)
        known = answer.get("CopyObjectResult", {}).get("ChecksumSHA256")
        if known is not None:
            return b64decode(known).hex()
        print_ = await self._there.print_of(key)  # this S3 returns no checksum
        return None if print_ is None else print_.sha256

    async def _copy(self, key: str) -> dict[str, Any]:
        with clients.translated("copy_object"):
            try:
                answer: dict[str, Any] = await self._client.copy_object(
                    Bucket=self._target,
                    Key=key,
                    CopySource={"Bucket": self._source, "Key": key},
                    ChecksumAlgorithm="SHA256",
                    **OWNED,
                )
            except ClientError as error:
                if clients.code_of(error) in ABSENT:
                    what = f"{key} is not in the bucket any more: it is being made anew"
                    raise Transient(what) from error
                raise
        return answer

    async def _size(self, path: str) -> int | None:
        with clients.translated("head_object"):
            try:
                answer = await self._client.head_object(
                    Bucket=self._target, Key=self._prefix + path
                )
            except ClientError as error:
                if clients.code_of(error) in ABSENT:
                    return None
                raise
        return int(answer["ContentLength"])
