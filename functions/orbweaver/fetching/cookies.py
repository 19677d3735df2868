"""Store a crawl's cookies, one jar for each site, and choose the cookies of a request.

`SameSite` and `HttpOnly` are ignored: a crawler sends no cross-site requests. Cookie values are
secrets and must not be logged. Sources: draft-ietf-httpbis-rfc6265bis, sections 5.5 to 5.8, and RFC
6265, 5.1.1 (dates).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime
from typing import TypeAlias

from orbweaver.model.url import canonicalize, hostname_of, is_suffix, site_of
from orbweaver.model.value import value_class

COOKIES_MAX = 50
JAR_CHARS_MAX = 32_768
LINES_MAX = 50  # per response
COOKIE_BYTES_MAX, ATTRIBUTE_BYTES_MAX = 4_096, 1_024
LIFE_MS_MAX = 400 * 86_400_000
# A jar is stored again if an expiry has moved by more than a tenth of the remaining time.
LIFE_SHARE = 10

_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f]")
_SECONDS = re.compile(r"-?[0-9]{1,18}")
_SPACES = " \t"
_SECURE_PREFIX, _HOST_PREFIX = "__secure-", "__host-"


@value_class
class Cookie:
    """A cookie that was accepted from a response."""

    name: str
    value: str = field(repr=False)
    domain: str
    host_only: bool = True  # `domain` is a host's name, and its subdomains do not get the cookie
    path: str = "/"
    secure: bool = False
    expires_at_ms: int | None = None

    @property
    def key(self) -> tuple[str, str, bool, str]:
        """A new cookie with the same key replaces this one."""
        return self.name, self.domain, self.host_only, self.path

    def expired(self, now_ms: int) -> bool:
        return self.expires_at_ms is not None and self.expires_at_ms <= now_ms


# Cookies of a site, sorted by the time at which each was first set.
Jar: TypeAlias = tuple[Cookie, ...]


def jar_of(url: str) -> str:
    """Return the site of a URL. Each site has one jar, because no cookie is valid for two sites."""
    return site_of(hostname_of(url))


def apply_set_cookie(jar: Jar, lines: Iterable[bytes], url: str, now_ms: int) -> tuple[Jar, int]:
    """Add the cookies of Set-Cookie headers (`lines`) of a response from `url` to a jar.

    Return the new jar, and the number of refused and evicted cookies.
    """
    kept = {one.key: one for one in jar if not one.expired(now_ms)}
    refused = 0
    for place, line in enumerate(lines):
        cookie = parsed(line, url, now_ms) if place < LINES_MAX else None
        if cookie is None or _shadows_secure(cookie, kept.values(), url):
            refused += 1
        elif cookie.expired(now_ms):
            kept.pop(cookie.key, None)
        else:
            kept[cookie.key] = cookie
    chars = sum(map(_chars, kept.values()))
    while len(kept) > COOKIES_MAX or chars > JAR_CHARS_MAX:
        chars -= _chars(kept.pop(next(iter(kept))))
        refused += 1
    return tuple(kept.values()), refused


def header_of(jar: Jar, url: str, now_ms: int) -> str | None:
    """Return the Cookie header of a request to `url`, or None if no cookie matches."""
    host, path, secure = hostname_of(url), _path_of(url), url.startswith("https:")
    found = [
        one
        for one in jar
        if not one.expired(now_ms)
        and (one.domain == host if one.host_only else _is_in_site_domain(host, one.domain))
        and _is_below(path, one.path)
        and (secure or not one.secure)
    ]
    found.sort(key=lambda one: -len(one.path))
    return "; ".join(f"{one.name}={one.value}" if one.name else one.value for one in found) or None


def join_cookies(given: str, header: str) -> str:
    """Join the user's Cookie header (`given`) and the jar's.

    Of equal names, the user's value counts.
    """
    names = {pair.partition("=")[0].strip() for pair in given.split(";")}
    pairs = [pair for pair in header.split("; ") if pair.partition("=")[0] not in names]
    return "; ".join([given, *pairs])


def differs(jar: Jar, before: Jar, now_ms: int) -> bool:
    """Return True if a jar must be stored because it differs from `before`, the stored one.

    A small change of an expiry is ignored.
    """
    if [_without_expiry(one) for one in jar] != [_without_expiry(one) for one in before]:
        return True
    return any(
        abs((new.expires_at_ms or 0) - (old.expires_at_ms or 0)) * LIFE_SHARE
        > max(0, (new.expires_at_ms or 0) - now_ms)
        for new, old in zip(jar, before, strict=True)
        if new.expires_at_ms != old.expires_at_ms
    )


def to_text(jar: Jar) -> str:
    rows = [
        [one.name, one.value, one.domain, one.host_only, one.path, one.secure, one.expires_at_ms]
        for one in jar
    ]
    return json.dumps(rows, separators=(",", ":"))


def from_text(text: str) -> Jar:
    return tuple(
        Cookie(
            name=name,
            value=value,
            domain=domain,
            host_only=host_only,
            path=path,
            secure=secure,
            expires_at_ms=expires_at_ms,
        )
        for name, value, domain, host_only, path, secure, expires_at_ms in json.loads(text)
    )


# --- parsing ------------------------------------------------------------------------------------


def parsed(line: bytes, url: str, now_ms: int) -> Cookie | None:
    """Parse a Set-Cookie header of a response from a URL. Return None if the cookie is refused."""
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return None
    pair, _, rest = text.partition(";")
    name, equals, value = pair.partition("=")
    name, value = (
        (name.strip(_SPACES), value.strip(_SPACES)) if equals else ("", pair.strip(_SPACES))
    )
    if _CONTROL.search(text) or not (name or value):
        return None
    if len(name.encode()) + len(value.encode()) > COOKIE_BYTES_MAX:
        return None
    attributes = _attributes(rest)
    domain = _domain_of(attributes.get("domain", ""), hostname_of(url))
    if domain is None:
        return None
    path = attributes.get("path", "")
    cookie = Cookie(
        name=name,
        value=value,
        domain=domain or hostname_of(url),
        host_only=not domain,
        path=path if path.startswith("/") else _folder_of(url),
        secure="secure" in attributes,
        expires_at_ms=_expiry_ms(attributes, now_ms),
    )
    return cookie if _satisfies_prefix(cookie, path) and _may_be_set(cookie, url) else None


def _attributes(text: str) -> Mapping[str, str]:
    """Parse a cookie's attributes. The last of equal names counts. Overlong values are ignored."""
    found: dict[str, str] = {}
    for part in text.split(";"):
        name, _, value = part.partition("=")
        if len(value.strip(_SPACES).encode()) <= ATTRIBUTE_BYTES_MAX:
            found[name.strip(_SPACES).lower()] = value.strip(_SPACES)
    return found


