"""Input (`Ground`) and result (`Finding`) of a check.

A check returns failures instead of raising them. examine.py catches unexpected refusals by AWS. It
reports their operation and code, and never the message. Texts of AWS are only compared with known
words (`safe`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from infra.config import Config
from localstack import cdk
from localstack.removal import Resource

Seen: TypeAlias = dict[str, Any]

OTHER = "(another word)"
# Error codes and states of AWS that a report may contain. All other texts of AWS are replaced.
WORDS = frozenset(
    """
    400 404 413 ACTIVE AES256 AWS.SimpleQueueService.BatchRequestTooLong
    AWS.SimpleQueueService.NonExistentQueue AWS.SimpleQueueService.QueueDeletedRecently
    AWS.SimpleQueueService.TooManyEntriesInBatchRequest AWSError AccessDenied AccessDeniedException
    Active Allow AuthorizationError BatchRequestTooLong BucketNotEmpty CREATE_COMPLETE
    ConcurrentModificationException ConditionalCheckFailed ConditionalCheckFailedException Creating
    DELETING DISABLED Delete Disabled Disabling DuplicateItem ENABLED Enabled Enabling
    EntityNotFoundException EntityTooSmall ExpiredToken ExpiredTokenException FLEXIBLE Failed
    IMPORT_COMPLETE IdempotentParameterMismatchException Inactive InternalError InternalFailure
    InvalidAction InvalidAttributeValue InvalidClientTokenId InvalidMessageContents
    InvalidParameterException InvalidParameterValue InvalidParameterValueException
    InvalidRequestException LimitExceededException MalformedXML MethodNotAllowed NoSuchBucket
    NoSuchEntity NoSuchKey NoSuchLifecycleConfiguration None NotFoundException NotImplemented OFF
    OptInRequired PAY_PER_REQUEST PROVISIONED ParamValidation ParameterNotFound Pending
    PreconditionFailed ProvisionedThroughputExceededException QueueDeletedRecently QueueDoesNotExist
    ROLLBACK_COMPLETE RequestEntityTooLarge RequestEntityTooLargeException RequestTooLargeException
    ResourceConflictException ResourceNotFoundException Retain RetainExceptOnCreate
    ServiceUnavailable SignatureDoesNotMatch Snapshot Terminate Throttling ThrottlingError
    ThrottlingException TooManyEntriesInBatchRequest TooManyRequestsException
    TransactionCanceledException TransactionConflict TransactionConflictException
    TransactionInProgressException UPDATE_COMPLETE UPDATE_FAILED UPDATE_IN_PROGRESS
    UPDATE_ROLLBACK_COMPLETE UPDATE_ROLLBACK_FAILED UnauthorizedOperation UnknownOperationException
    UnrecognizedClientException UnsupportedOperation Updating ValidationError ValidationException
    allowed arm64 aws:kms explicitDeny implicitDeny python3.11 python3.12 python3.13 python3.14
    x86_64
    """.split()  # noqa: SIM905 - shorter than a list
)


class Result(StrEnum):
    """Result of a check."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Result of a check with the values that it read. `why` is the reason for a failure or skip."""

    result: Result
    seen: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check of checks.txt. `do` is the remedy for a failure."""

    id: str
    title: str
    run: Callable[[Ground], Finding]
    steps: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    full: bool = False
    stack: bool = True  # the check is skipped if no stack is deployed
    do: str
    not_on_emulator: str = ""


@dataclass(kw_only=True)
class Ground:
    """The account, region and stack to check. `crawl` crawls a URL, and returns counts of pages."""

    environment: Mapping[str, str]
    region_from: str
    stack: str
    outputs: Mapping[str, str] = field(default_factory=dict)
    resources: tuple[Resource, ...] = ()
    config: Config = field(default_factory=Config)
    full: bool = False
    context: Mapping[str, str] = field(default_factory=dict)  # for the doctor's own stack
    given: Mapping[str, str] = field(default_factory=dict)  # of the checked stack's deployment
    url: str | None = None
    crawl: Callable[[Mapping[str, str], str], tuple[int, int]] | None = None
    say: Callable[[str], None] = print
    deployed: bool = False  # True if the doctor has deployed a stack, which it must remove
    pause: Callable[[float], None] = time.sleep
    _open: ExitStack = field(default_factory=ExitStack)
    _clients: dict[str, Any] = field(default_factory=dict)

    def lend(self, service: str) -> AbstractContextManager[Any]:
        return cdk.client(service, self.environment)

    @property
    def emulator(self) -> bool:
        return cdk.is_emulator(self.environment)

    def client(self, service: str) -> Any:
        """Return a client of an AWS service. It is open until `close` is called."""
        if service not in self._clients:
            self._clients[service] = self._open.enter_context(self.lend(service))
        return self._clients[service]

    def call(self, operation: str, **parameters: Any) -> Any:
        """Call an operation of AWS, such as "sqs.send_message"."""
        service, _, method = operation.partition(".")
        return getattr(self.client(service), method)(**parameters)

    def close(self) -> None:
        self._clients.clear()
        self._open.close()

    def of_kind(self, kind: str) -> list[Resource]:
        return [one for one in self.resources if one.kind == kind]

    def until(self, is_true: Callable[[], bool], seconds: int) -> bool:
        """Call `is_true` every second until it returns True, at most `seconds` times.

        Returns the last result.
        """
        for _ in range(seconds - 1):
            if is_true():
                return True
            self.pause(1)
        return is_true()


def passed(**seen: Any) -> Finding:
    return Finding(result=Result.PASSED, seen=seen)


def failed(why: str, **seen: Any) -> Finding:
    return Finding(result=Result.FAILED, seen=seen, why=why)


def skipped(why: str) -> Finding:
    return Finding(result=Result.SKIPPED, why=why)


def judged(problems: list[str], **seen: Any) -> Finding:
    return failed("; ".join(problems), **seen) if problems else passed(**seen)


def safe(given: Any) -> Any:
    """Replace texts that are not known words of AWS. Numbers, booleans and known words are kept."""
    match given:
        case bool() | int() | float():
            return given
        case list():
            return [safe(value) for value in given]
        case dict():
            return {key: safe(value) for key, value in given.items()}
        case None:
            return "(none)"
        case _:
            text = str(given)
            return int(text) if re.fullmatch(r"\d{1,9}", text) else text if text in WORDS else OTHER
