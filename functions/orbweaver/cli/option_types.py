"""Parse the values of options. Each error contains an example of a valid value."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from orbweaver.exporting.manifest import check_day, formats_in
from orbweaver.model import amounts
from orbweaver.model.auth import PLACES, OriginAuth
from orbweaver.model.value import value_class

T = TypeVar("T")
THRESHOLD = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)(%?)")
PROCESSES_MAX, PERCENT_MAX = 64, 100


@value_class
class Threshold:
    """Maximum number of failed URLs, or maximum percentage of all URLs."""

    number: float
    percent: bool = False

    def exceeded(self, failed: int, done: int) -> bool:
        return failed * 100 > self.number * done if self.percent else failed > self.number


def _reader(read: Callable[[str], T]) -> Callable[[str], T]:
    """Return `read` with its ValueError converted to argparse's error."""

    def reading(text: str) -> T:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return reading


duration_ms = _reader(amounts.duration_ms)
# A duration, rounded up to whole seconds.
duration_s = _reader(amounts.duration_s)
# A number of bytes: `500MB`, `10GB`.
size_bytes = _reader(amounts.size_bytes)
# An amount of dollars, returned in nanodollars (1e-9 dollars).
nanodollars = _reader(amounts.nanodollars)
# A day in UTC: `2026-11-21`.
day = _reader(check_day)
# Formats of exports, separated by commas.
formats = _reader(formats_in)


def number(text: str) -> int:
    """Parse a whole number with optional thousands separators (1_000, 1,000)."""
    plain = re.sub(r"(?<=\d)[_,](?=\d{3})", "", text.strip())
    if not re.fullmatch(r"-?[0-9]{1,12}", plain, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number: give one like 1000")
    return int(plain)


def count(text: str, least: int = 0) -> int:
    if (given := number(text)) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is too small: give {least} or more")
    return given


def positive(text: str) -> int:
    return count(text, 1)


def processes(text: str) -> int:
    """Parse a number of worker processes. Each one takes about 60 MB."""
    if (given := positive(text)) > PROCESSES_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is too large: give 1 to {PROCESSES_MAX}")
    return given


def store_folder(text: str) -> Path:
    """Parse the path of a store's folder, which must not be the current folder."""
    if (folder := Path(text)) == Path():
        raise argparse.ArgumentTypeError("give a separate folder, like --store crawls")
    return folder


def threshold(text: str) -> Threshold:
    """Parse a threshold of failures: `10` or `2.5%`."""
    match = THRESHOLD.fullmatch(text.strip())
    if match is None or ("." in match[1] and not match[2]):
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a number of failures nor a share: give 0, 10 or 2.5%"
        )
    found = Threshold(number=float(match[1]), percent=bool(match[2]))
    if found.percent and found.number > PERCENT_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is too large: give 100% or less")
    return found


def one_of(words: Sequence[str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text in words:
            return text
        near = difflib.get_close_matches(text.lower(), words, n=1)
        hint = f"did you mean {near[0]}? It takes " if near else "give "
        raise argparse.ArgumentTypeError(f"{text!r} is invalid: {hint}{_listed(words)}")

    return read


def pair(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise argparse.ArgumentTypeError(f"{text!r} is invalid: give KEY=VALUE")
    return key, value


def header(text: str) -> tuple[str, str]:
    """Parse a header `Name: value`. The plan's checks decide whether it is allowed."""
    name, colon, value = text.partition(":")
    if not colon:
        # The error omits the value, because it may be a secret.
        raise argparse.ArgumentTypeError("a header is a name, a colon and a value: 'Name: value'")
    return name.strip(" "), value.strip(" ")


def proxy(text: str) -> str:
    """Parse the URL of a proxy. The error omits the URL, because it may have a password."""
    from orbweaver.fetching.proxy_pool import PoolError, parse_proxy

    try:
        parse_proxy(text)
    except PoolError as error:
        raise argparse.ArgumentTypeError(f"the URL {error}") from None
    return text


def auth(text: str) -> OriginAuth:
    """Parse a login `ORIGIN=HOW`. Errors omit the text, because it may contain a secret."""
    origin, sign, how = text.partition("=")
    kind, colon, rest = how.partition(":")
    first, second = _split_reference(rest)
    parts: dict[str, Any] = {}
    match kind:
        case "basic" if second:
            parts["basic"] = (first, second)
        case "header" if second:
            parts["headers"] = ((first, second),)
        case "bearer" | "cookies" if rest:
            parts[kind] = rest
    if not (origin and sign and colon and parts):
        raise argparse.ArgumentTypeError(
            "a login is ORIGIN=HOW, like https://example.org=bearer:env:TOKEN; HOW is"
            " basic:USER:SECRET, bearer:SECRET, header:NAME:SECRET or cookies:SECRET"
        )
    return OriginAuth(origin=origin, **parts)


def _split_reference(text: str) -> tuple[str, str]:
    """Split `USER:SECRET`, where the user can be a reference like `env:NAME`."""
    place, colon, rest = text.partition(":")
    if f"{place}{colon}" in PLACES:
        name, _, secret = rest.partition(":")
        return f"{place}:{name}", secret
    return place, rest


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
