"""Read the checks. Each is a file checks/<name>.sql, which begins with comments.

    -- One sentence: the fault.
    -- severity: error, warning or notice
    -- fix: what removes the fault
    -- needs: names of `Need`, separated by commas; optional
    -- without: a need; the check runs only if it is not met; optional

The query returns the columns url (the page to fix), target (another URL, or null) and detail (a
text, or null). It reads the tables of pages.sql, links.sql and texts.sql.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from importlib.resources import files

from orbweaver.cli.query.saved import COMMENT, SUFFIX, sql_files
from orbweaver.model.value import value_class


class Severity(StrEnum):
    """Severity of a check. The order of members is the order of reports."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"


class Need(StrEnum):
    """Data that a check needs and that not every crawl has."""

    LINKS = "links"
    TEXTS = "texts"
    SITEMAPS = "sitemaps"
    COMPLETE = "complete"
    REDIRECT_MAP = "redirect map"


@value_class
class Check:
    """A check: its name, severity, sentence, fix and query."""

    name: str
    severity: Severity
    sentence: str
    fix: str
    needs: frozenset[Need]
    without: Need | None
    sql: str


@cache
def checks() -> Mapping[str, Check]:
    """Return all checks by name, errors first, then in alphabetical order."""
    found = [_check(name, sql) for name, sql in sql_files(__package__ or "", "checks")]
    severities = [*Severity]
    found.sort(key=lambda one: (severities.index(one.severity), one.name))
    return {one.name: one for one in found}


def script(name: str) -> str:
    return files(__package__ or "").joinpath(f"{name}{SUFFIX}").read_text(encoding="utf-8")


def _check(name: str, sql: str) -> Check:
    first, *lines = sql.splitlines()
    head: dict[str, str] = {}
    for line in lines:
        if not line.startswith(COMMENT):
            break
        key, _, value = line.removeprefix(COMMENT).partition(": ")
        head[key] = value
    needs = frozenset(Need(one) for one in head.get("needs", "").split(", ") if one)
    without = head.get("without")
    return Check(
        name=name,
        severity=Severity(head["severity"]),
        sentence=first.removeprefix(COMMENT),
        fix=head["fix"],
        needs=needs,
        without=None if without is None else Need(without),
        sql=sql,
    )
