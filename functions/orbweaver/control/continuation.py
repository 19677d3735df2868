"""Decide how a crawl command treats unfinished runs of its name with the same seeds.

The table in docs/store.md shows the same decisions. `frontier/resumption.py` decides how a new
run continues runs that have ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from orbweaver.control.crawl_spec import SETTINGS
from orbweaver.model.crawl import Crawl, State
from orbweaver.model.crawl_codec import OF_THE_RUN
from orbweaver.model.value import value_class

# Fields of a crawl that are derived or belong to a single run, so they are not compared.
_DERIVED = OF_THE_RUN | {"shards", "seeds_planned", "seeds", "sitemap_urls", "name", "continuous"}
_KEYS = {one.name: one.key for one in SETTINGS} | {"tracking": "scope.strip_parameters"}
# Limits and pace can change while a crawl runs. Other options also concern pages that the crawl has
# read and links that it has refused. Such options need a new run, which processes these pages and
# links again.
_TAKEN_OVER = frozenset(
    one.name
    for one in SETTINGS
    if one.editable and one.key.startswith(("limits.", "politeness.")) and one.key != "limits.depth"
)


@value_class
class Start:
    """Start a new run. `beside`: unfinished runs of the same name that have other seeds."""

    beside: tuple[Crawl, ...] = ()


@value_class
class Continue:
    """Continue `run`. `changes` are options to edit before: key, old value, new value."""

    run: Crawl
    changes: tuple[tuple[str, Any, Any], ...] = ()


@value_class
class Replace:
    """End `run`, then start a run that continues it. `keys` are the options that differ."""

    run: Crawl
    keys: tuple[str, ...] = ()


@value_class
class Refuse:
    """Do nothing, because a worker processes `run`, which cannot take over the options `keys`."""

    run: Crawl
    keys: tuple[str, ...]


Decision = Start | Continue | Replace | Refuse


def decide(wanted: Crawl, others: Iterable[Crawl], *, busy: bool) -> Decision:
    """Decide how a crawl command treats unfinished runs of the same name.

    `wanted` is the crawl of the command. `others` are newest first. `busy` is True if a worker of
    another process might be active.
    """
    unfinished = [
        run
        for run in others
        if run.name == wanted.name and run.state is not State.FINISHED and not run.continuous
    ]
    alike = [
        run
        for run in unfinished
        if run.retry_of is None and set(run.references) == set(wanted.references)
    ]
    if not alike:
        return Start(beside=tuple(run for run in unfinished if run.live))
    run = next((run for run in alike if run.live), alike[0])
    if not run.live:
        return Replace(run=run)
    keys = fixed_differences(run, wanted)
    if not keys:
        # Imported on use, because it is rarely needed and imports all keys of definitions.
        from orbweaver.control.edits import differences

        return Continue(run=run, changes=differences(run, wanted))
    if busy and run.state is State.RUNNING:
        return Refuse(run=run, keys=keys)
    return Replace(run=run, keys=keys)


def fixed_differences(run: Crawl, wanted: Crawl) -> tuple[str, ...]:
    """List the keys that differ between two crawls and that a running crawl cannot take over."""
    # A page limit that several counter shards share is not exact. So a run with several shards
    # cannot take over an exact limit.
    limits = ("limits.pages",) if wanted.shards < run.shards else ()
    return limits + tuple(
        _KEYS.get(field.name, field.name)
        for field in fields(Crawl)
        if field.name not in _DERIVED | _TAKEN_OVER
        and getattr(run, field.name) != getattr(wanted, field.name)
    )
