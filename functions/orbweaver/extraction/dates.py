"""Dates and moments, by a strict list of forms: which number is the day is never guessed.

- ISO 8601 as `datetime.fromisoformat` reads it, RFC 2822 (as HTTP and RSS write it), year first
  (`2026/11/03`, `2026.11.03`, also before a time), and the day beside a month's name in English:
  `3 November 2026`, `Nov 3, 2026`, `Tuesday, 3rd November 2026`.
- All else needs the key `format`, as Python's `strptime` has it: `%d.%m.%Y`. `03/04/2026` is a
  problem without one.
- A date is what the text says where it is written: a time and its zone beside it change nothing.
  A moment without a zone is UTC.

Source: https://docs.python.org/3/library/datetime.html#strftime-and-strptime-format-codes.
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
# Of zones by name only those that the standard gives an offset.
_RFC = re.compile(
    r"(?:[a-z]{3},\s?)?\d{1,2} [a-z]{3} \d{4} \d\d:\d\d(?::\d\d)?"
    r"(?: (?:[+-]\d{4}|GMT|UTC?|[ECMP][SD]T))?",
    re.IGNORECASE | re.ASCII,
)
_DOUBTFUL = re.compile(r"\d{1,4}[-/.]\s?\d{1,2}[-/.]\s?\d{1,4}")
# Everything that a format may hold after %, and what of it says the date.
_DIRECTIVES = frozenset("aAbBdfHIjmMpSyYzZ%")
_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
_EXAMPLE = datetime(2026, 11, 23, 14, 5, 6, tzinfo=UTC)


class NotDateError(ValueError):
    """A text is no date of a form that is known; the text says what would help."""


def moment_in(text: str, form: str | None) -> datetime:
    """Read a date, maybe with a time and a zone; raises NotDateError."""
    text = " ".join(text.split())
    if not text or len(text) > CHARS_MAX:
        raise NotDateError("too long" if text else "empty")
    if form is not None:
        try:
            return datetime.strptime(text, form)  # noqa: DTZ007 - the text says the zone, or none
        except (ValueError, OverflowError) as error:
            raise NotDateError(f"not like {form!r}") from error
    try:
        found = _by_form(text)
    except (ValueError, OverflowError) as error:
        raise NotDateError("there is no such day or time") from error
    if found is None:
        why = "day or month first? Give a format" if _DOUBTFUL.search(text) else "give a format"
        raise NotDateError(why)
    return found


def moment_ms(moment: datetime) -> int:
    """Count ms since the epoch; what has no zone is UTC."""
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def problem_of_format(form: str) -> str | None:
    """Say what does not fit in a format, or None."""
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
        datetime.strptime(_EXAMPLE.strftime(form), form)  # noqa: DTZ007 - whether it is one
    except (ValueError, re.error):
        return f"{shown} cannot be read back: {fix}"
    return None


def _by_form(text: str) -> datetime | None:
    """Try each form; raises ValueError where one fits and there is no such day."""
    named = _NAMED.fullmatch(text)
    if named:
        day, month, year = (named[one] or named[f"{one}2"] for one in ("day", "month", "year"))
        return datetime(int(year), _NAMES[month.lower()], int(day))  # noqa: DTZ001 - of a calendar
    first = _YEAR_FIRST.match(text)
    if first:
        year, _, month, day = first.groups()
        text = f"{year}-{int(month):02}-{int(day):02}{text[first.end() :]}"
    if _ISO.match(text):
        return datetime.fromisoformat(text)
    return parsedate_to_datetime(text) if _RFC.fullmatch(text) else None
