"""One request to the web and its result, as values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from orbweaver.model.outcome import Reason

Headers: TypeAlias = tuple[tuple[str, str], ...]
# By origin, or by host as a definition names it.
HostHeaders: TypeAlias = tuple[tuple[str, Headers], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """The validators of what we have: `If-None-Match` and `If-Modified-Since`, as they came."""

    etag: str | None
    last_modified: str | None


class BodyRoom(Protocol):
    """The bytes of a limit that one body may use; the body's reader asks for more."""

    @property
    def bytes_max(self) -> int:
        """The size of body that fits now, in decoded bytes."""

    async def grow(self, size: int) -> None:
        """Reserve room for a body of this size; less if the limit is used up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One GET, or a POST of `body`. `direct` passes proxies by, where there are any.

    `accept` lists the media types whose bodies are read; others end after headers. `named` are the
    origins that a person named: of what is not public, they alone are dialled
    (`model/redacted_names.py`). A crawl with a limit of bytes gives the body a `room`.
    """

    url: str
    user_agent: str
    accept: frozenset[str]
    body_bytes_max: int
    total_s: float
    condition: Condition | None = None
    headers: Headers = field(default=(), repr=False)
    direct: bool = False
    body: bytes | None = None
    named: frozenset[str] = frozenset()
    room: BodyRoom | None = field(default=None, repr=False, compare=False)
    # Called once the answer is here, while the fetcher makes sure that it is the request's own.
    answered: Callable[[], None] | None = field(default=None, repr=False, compare=False)
    paced: bool = True  # whether slots pace the host, which leaves time to make sure of answers


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """An answer: header names in lower case, values as they came (`model/http_headers.py`).

    `body` is decoded, and None if it was not read.
    `truncated` says that the body was cut at `body_bytes_max` decoded bytes; `received`, how many
    bytes of it came over the wire, whether they were wanted or not (`adapters/web/wire.py`);
    `headers_cut`, how many lines of its head are not among the headers.
    `asked` are the headers that it was asked for with, as they may be stored
    (`model/user_agent.py`).
    """

    status: int
    headers: Mapping[str, str]
    body: bytes | None
    truncated: bool = False
    latency_ms: int = 0
    received: int = 0
    # The bytes of the values that are not UTF-8, by name.
    octets: Mapping[str, bytes] = field(default_factory=dict)
    # Its lines of Set-Cookie, which may be secrets.
    cookies: tuple[bytes, ...] = field(default=(), repr=False)
    asked: Headers = ()
    headers_cut: int = 0
    # Whether the body is what its scripts made of the page, and whether they were stopped.
    rendered: bool = False
    render_cut: bool = False
    # A picture of it, as WebP.
    screenshot: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """No answer worth having: why, and a short text for people.

    With `later_s` the host was not asked, or not heard out, for reasons of ours: it may be asked so
    many seconds later, and that was no attempt.
    """

    reason: Reason
    detail: str
    latency_ms: int = 0
    later_s: float | None = None
    received: int = 0


def received_of(answer: Response | Failure) -> int:
    """How many bytes of a body there were: as they came in, or decoded, whichever are more."""
    body = answer.body if isinstance(answer, Response) else None
    return max(answer.received, len(body or b""))
