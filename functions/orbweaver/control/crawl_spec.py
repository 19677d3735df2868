"""Define a plan: the settings of a crawl as the user gave them, not yet validated."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from orbweaver.model.crawl_settings import (
    CrawlSettings,
    Setting,
    settings_of,
)
from orbweaver.model.value import value_class

SEEDS_FILE = "seeds_file"


class PlanError(ValueError):
    """A part of a plan is invalid. `field` names it. The message contains the value and the fix.

    `path` is the place of the problem below the key of the field, like `.'a.test'.timeout`.
    """

    def __init__(self, field: str, problem: str, path: str = "") -> None:
        super().__init__(f"{path.lstrip('.')}: {problem}" if path else problem)
        self.field = field
        self.problem = problem
        self.path = path


class Overlap(StrEnum):
    """Whether a schedule starts a run while an earlier run of its crawl has not ended."""

    SKIP = "skip"
    ALLOW = "allow"


@value_class
class CrawlSpec(CrawlSettings):
    """Settings of a crawl. If a setting is None, `control/spec_checks.py` chooses its value.

    `id` is the id of the run. Starting the same plan with the same id again has no effect.
    """

    id: str | None = None
    strip_parameters: tuple[str, ...] = Setting((), "dedup.strip_parameters").as_field(
        "Parameters removed from URLs, in addition to the usual ones (utm_*, gclid, phpsessid and"
        " others).",
        "--strip-parameter NAME  also remove this parameter from URLs (my_*: all with"
        " this prefix); may be repeated",
        example='["ref", "my_*"]',
    )
    keep_parameters: bool = Setting(False, "dedup.keep_parameters").as_field(
        "Whether to keep the usual parameters.",
        "--keep-parameters  keep the parameters that are removed by default (utm_*, gclid,"
        " phpsessid, …)",
    )
    # Schedule (control/schedule.py). These settings have no effect if a user starts a crawl.
    every: str | None = Setting(None, "schedule.every").as_field(example='"6h"')
    cron: str | None = Setting(None, "schedule.cron").as_field(example='"0 3 * * ? *"')
    timezone: str | None = Setting(None, "schedule.timezone").as_field(example='"Europe/Berlin"')
    overlap: Overlap = Setting(Overlap.SKIP, "schedule.overlap").as_field(
        'Firing while an earlier run has not ended: "skip" it, or "allow" a second run.'
    )


# Order of the tables in a definition. Within a table, settings have the order of their declaration.
_ORDER = (
    *(
        "",
        "scope",
        "limits",
        "politeness",
        "identity",
        "network",
        "dedup",
        "records",
        "render",
        "schedule",
    ),
    "notify",
)
_LISTS = ("auth", "api", "rules", "items")


def _settings() -> Iterator[Setting]:
    for one in settings_of(CrawlSpec):
        yield one
        if one.name == "seeds":
            yield Setting(
                None,
                SEEDS_FILE,
                "text",
                about="More seeds, one a line; # begins a comment. The path is relative to this"
                ' file; "-": the standard input.',
                example='"seeds.txt"',
            )


def _place(one: Setting) -> int:
    table, dot, _ = one.key.partition(".")
    return (*_ORDER, *_LISTS).index(table if dot or table in _LISTS else "")


SETTINGS = tuple(sorted(_settings(), key=_place))
