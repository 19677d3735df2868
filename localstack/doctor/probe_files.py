"""Checks of S3, in the bucket of the doctor's own stack."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from localstack.doctor.ground import (
    Finding,
    Ground,
    code_of,
    expect,
    failed,
    judged,
    probe,
    refused,
)
from localstack.doctor.probe_tables import key

PARTIAL = 206
PART_BYTES_MIN = 5 * 1024 * 1024
BODY = bytes(range(256)) * 40
KEYS_MAX = 1_000


def _at(ground: Ground, name: str) -> dict[str, Any]:
    return {"Bucket": ground.outputs["Bucket"], "Key": f"exports/_work/{name}"}


def whole(ground: Ground) -> Finding:
    s3, missed = ground.client("s3"), 0
    for _ in range(5):
        where = _at(ground, key())
        s3.put_object(**where, Body=BODY)
        listed = s3.list_objects_v2(Bucket=where["Bucket"], Prefix=where["Key"])["KeyCount"]
        missed += s3.get_object(**where)["Body"].read() != BODY or listed != 1
    return expect(not missed, "some were not seen at once", puts=5, missed=missed)


def conditional(ground: Ground) -> Finding:
    """Check that a put with `If-None-Match: *` is refused if the object exists."""
    s3, where = ground.client("s3"), _at(ground, key())
    s3.put_object(**where, Body=b"first", IfNoneMatch="*")
    try:
        s3.put_object(**where, Body=b"second", IfNoneMatch="*")
    except ClientError as error:
        kept = s3.get_object(**where)["Body"].read() == b"first"
        return expect(kept, "the object is another one", code=code_of(error), kept=kept)
    return failed("the second writer won as well")


def part(ground: Ground) -> Finding:
    """Check that a range request gets 206 and the requested bytes."""
    s3, where = ground.client("s3"), _at(ground, key())
    s3.put_object(**where, Body=BODY)
    answer = s3.get_object(**where, Range="bytes=300-399")
    status = int(answer["ResponseMetadata"]["HTTPStatusCode"])
    right = status == PARTIAL and answer["Body"].read() == BODY[300:400]
    return expect(right, "another part came", status=status)


def absent(ground: Ground) -> Finding:
    """Check that a missing key is reported as missing. The caller may list the bucket."""
    return refused(ground.client("s3").get_object, "a key", "NoSuchKey", **_at(ground, key()))


def deletion(ground: Ground) -> Finding:
    s3, bucket = ground.client("s3"), ground.outputs["Bucket"]
    where = _at(ground, key())
    s3.put_object(**where, Body=b"x")
    keys = [{"Key": where["Key"]}, *({"Key": f"exports/_work/absent-{n}"} for n in range(KEYS_MAX))]
    answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": keys[:KEYS_MAX], "Quiet": True})
    errors = len(answer.get("Errors", ()))
    gone = s3.list_objects_v2(Bucket=bucket, Prefix=where["Key"])["KeyCount"] == 0
    why = "some were not deleted"
    return expect(not errors and gone, why, keys=KEYS_MAX, errors=errors, gone=gone)


def deletion_max(ground: Ground) -> Finding:
    s3, bucket = ground.client("s3"), ground.outputs["Bucket"]
    keys = [{"Key": f"exports/_work/absent-{n}"} for n in range(KEYS_MAX + 1)]
    return refused(s3.delete_objects, "1,001 keys", Bucket=bucket, Delete={"Objects": keys})


def multipart(ground: Ground) -> Finding:
    """Check that parts before the last have at least 5 MB, and that open uploads are listed."""
    s3, where = ground.client("s3"), _at(ground, key())
    upload = s3.create_multipart_upload(**where)["UploadId"]
    named = {**where, "UploadId": upload}
    small = [
        s3.upload_part(**named, PartNumber=number, Body=b"x" * 1024)["ETag"] for number in (1, 2)
    ]
    parts = [{"PartNumber": number, "ETag": tag} for number, tag in enumerate(small, 1)]
    listed = len(s3.list_multipart_uploads(Bucket=where["Bucket"]).get("Uploads", ()))
    code = ""
    try:
        s3.complete_multipart_upload(**named, MultipartUpload={"Parts": parts})
    except ClientError as error:
        code = code_of(error)
    tags = (
        [
            s3.upload_part(**named, PartNumber=number, Body=body)["ETag"]
            for number, body in ((1, b"x" * PART_BYTES_MIN), (2, b"y"))
        ]
        if code
        else []
    )
    if tags:
        parts = [{"PartNumber": number, "ETag": tag} for number, tag in enumerate(tags, 1)]
        s3.complete_multipart_upload(**named, MultipartUpload={"Parts": parts})
    size = s3.head_object(**where)["ContentLength"]
    problems = [] if listed else ["an unfinished upload is not listed"]
    problems += [] if code else ["parts of 1 KB were taken"]
    problems += [] if size == PART_BYTES_MIN + 1 or not code else ["the file has another size"]
    return judged(problems, code=code, listed=listed, bytes=int(size))


def full_bucket(ground: Ground) -> Finding:
    s3, where = ground.client("s3"), _at(ground, key())
    s3.put_object(**where, Body=b"x")
    return refused(s3.delete_bucket, "its removal", "BucketNotEmpty", Bucket=where["Bucket"])


def checksums(ground: Ground) -> Finding:
    answer = ground.client("s3").put_object(
        **_at(ground, key()), Body=BODY, ChecksumAlgorithm="CRC32"
    )
    told = "ChecksumCRC32" in answer
    return expect(told, "the checksum is not told", told=told)


CHECKS = (
    probe("s3.whole", "a put is seen at once", whole, "A45"),
    probe("s3.conditional", "one of competing writers stays", conditional, "A45"),
    probe("s3.range", "a part of an object is read", part, "A46"),
    probe("s3.absent", "an absent key is told as such", absent, "A47"),
    probe("s3.deletion", "a thousand keys are deleted at once", deletion, "A48"),
    probe(
        "s3.deletion_max",
        "a thousand keys and not one more",
        deletion_max,
        "A48",
        emulator="it takes any number",
    ),
    probe(
        "s3.multipart",
        "parts have 5 MB, and unfinished uploads are listed",
        multipart,
        "A49",
        emulator="it takes parts of any size",
    ),
    probe("s3.full", "a bucket that holds something stays", full_bucket, "A50"),
    probe(
        "s3.checksums",
        "bodies with trailing checksums are taken",
        checksums,
        "A51",
        emulator="it speaks plain HTTP, where clients send no trailing checksum",
    ),
)
