"""Files in an S3 bucket. Readers see the whole file that a write stores, or the previous one."""

from __future__ import annotations

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from orbweaver.adapters.aws import clients
from orbweaver.model.errors import check_cut, check_size
from orbweaver.model.ports import Print

DELETE_KEYS_MAX = 1_000
BLOCK_BYTES = 1024 * 1024
ABSENT = frozenset({"NoSuchKey", "404"})


class BucketFiles:
    """Implements `Files` in an S3 bucket."""

    def __init__(self, client: Any, *, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    async def put(self, key: str, body: bytes) -> None:
        await clients.call(self._client, "put_object", Bucket=self._bucket, Key=key, Body=body)

    async def put_file(self, key: str, path: Path, sha256: str) -> None:
        with path.open("rb") as body:  # the file is streamed in blocks
            await clients.call(
                self._client,
                "put_object",
                Bucket=self._bucket,
                Key=key,
                Body=body,
                # S3 rejects a body with another checksum, and returns the checksum to readers.
                ChecksumSHA256=b64encode(bytes.fromhex(sha256)).decode(),
            )

    async def print_of(self, key: str) -> Print | None:
        with clients.translated("head_object"):
            answer = await self._answer("head_object", key, ChecksumMode="ENABLED")
        if answer is None:
            return None
        known = answer.get("ChecksumSHA256")
        if known is not None and answer.get("ChecksumType", "FULL_OBJECT") == "FULL_OBJECT":
            return Print(bytes=answer["ContentLength"], sha256=b64decode(known).hex())
        return await self._read(key)

    async def _read(self, key: str) -> Print | None:
        """Hash a file that was stored without a checksum."""
        digest, size = hashlib.sha256(), 0
        with clients.translated("get_object"):
            answer = await self._answer("get_object", key)
            if answer is None:
                return None
            async with answer["Body"] as stream:
                async for block in stream.content.iter_chunked(BLOCK_BYTES):
                    digest.update(block)
                    size += len(block)
        return Print(bytes=size, sha256=digest.hexdigest())

    async def link(self, key: str, seconds: int) -> str:
        # Signed with this container's credentials, so the link expires with them at the latest.
        given = {"Bucket": self._bucket, "Key": key}
        signed = self._client.generate_presigned_url("get_object", given, ExpiresIn=seconds)
        return str(await signed)

    async def get(self, key: str, bytes_max: int | None = None) -> bytes | None:
        return await self._get(key, bytes_max)

    async def cut(self, key: str, offset: int, length: int) -> bytes | None:
        # A range's bounds are inclusive, and a range that starts after the file's end is an error.
        part = await self._get(key, None, Range=f"bytes={offset}-{offset + length - 1}")
        return None if part is None else check_cut(key, part, length)

    async def _get(self, key: str, bytes_max: int | None, **more: str) -> bytes | None:
        with clients.translated("get_object"):
            answer = await self._answer("get_object", key, **more)
            if answer is None:
                return None
            async with answer["Body"] as stream:
                check_size(key, answer["ContentLength"], bytes_max)
                body: bytes = await stream.read()
        return body

    async def _answer(self, operation: str, key: str, **more: str) -> dict[str, Any] | None:
        """Request a file. Return None if it does not exist."""
        try:
            call = getattr(self._client, operation)
            answer: dict[str, Any] = await call(Bucket=self._bucket, Key=key, **more)
        except ClientError as error:
            if clients.code_of(error) in ABSENT:
                return None
            raise
        return answer

    async def list(self, prefix: str) -> tuple[str, ...]:
        return await self._listed("Contents", "Key", Prefix=prefix)

    async def folders(self, prefix: str) -> tuple[str, ...]:
        return await self._listed("CommonPrefixes", "Prefix", Prefix=prefix, Delimiter="/")

    async def _listed(self, entries: str, name: str, **parameters: str) -> tuple[str, ...]:
        found: list[str] = []
        parameters["Bucket"] = self._bucket
        while True:
            answer = await clients.call(self._client, "list_objects_v2", **parameters)
            found += (entry[name] for entry in answer.get(entries, ()))
            if not answer.get("IsTruncated"):
                return tuple(sorted(found))
            parameters["ContinuationToken"] = answer["NextContinuationToken"]

    async def delete(self, keys: Sequence[str]) -> None:
        for start in range(0, len(keys), DELETE_KEYS_MAX):
            objects = [{"Key": key} for key in keys[start : start + DELETE_KEYS_MAX]]
            answer = await clients.call(
                self._client,
                "delete_objects",
                Bucket=self._bucket,
                Delete={"Objects": objects, "Quiet": True},
            )
            for error in answer.get("Errors", ()):
                code = error.get("Code", "unknown")
                raise clients.error_of(code, 0, f"delete_objects: {code}")
