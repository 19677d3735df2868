"""Input (`Ground`) and result (`Finding`) of a check.

A check returns failures instead of raising them. examine.py catches unexpected refusals by AWS, and
reports operation and code, never the message. AWS's texts are only compared with known words:
`word`, `version`, `code_of`.
"""

from __future__ import annotations

import contextlib
import re
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

from botocore.exceptions import ClientError, ParamValidationError

from localstack import cdk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from infra.config import Config
    from localstack.removal import Resource
    from localstack.retained import Lend

Seen: TypeAlias = "int | float | bool | str | list[Any] | dict[str, Any]"

OTHER = "(another word)"
# AWS's error codes for refused requests. A report hides all other codes.
CODES = frozenset(
    {"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "AuthorizationError"}
    | {"ValidationException", "ValidationError", "InvalidParameterValueException"}
    | {"InvalidParameterValue", "InvalidParameterException", "InvalidMessageContents"}
    | {"AWS.SimpleQueueService.TooManyEntriesInBatchRequest", "TooManyEntriesInBatchRequest"}
    | {"AWS.SimpleQueueService.BatchRequestTooLong", "BatchRequestTooLong", "MalformedXML"}
    | {"AWS.SimpleQueueService.QueueDeletedRecently", "QueueDeletedRecently", "Throttling"}
    | {"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist", "ThrottlingException"}
    | {"ConditionalCheckFailedException", "TransactionCanceledException", "NoSuchKey"}
    | {"TransactionConflictException", "TransactionInProgressException", "NoSuchBucket"}
    | {"IdempotentParameterMismatchException", "ResourceNotFoundException", "404", "400"}
    | {"ProvisionedThroughputExceededException", "PreconditionFailed", "EntityTooSmall"}
    | {"BucketNotEmpty", "RequestEntityTooLargeException", "RequestTooLargeException", "413"}
    | {"ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "SignatureDoesNotMatch"}
    | {"UnrecognizedClientException", "OptInRequired", "ParameterNotFound", "NotImplemented"}
    | {"UnsupportedOperation", "InternalError", "InternalFailure", "ServiceUnavailable"}
    | {"ConcurrentModificationException", "EntityNotFoundException", "InvalidRequestException"}
    | {"ResourceConflictException", "TooManyRequestsException", "UnknownOperationException"}
    | {"InvalidAction", "MethodNotAllowed", "NotFoundException", "NoSuchEntity", "AWSError"}
    | {
        "NoSuchLifecycleConfiguration",
        "InvalidAttributeValue",
        "RequestEntityTooLarge",
        "LimitExceededException",
    }
)


class Result(StrEnum):
    """Result of a check."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Result of a check with the values it saw. `why` explains a failed or skipped check."""

    result: Result
    seen: Mapping[str, Seen] = field(default_factory=dict)
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One entry of the registry. `do` is the remedy for a failure."""

    id: str
    title: str
    run: Callable[[Ground], Finding]
    assumptions: tuple[str, ...] = ()
    full: bool = False
    stack: bool = True  # the check needs a stack
    do: str
    not_on_emulator: str = ""


@dataclass(kw_only=True)
class Ground:
    """The account, region and stack to check. `crawl` crawls a URL and counts its pages."""

    environment: Mapping[str, str]
    region_from: str
    stack: str
    outputs: Mapping[str, str] = field(default_factory=dict)
    resources: tuple[Resource, ...] = ()
    config: Config
    given: frozenset[str] = frozenset()  # the context keys given to the deployment
    lend: Lend
    url: str | None = None
    crawl: Callable[[str], tuple[int, int]] | None = None
    pause: Callable[[float], None] = time.sleep
    _open: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _clients: dict[str, Any] = field(default_factory=dict)

    @property
    def emulator(self) -> bool:
        return cdk.is_emulator(self.environment)

    def client(self, service: str) -> Any:
        """Return a client. It stays open until `close`."""
        if service not in self._clients:
            self._clients[service] = self._open.enter_context(self.lend(service))
        return self._clients[service]

    def close(self) -> None:
        self._clients.clear()
        self._open.close()

    def of_kind(self, kind: str) -> list[Resource]:
        return [one for one in self.resources if one.kind == kind]

    def named(self, *keys: str) -> dict[str, str]:
        """Return the stack's outputs with these keys. Missing outputs are omitted."""
        return {key: self.outputs[key] for key in keys if self.outputs.get(key)}


def probe(
    name: str, title: str, run: Callable[[Ground], Finding], *assumptions: str, emulator: str = ""
) -> Check:
    """Make a check that needs its own stack. `emulator` is the reason to skip it on one."""
    return Check(
        id=name,
        title=title,
        run=run,
        assumptions=assumptions,
        full=True,
        do="report it with this file: the code relies on it",
        not_on_emulator=emulator,
    )


def passed(**seen: Seen) -> Finding:
    return Finding(result=Result.PASSED, seen=seen)


def failed(why: str, **seen: Seen) -> Finding:
    return Finding(result=Result.FAILED, seen=seen, why=why)


def skipped(why: str) -> Finding:
    return Finding(result=Result.SKIPPED, why=why)


def judged(problems: list[str], **seen: Seen) -> Finding:
    return failed("; ".join(problems), **seen) if problems else passed(**seen)


def expect(true: bool, otherwise: str, **seen: Seen) -> Finding:
    return passed(**seen) if true else failed(otherwise, **seen)


def word(given: object, *known: str) -> str:
    """Return a word of AWS if it is one of `known`, else a placeholder."""
    return str(given) if given in known else OTHER


def version(given: object) -> str:
    """Return a version of digits and dots. Other text becomes a placeholder."""
    found = re.fullmatch(r"\d{1,5}(\.\d{1,5}){0,3}", str(given))
    return found[0] if found else OTHER


def number(given: object) -> int:
    """Parse a number that AWS may return as text. Returns -1 if it is invalid."""
    try:
        return int(str(given))
    except ValueError:
        return -1


def code_of(error: ClientError) -> str:
    """Return an error's code, without its message. Unknown codes become a placeholder."""
    code = str(error.response.get("Error", {}).get("Code", ""))
    return code if code in CODES else "(another error)"


def refusal(call: Callable[..., Any], **parameters: Any) -> str:
    """Make a call that AWS should refuse. Return the error code, or "" if AWS accepted the call."""
    try:
        call(**parameters)
    except ClientError as error:
        return code_of(error)
    except ParamValidationError:
        return "ParamValidation"
    return ""


def refused(call: Callable[..., Any], what: str, *known: str, **parameters: Any) -> Finding:
    """Check that AWS refuses a call, with one of the codes in `known` if there are any."""
    code = refusal(call, **parameters)
    if not code:
        return failed(f"{what} was taken")
    if known and code not in known:
        return failed(f"{what} was refused for another reason", code=code)
    return passed(code=code)


def until(ground: Ground, found: Callable[[], Any], seconds: float, every: float = 1.0) -> Any:
    """Repeat `found` until its result is true or `seconds` have passed. Return the last result."""
    tries = max(1, round(seconds / every))
    for left in range(tries, 0, -1):
        if (got := found()) or left == 1:
            return got
        ground.pause(every)
    return None