def _domain_of(named: str, host: str) -> str | None:
    """Return the domain of a cookie, "" for the host alone, or None if the cookie is refused.

    `named` is the cookie's Domain attribute, and `host` sets the cookie.
    """
    named = named.removeprefix(".")
    if not named:
        return ""
    try:
        domain = hostname_of(canonicalize(f"https://{named}/"))
    except ValueError:
        return None
    # A public suffix (such as co.uk) can set cookies only for itself.
    if domain == host and (is_suffix(domain) or _is_address(host)):
        return ""
    return None if is_suffix(domain) or not _is_in_site_domain(host, domain) else domain


def _satisfies_prefix(cookie: Cookie, path: str) -> bool:
    """Whether a cookie satisfies the rules of the name prefixes `__Secure-` and `__Host-`."""
    name = (cookie.name or cookie.value).lower()
    if not cookie.name and name.startswith((_SECURE_PREFIX, _HOST_PREFIX)):
        return False
    if name.startswith(_HOST_PREFIX):
        return cookie.secure and cookie.host_only and path == "/"
    return cookie.secure or not name.startswith(_SECURE_PREFIX)


def _may_be_set(cookie: Cookie, url: str) -> bool:
    return url.startswith("https:") or not cookie.secure


def _shadows_secure(cookie: Cookie, jar: Iterable[Cookie], url: str) -> bool:
    """Whether a cookie set over http would replace or hide a `Secure` cookie of the jar."""
    return not url.startswith("https:") and any(
        one.secure
        and one.name == cookie.name
        and (
            _domain_matches(one.domain, cookie.domain) or _domain_matches(cookie.domain, one.domain)
        )
        and _is_below(cookie.path, one.path)
        for one in jar
    )


