"""Validate the logins of a definition, and make their origins and URLs canonical.

Messages never contain a value that could be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from orbweaver.model.auth import KINDS, PLACES, Login, OriginAuth, PageCheck
from orbweaver.model.url import canonicalize, host_of
from orbweaver.model.url_patterns import problem_of_match
from orbweaver.model.user_agent import (
    HOSTS_MAX,
    IdentityError,
    origin_of,
    path_of_host,
    problems_of_headers,
    problems_of_hosts,
)

GIVE_REFERENCE = "give a reference to the secret: env:NAME, file:PATH, secret:NAME or ssm:NAME"
REFERENCE_CHARS_MAX = 1_000
FIELDS_MAX = 30
_TWICE = "give one login for each origin"
_SECRET_FIELD = re.compile(r"(?i)pass|pwd|kennwort|secret|token|otp|\bpin\b|\bkey\b|code")


def with_origins(auth: tuple[OriginAuth, ...], seeds: tuple[str, ...]) -> tuple[OriginAuth, ...]:
    """Return logins with canonical origins and URLs. Raises IdentityError for an invalid one.

    URLs of a login can be relative to its origin.
    """
    found: dict[str, OriginAuth] = {}
    for one in auth:
        origin = origin_of(one.origin, seeds)
        if origin in found:
            raise IdentityError(f"{origin} is given twice: {_TWICE}")
        login = _with_urls(one.login, origin)
        if login is not None:
            login = replace(login, origins=tuple(origin_of(other, ()) for other in login.origins))
        found[origin] = replace(one, origin=origin, login=login)
    return tuple(found.values())


def _with_urls(login: Login | None, origin: str) -> Login | None:
    if login is None:
        return None
    url = _url(login.url, f"{origin}/")
    check = login.check
    if check.url is not None:
        check = replace(check, url=_url(check.url, url))
        if host_of(check.url or "") not in (origin, host_of(url)):
            raise IdentityError("login.check.url is on another origin: give a URL of this origin")
    return replace(login, url=url, check=check)


def _url(reference: str, base: str) -> str:
    try:
        return canonicalize(reference, base, tracking=frozenset())
    except ValueError as error:
        raise IdentityError(f"a URL of the login cannot be requested: {error}") from error


def problems_of_auth(auth: tuple[OriginAuth, ...]) -> Iterator[tuple[str, str]]:
    """Yield each problem: its path below the key of the logins, and a message with the fix.

    No text contains a value that could be a secret.
    """
    if len(auth) > HOSTS_MAX:
        yield "", f"{len(auth)} origins are too many: give up to {HOSTS_MAX}"
        return
    yield from problems_of_hosts((one.origin for one in auth), _TWICE)
    for one in auth:
        for path, text in _problems_of(one):
            yield f"{path_of_host(one.origin)}{path}", text


def _problems_of(one: OriginAuth) -> Iterator[tuple[str, str]]:
    given = [name for name in KINDS if getattr(one, name)]
    if len(given) != 1:
        named = " and ".join(given) or "none"
        yield "", f"give one of basic, bearer, header, cookies or login, not {named}"
    secrets = {".basic.password": one.basic[1]} if one.basic else {}
    secrets |= {".bearer": one.bearer} if one.bearer else {}
    secrets |= {".cookies": one.cookies} if one.cookies else {}
    secrets |= {f".header.{name}": value for name, value in one.headers}
    yield from ((path, GIVE_REFERENCE) for path, value in secrets.items() if _unfit(value))
    if one.basic and not one.basic[0]:
        yield ".basic.user", "there is none: give the user name"
    # The values are references, so only the names can be invalid.
    names = tuple((name, "reference") for name, _ in one.headers)
    yield from ((".header", text) for text in problems_of_headers(names))
    if one.login is not None:
        for path, text in (*_problems_of_login(one.login), *_problems_of_urls(one)):
            yield f".login{path}", text


def _problems_of_login(login: Login) -> Iterator[tuple[str, str]]:
    if not login.url:
        yield ".url", "there is none: give the URL of the page with the form"
    if not login.inputs:
        yield ".fields", 'there is none: give { user = "me", password = "env:NAME" }'
    if len(login.inputs) > FIELDS_MAX:
        yield ".fields", f"{len(login.inputs)} are too many: give up to {FIELDS_MAX}"
    for name, value in login.inputs:
        if len(value) > REFERENCE_CHARS_MAX:
            yield f".fields.{name[:60]!a}", f"it is too long: {GIVE_REFERENCE}"
        elif _SECRET_FIELD.search(name) and _unfit(value):
            yield f".fields.{name[:60]!a}", GIVE_REFERENCE
    yield from _problems_of_checks(login)


def _problems_of_checks(login: Login) -> Iterator[tuple[str, str]]:
    check = login.check
    if check == PageCheck(url=check.url):
        fix = "give what proves the login: selector, text, status or cookie"
        yield ".check", f"there is none: {fix}"
    patterns = {".logout": login.logout, ".lost.url": login.lost.url if login.lost else None}
    for path, pattern in patterns.items():
        why = None if pattern is None else problem_of_match(pattern)
        if why is not None:
            yield path, why


def _problems_of_urls(one: OriginAuth) -> Iterator[tuple[str, str]]:
    for origin in () if one.login is None else one.login.origins:
        try:
            origin_of(origin, ())
        except IdentityError as error:
            yield ".origins", str(error)
    try:
        base = origin_of(one.origin, ())
    except IdentityError:  # reported for the origin
        return
    try:
        _with_urls(one.login, base)
    except IdentityError as error:
        yield "", str(error)


def _unfit(value: str) -> bool:
    place, _, name = value.partition(":")
    fits = f"{place}:" in PLACES and name.isprintable() and bool(name.strip())
    return not fits or len(value) > REFERENCE_CHARS_MAX


def selectors_of(login: Login) -> Iterator[tuple[str, str]]:
    """Yield the selectors of a login with their keys."""
    lost = login.lost or PageCheck()
    given = {"form": login.form, "check.selector": login.check.selector}
    given |= {"lost.selector": lost.selector, "lost.without": lost.without}
    for key, selector in given.items():
        if selector is not None:
            yield key, selector
