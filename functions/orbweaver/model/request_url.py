"""Write a POST request as a URL, so that a crawl claims, records and erases it like any URL.

The fragment has the kind of the body and the body: `https://example.com/api#POST-json:{%22a%22:1}`.
Only definitions and seeds of people lead to such a URL. Links of pages never have a fragment
(`canonicalize`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from orbweaver.model.http_exchange import Headers
from orbweaver.model.url import TRACKING_PARAMETERS, canonicalize, is_canonical
from orbweaver.model.value import positional_value_class

MARK = "#POST-"
# Limit of a body as the URL spells it.
BODY_CHARS_MAX = 2_048
_LINE_KEYS = ("url", "method", "json", "form")
# A URL must not contain these bytes in its fragment, or they would end its path for some readers.
_UNSAFE = re.compile(rb"[^-A-Za-z0-9._~{}\[\]:,@]")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")


class BodyKind(StrEnum):
    """Kind of a POST request's body."""

    JSON = "json"
    FORM = "form"

    @property
    def media_type(self) -> str:
        return "application/json" if self is BodyKind.JSON else "application/x-www-form-urlencoded"


@positional_value_class
class PostBody:
    """Body of a POST request."""

    kind: BodyKind
    text: str


def split_request(url: str) -> tuple[str, PostBody | None]:
    """Return the address of a request, and its body if it is a POST."""
    address, mark, rest = url.partition(MARK)
    kind, colon, body = rest.partition(":")
    if not mark or not colon or kind not in {*BodyKind}:
        return url, None
    return address, PostBody(BodyKind(kind), _unescaped(body))


def sent_form(url: str, headers: Headers) -> tuple[str, bytes | None, Headers]:
    """Return address, body and headers of a request as it is sent. A GET has no body."""
    address, post = split_request(url)
    if post is None:
        return address, None, headers
    # The media type belongs to the body, so it replaces a header of the crawl.
    others = tuple(pair for pair in headers if pair[0].lower() != "content-type")
    return address, post.text.encode(), (*others, ("Content-Type", post.kind.media_type))


def is_post(url: str) -> bool:
    return split_request(url)[1] is not None


def request_url(address: str, body: PostBody) -> str:
    """Return the URL of a POST request. Raises ValueError if the body is too long."""
    raw = body.text.encode("utf-8", "replace")
    written = _UNSAFE.sub(lambda found: b"%%%02X" % found[0][0], raw).decode()
    if len(written) > BODY_CHARS_MAX:
        raise ValueError(f"the body is longer than {BODY_CHARS_MAX:,} characters in a URL")
    return f"{address.partition('#')[0]}{MARK}{body.kind}:{written}"


def json_body(data: Any) -> PostBody:
    return PostBody(BodyKind.JSON, json.dumps(data, ensure_ascii=False, separators=(",", ":")))


def canonical_seed(reference: str, *, tracking: frozenset[str] = TRACKING_PARAMETERS) -> str:
    """Return the canonical URL of a reference that a person gave, which may be a POST request.

    Raises ValueError if it has none.
    """
    address, body = split_request(reference)
    url = canonicalize(address, tracking=tracking)
    return url if body is None else request_url(url, body)


def resolved_seed(reference: str, *, tracking: frozenset[str] = TRACKING_PARAMETERS) -> str | None:
    """Do the same as `canonical_seed`, but return None instead of raising an error."""
    try:
        return canonical_seed(reference, tracking=tracking)
    except ValueError:
        return None


def is_canonical_seed(url: str) -> bool:
    """Whether a text is a canonical URL, or the URL of a POST request. Never raises."""
    address, body = split_request(url) if "#" in url else (url, None)
    if body is None:
        return is_canonical(url)
    return is_canonical(address) and resolved_seed(url, tracking=frozenset()) == url


def seed_of_line(line: str) -> str:
    """Return the URL of a line of a seed list: as it is, or of a JSON object with a request.

    The object has `url`, and `json` or `form` for the body of a POST. A line in another form is
    returned as it is, so that its check reports it.
    """
    if not line.startswith("{"):
        return line
    try:
        match json.loads(line):
            case {"url": str(address), "json": data, **rest} if rest in ({}, {"method": "POST"}):
                return request_url(address, json_body(data))
            case {"url": str(address), "form": dict(form), **rest} if rest in (
                {},
                {"method": "POST"},
            ):
                return request_url(address, form_body(form))
            case {"url": str(address), "method": "POST", **rest} if not rest:
                return request_url(address, form_body({}))
            case {"url": str(address), **rest} if rest in ({}, {"method": "GET"}):
                return address
    except (ValueError, RecursionError):
        pass
    return line


def problem_of_line(line: str) -> str:
    """Return why `seed_of_line` reads no request from a line that begins with `{`."""
    try:
        given = json.loads(line)
    except (ValueError, RecursionError):
        return "it is not JSON"
    unknown = [key for key in given if key not in _LINE_KEYS]
    if unknown:
        return f"unknown key {unknown[0]!r}: give {', '.join(_LINE_KEYS)}"
    return "it is no request: give url, and json or form for a POST"


def form_body(form: dict[str, Any]) -> PostBody:
    """Return a form's body (URL Standard, 5.2)."""
    pairs = (f"{form_escaped(name)}={form_escaped(str(value))}" for name, value in form.items())
    return PostBody(BodyKind.FORM, "&".join(pairs))


_FORM_UNSAFE = re.compile(rb"[^-A-Za-z0-9._* ]")


def form_escaped(text: str) -> str:
    raw = text.encode("utf-8", "replace")
    escaped = _FORM_UNSAFE.sub(lambda found: b"%%%02X" % found[0][0], raw)
    return escaped.decode().replace(" ", "+")


def parse_form(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names and values of a form's body."""
    for pair in text.split("&"):
        name, _, value = pair.partition("=")
        yield _form_decoded(name), _form_decoded(value)


def _form_decoded(text: str) -> str:
    return _unescaped(text.replace("+", " "))


def _unescaped(text: str) -> str:
    raw = _ESCAPE.sub(lambda found: bytes.fromhex(found[1].decode()), text.encode())
    return raw.decode("utf-8", "replace")
