"""A plan: what a person asks of a crawl, whether it fits or not; and all settings of plans."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from orbweaver.model.crawl_settings import (
    CrawlSettings,
    Setting,
    settings_of,
)

SEEDS_FILE = "seeds_file"


class PlanError(ValueError):
    """A part of a plan does not fit: `field` names it, the text says the value and the fix."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(problem)
        self.field = field


class Overlap(StrEnum):
    """What a firing does while an earlier run of its crawl has not ended."""

    SKIP = "skip"
    ALLOW = "allow"


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlSpec(CrawlSettings):
    """What to crawl and how; None leaves the choice to `control/spec_checks.py`.

    `id` names the run itself: the same plan under the same id is the same crawl, however often
    it is started.
    """

    id: str | None = None
    strip_parameters: tuple[str, ...] = Setting((), "dedup.strip_parameters").said(
        "Parameters taken out of URLs, beside the usual ones (utm_*, gclid, phpsessid and others).",
        "--strip-parameter NAME  take this parameter out of URLs, too (my_*: all that begin"
        " so); may be repeated",
        example='["ref", "my_*"]',
    )
    keep_parameters: bool = Setting(False, "dedup.keep_parameters").said(
        "Whether the usual ones are kept.",
        "--keep-parameters  keep those that are taken out otherwise (utm_*, gclid, phpsessid, …)",
    )
    # When it recurs (control/schedule.py); starting it starts one run all the same.
    every: str | None = Setting(None, "schedule.every").said(example='"6h"')
    cron: str | None = Setting(None, "schedule.cron").said(example='"0 3 * * ? *"')
    timezone: str | None = Setting(None, "schedule.timezone").said(example='"Europe/Berlin"')
    overlap: Overlap = Setting(Overlap.SKIP, "schedule.overlap").said(
        'What happens while an earlier run has not ended: "skip" passes the time over,'
        ' "allow" starts.'
    )


# The tables of a definition in their order; the settings of each are in that of their declaration.
_ORDER = (
    *("", "scope", "limits", "politeness", "identity", "dedup", "records", "render", "schedule"),
    "notify",
)
_LISTS = ("rules", "items")


def _settings() -> Iterator[Setting]:
    for one in settings_of(CrawlSpec):
        yield one
        if one.name == "seeds":
            yield Setting(
                None,
                SEEDS_FILE,
                "text",
                about="More of them, one a line; # begins a comment. The path is seen from this"
                ' file; "-": the input.',
                example='"seeds.txt"',
            )


def _place(one: Setting) -> int:
    table, dot, _ = one.key.partition(".")
    return (*_ORDER, *_LISTS).index(table if dot or table in _LISTS else "")


SETTINGS = tuple(sorted(_settings(), key=_place))
