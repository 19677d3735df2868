"""Problem details of refused requests (RFC 9457) and their statuses.

A problem contains no stack trace and no header value. The API does not catch bugs and missing
permissions: the function fails, its log has the traceback, and the gateway answers in the same form
(`GATEWAY`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from orbweaver.control.crawl_spec import PlanError
from orbweaver.control.definition import DefinitionError
from orbweaver.control.definition import DefinitionProblem as Flaw
from orbweaver.control.json_reader import Fits
from orbweaver.model.errors import Conflict, ControlError, StoredNewer, Transient, UnknownCrawl
from orbweaver.model.value import value_class
from orbweaver.model.version import REMEDY

CONTENT_TYPE = "application/problem+json"
FLAWS_MAX = 100
RETRY_AFTER_S = "5"
TITLES = {
    400: "Bad request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not found",
    409: "Conflict",
    413: "Content too large",
    415: "Unsupported media type",
    421: "Misdirected request",
    429: "Too many requests",
    500: "Internal error",
    502: "Bad gateway",
    503: "Unavailable",
    504: "Gateway timeout",
}
# Statuses of API Gateway's own responses, by its response types. `DEFAULT_…` covers all others.
GATEWAY: Mapping[str, int] = {
    "ACCESS_DENIED": 403,
    "API_CONFIGURATION_ERROR": 500,
    "BAD_REQUEST_BODY": 400,
    "BAD_REQUEST_PARAMETERS": 400,
    "EXPIRED_TOKEN": 403,
    "INTEGRATION_FAILURE": 504,
    "INTEGRATION_TIMEOUT": 504,
    "INVALID_SIGNATURE": 403,
    "MISSING_AUTHENTICATION_TOKEN": 403,
    "REQUEST_TOO_LARGE": 413,
    "RESOURCE_NOT_FOUND": 404,
    "THROTTLED": 429,
    "UNSUPPORTED_MEDIA_TYPE": 415,
}
# Every operation can answer with these: invalid or unauthorised requests, crawls stored by a newer
# version, too many requests, internal errors, errors of the gateway.
ALWAYS = (400, 403, 409, 413, 429, 500, 502, 503, 504)
# Additional statuses of a local server without signatures: wrong token, wrong host name
# (api/fence.py).
FENCED = (401, 421)


@value_class
class Part:
    """One mistake and its place: a key, a parameter, or the index in a list."""

    path: str
    text: str


@value_class
class Problem:
    """The reason why a request had no effect (RFC 9457)."""

    type: Annotated[str, Fits(example="about:blank")]
    title: str
    detail: str
    status: int | None = None
    problems: Annotated[tuple[Part, ...], Fits(says="the first 100 things that do not fit")] = ()


@dataclass
class Refused(Exception):
    """A request was refused with a status and a reason, and had no effect."""

    status: int
    detail: str
    flaws: Sequence[Flaw] = field(default=())


# Statuses of exceptions. The first matching type counts.
STATUSES: Mapping[type[Exception], int] = {
    PlanError: 400,
    UnknownCrawl: 404,
    Conflict: 409,
    ControlError: 400,
    StoredNewer: 409,
    Transient: 503,
}
# Exceptions that become problems. Any other exception is a bug.
PROBLEMS: tuple[type[Exception], ...] = (Refused, DefinitionError, *STATUSES)


def problem_of(error: Exception) -> Problem:
    if isinstance(error, Refused):
        return _problem(error.status, error.detail, error.flaws)
    if isinstance(error, DefinitionError):
        return _problem(400, str(error.problems[0]), error.problems)
    status = next(status for kind, status in STATUSES.items() if isinstance(error, kind))
    text = str(error)
    if isinstance(error, StoredNewer):
        text = f"{text}; {REMEDY}"
    return _problem(status, f"try again: {text}" if isinstance(error, Transient) else text)


def headers_of(problem: Problem) -> dict[str, str]:
    return {"Retry-After": RETRY_AFTER_S} if problem.status == 503 else {}  # noqa: PLR2004 - HTTP's own


def _problem(status: int, detail: str, flaws: Sequence[Flaw] = ()) -> Problem:
    return Problem(
        type="about:blank",
        title=TITLES[status],
        detail=detail,
        status=status,
        problems=tuple(Part(path=flaw.path, text=flaw.text) for flaw in flaws[:FLAWS_MAX]),
    )
