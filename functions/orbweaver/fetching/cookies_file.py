"""Read cookies that a browser exported, as `cookies.txt` (Netscape) or as JSON.

Each cookie is narrowed to the host of the login, so that other hosts never get it. Cookies of
other hosts and expired ones are dropped and counted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from orbweaver.fetching.cookies import COOKIE_BYTES_MAX, COOKIES_MAX, JAR_CHARS_MAX, Cookie, Jar
from orbweaver.model.url import hostname_of
from orbweaver.model.value import value_class

LINES_MAX = 10_000
SECONDS_MAX = 10**12
_COLUMNS = 7
# Browsers mark cookies that scripts cannot read by this prefix of a Netscape line.
_HTTP_ONLY = "#HttpOnly_"
_EXPIRIES = ("expirationDate", "expires", "expiry")


class CookiesFileError(ValueError):
    """A text is not an export of cookies. The message has no content of the text."""


@value_class
class ReadCookies:
    """Cookies for one host, and the numbers of dropped ones."""

    cookies: Jar
    expired: int = 0
    others: int = 0


@value_class
class _Row:
    name: str
    value: str
    domain: str
    path: str
    secure: bool
    below: bool  # valid for subdomains, too
    expires_s: float


def read_cookies(text: str, origin: str, now_ms: int) -> ReadCookies:
    """Return the cookies of a text for the host of an origin. Raises CookiesFileError."""
    host, encrypted = hostname_of(f"{origin}/"), origin.startswith("https:")
    found: dict[tuple[str, str], Cookie] = {}
    expired = others = 0
    for row in _rows(text):
        cookie = Cookie(
            name=row.name,
            value=row.value,
            domain=host,
            path=row.path if row.path.startswith("/") else "/",
            # A cookie of an https origin is never sent without encryption.
            secure=row.secure or encrypted,
            expires_at_ms=round(row.expires_s * 1000) if row.expires_s > 0 else None,
        )
        if not _is_for(row, host) or (row.secure and not encrypted):
            others += 1
        elif cookie.expired(now_ms):
            expired += 1
        elif _fits(cookie):
            found[cookie.name, cookie.path] = cookie
        else:
            others += 1
    kept = tuple(found.values())[:COOKIES_MAX]
    if sum(len(one.name) + len(one.value) for one in kept) > JAR_CHARS_MAX // 2:
        raise CookiesFileError("the cookies of this host are too large: export fewer")
    return ReadCookies(cookies=kept, expired=expired, others=others + len(found) - len(kept))


def joined_jar(jar: Jar, cookies: Jar) -> Jar:
    """Return a jar with cookies that replace others with the same key."""
    keys = {one.key for one in cookies}
    room = COOKIES_MAX - len(cookies)
    return (*[one for one in jar if one.key not in keys][:room], *cookies)


def _is_for(row: _Row, host: str) -> bool:
    domain = row.domain.lstrip(".").lower()
    return host == domain or (row.below and bool(domain) and host.endswith(f".{domain}"))


def _fits(cookie: Cookie) -> bool:
    size = len(cookie.name.encode()) + len(cookie.value.encode())
    clean = (cookie.name + cookie.value + cookie.path).isprintable() and ";" not in cookie.value
    return bool(cookie.name) and clean and size <= COOKIE_BYTES_MAX


def _rows(text: str) -> Iterator[_Row]:
    start = text.removeprefix("\ufeff").lstrip()
    return _of_json(start) if start[:1] in ("[", "{") else _of_netscape(start)


def _of_netscape(text: str) -> Iterator[_Row]:
    lines = text.splitlines()
    if len(lines) > LINES_MAX:
        raise CookiesFileError(f"it has more than {LINES_MAX:,} lines")
    for number, line in enumerate(lines, 1):
        line = line.removeprefix(_HTTP_ONLY)  # noqa: PLW2901 - the rest is an ordinary line
        if not line.strip() or line.startswith("#"):
            continue
        parts = line.split("\t")
        if len(parts) == _COLUMNS - 1:  # an empty value at the end may be cut off
            parts.append("")
        if len(parts) != _COLUMNS or not parts[4].strip().lstrip("-").isdecimal():
            fix = "give the cookies.txt or the JSON that a browser's extension exports"
            raise CookiesFileError(f"line {number} is not a cookie: {fix}")
        domain, below, path, secure, expires, name, value = parts
        yield _Row(
            name=name,
            value=value,
            domain=domain,
            path=path,
            secure=secure.upper() == "TRUE",
            below=below.upper() == "TRUE" or domain.startswith("."),
            expires_s=float(expires[:15]),
        )


def _of_json(text: str) -> Iterator[_Row]:
    try:
        document: Any = json.loads(text)
    except (ValueError, RecursionError):
        document = None  # a chained error would contain the text
    if isinstance(document, Mapping):
        document = document.get("cookies")
    if not isinstance(document, list) or len(document) > LINES_MAX:
        raise CookiesFileError("it is not a JSON list of cookies, like [{name, value, domain}]")
    for number, one in enumerate(document, 1):
        match one:
            case {"name": str(name), "value": str(value), "domain": str(domain), **rest}:
                yield _Row(
                    name=name,
                    value=value,
                    domain=domain,
                    path=str(rest.get("path") or "/"),
                    secure=rest.get("secure") is True,
                    below=rest.get("hostOnly") is False or domain.startswith("."),
                    expires_s=_seconds(rest),
                )
            case _:
                raise CookiesFileError(f"cookie {number} has no name, value or domain")


def _seconds(rest: Mapping[Any, Any]) -> float:
    """Return the expiry in seconds since the epoch, or 0 for a cookie of the session."""
    given = next((rest[key] for key in _EXPIRIES if key in rest), None)
    return float(given) if isinstance(given, int | float) and abs(given) < SECONDS_MAX else 0.0
