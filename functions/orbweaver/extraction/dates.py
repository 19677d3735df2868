"""Parse dates and times from a strict list of formats. It never guesses which number is the day.

For other dates, a field needs the key `format` of Python's `strptime`: `%d.%m.%Y`. A date is the
local date in the text: time and zone do not change it. Source:
https://docs.python.org/3/library/datetime.html#strftime-and-strptime-format-codes.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

CHARS_MAX = 100
FORMAT_CHARS_MAX = 60

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FULL = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_NAMES = {name: at for names in (_MONTHS, _FULL) for at, name in enumerate(names, 1)}
_NAMES["sept"] = 9
_NAME = "|".join(sorted(_NAMES, key=len, reverse=True))
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?"
_NAMED = re.compile(
    rf"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\.?,?\s+)?"
    rf"(?:{_DAY}\s+(?:of\s+)?(?P<month>{_NAME})\.?,?\s+(?P<year>\d{{4}})"
    rf"|(?P<month2>{_NAME})\.?\s+(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<year2>\d{{4}}))",
    re.IGNORECASE,
)
_YEAR_FIRST = re.compile(r"(\d{4})([/.])(\d{1,2})\2(\d{1,2})(?=\D|$)")
_ISO = re.compile(r"\d{4}-(?:\d\d|W\d\d)|\d{8}(?:T|\Z)", re.ASCII)
# RFC 2822. A named time zone is accepted only if the standard gives it an offset.
_RFC = re.compile(
    r"(?:[a-z]{3},\s?)?\d{1,2} [a-z]{3} \d{4} \d\d:\d\d(?::\d\d)?"
    r"(?: (?:[+-]\d{4}|GMT|UTC?|[ECMP][SD]T))?",
    re.IGNORECASE | re.ASCII,
)
# It is unknown which number of `03/04/2026` is the day, so such dates need a format.
_AMBIGUOUS = re.compile(r"\d{1,4}[-/.]\s?\d{1,2}[-/.]\s?\d{1,4}")
# Directives that are allowed after % in a format.
_DIRECTIVES = frozenset("aAbBdfHIjmMpSyYzZ%")
_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
_EXAMPLE = datetime(2026, 11, 23, 14, 5, 6, tzinfo=UTC)


class NotDateError(ValueError):
    """A text has no known date format. The message contains the reason and a fix."""


def moment_in(text: str, form: str | None) -> datetime:
    """Parse a date with an optional time and zone. Raises NotDateError.

    `form` is the rule's format for `strptime`. None: try the formats of this module.
    """
    text = " ".join(text.split())
    if not text or len(text) > CHARS_MAX:
        raise NotDateError("too long" if text else "empty")
    if form is not None:
        try:
            return datetime.strptime(text, form)  # noqa: DTZ007 - the zone is in the text or absent
        except (ValueError, OverflowError) as error:
            raise NotDateError(f"not like {form!r}") from error
    try:
        found = _try_formats(text)
    except (ValueError, OverflowError) as error:
        raise NotDateError("there is no such day or time") from error
    if found is None:
        why = "day or month first? Give a format" if _AMBIGUOUS.search(text) else "give a format"
        raise NotDateError(why)
    return found


def moment_ms(moment: datetime) -> int:
    """Return ms since the epoch. A time without a zone is UTC."""
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def problem_of_format(form: str) -> str | None:
    """Return the reason why a format is invalid, or None."""
    shown = ascii(form[:FORMAT_CHARS_MAX])
    fix = 'give one like "%d.%m.%Y"'
    if not 1 <= len(form) <= FORMAT_CHARS_MAX:
        return f"{shown} has {len(form):,} characters: {fix}"
    given = set(_DIRECTIVE.findall(form))
    if not given <= _DIRECTIVES:
        wrong = min(given - _DIRECTIVES)
        return f"{shown} holds %{ascii(wrong)[1:-1]}, which is no part of a date: {fix}"
    if not (given & {"y", "Y"} and ("j" in given or ("d" in given and given & {"m", "b", "B"}))):
        return f"{shown} does not say day, month and year: {fix}"
    try:
        datetime.strptime(_EXAMPLE.strftime(form), form)  # noqa: DTZ007 - only tests the format
    except (ValueError, re.error):
        return f"{shown} cannot be read back: {fix}"
    return None


def _try_formats(text: str) -> datetime | None:
    """Try each known format. Raises ValueError if a format matches and the date does not exist."""
    # English month names: `3 November 2026`, `Nov 3, 2026`, `Tuesday, 3rd November 2026`.
    named = _NAMED.fullmatch(text)
    if named:
        day, month, year = (named[one] or named[f"{one}2"] for one in ("day", "month", "year"))
        return datetime(int(year), _NAMES[month.lower()], int(day))  # noqa: DTZ001 - a local date
    # Year first: `2026/11/03`, `2026.11.03`, optionally with a time.
    first = _YEAR_FIRST.match(text)
    if first:
        year, _, month, day = first.groups()
        text = f"{year}-{int(month):02}-{int(day):02}{text[first.end() :]}"
    # ISO 8601, then RFC 2822 (as in HTTP and RSS).
    if _ISO.match(text):
        return datetime.fromisoformat(text)
    return parsedate_to_datetime(text) if _RFC.fullmatch(text) else None