def _domain_matches(host: str, domain: str) -> bool:
    return host == domain or (host.endswith(f".{domain}") and not _is_address(host))


def _is_in_site_domain(host: str, domain: str) -> bool:
    """Whether a host belongs to a domain, and both belong to the same site."""
    # A public suffix can be between the host and the domain.
    return _domain_matches(host, domain) and site_of(host) == site_of(domain)


def _is_address(host: str) -> bool:
    return host.startswith("[") or host.rpartition(".")[2].isdigit()


def _is_below(path: str, folder: str) -> bool:
    if not path.startswith(folder):
        return False
    return len(path) == len(folder) or folder.endswith("/") or path[len(folder)] == "/"


def _path_of(url: str) -> str:
    return url[url.index("/", 8) :].partition("?")[0]


def _folder_of(url: str) -> str:
    return _path_of(url).rpartition("/")[0] or "/"


def _without_expiry(cookie: Cookie) -> Cookie:
    return cookie if cookie.expires_at_ms is None else replace(cookie, expires_at_ms=0)


def _chars(cookie: Cookie) -> int:
    return sum(map(len, (cookie.name, cookie.value, cookie.domain, cookie.path)))


# --- expiry -------------------------------------------------------------------------------------

_DELIMITER = re.compile("[\x09\x20-\x2f\x3b-\x40\x5b-\x60\x7b-\x7e]+")
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?![0-9])")
_DAY = re.compile(r"([0-9]{1,2})(?![0-9])")
_YEAR = re.compile(r"([0-9]{2,4})(?![0-9])")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def _expiry_ms(attributes: Mapping[str, str], now_ms: int) -> int | None:
    """Return when a cookie expires, in ms since the epoch, or None: at the end of the crawl."""
    # Max-Age has priority over Expires. Both are limited to LIFE_MS_MAX (400 days).
    seconds = attributes.get("max-age", "")
    if _SECONDS.fullmatch(seconds):
        left_s = int(seconds)
        return now_ms + min(left_s * 1000, LIFE_MS_MAX) if left_s > 0 else 0
    end_ms = moment_of(attributes.get("expires", ""))
    return None if end_ms is None else min(end_ms, now_ms + LIFE_MS_MAX)


def moment_of(text: str) -> int | None:
    """Parse a cookie's date as ms since the epoch. Return None if it is invalid."""
    time = day = month = year = None
    for token in _DELIMITER.split(text):
        if time is None and (found := _TIME.match(token)):
            time = (int(found[1]), int(found[2]), int(found[3]))
        elif day is None and (found := _DAY.match(token)):
            day = int(found[1])
        elif month is None and token[:3].lower() in _MONTHS:
            month = _MONTHS.index(token[:3].lower()) + 1
        elif year is None and (found := _YEAR.match(token)):
            year = int(found[1])
    if time is None or day is None or month is None or year is None:
        return None
    year += 1900 if 70 <= year <= 99 else 2000 if year <= 69 else 0  # noqa: PLR2004 - by RFC 6265
    if year < 1601:  # noqa: PLR2004 - by RFC 6265
        return None
    try:
        hour, minute, second = time
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return max(0, round(moment.timestamp() * 1000))
