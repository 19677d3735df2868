"""The definition that `orbweaver init` writes: every key, with its default."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from orbweaver.control.crawl_spec import SETTINGS
from orbweaver.control.definition_keys import BY_PATH, TABLES
from orbweaver.control.spec_checks import WRITTEN
from orbweaver.model.crawl_settings import Setting

# The keys that it gives a value; of the others it shows one.
_GIVEN = ("seeds", "limits.pages")
_TIMES = ("milliseconds", "seconds")
_ABOUT_TABLES = {
    "schedule": (
        "# When it recurs, once `orbweaver schedule put` has said so: so often, or by cron on some"
        " clocks.\n"
    )
}
_HEAD = """\
# What to crawl, and how. `orbweaver check crawl.toml` says what this would do.
# Keys that begin with # are left out: what stands there is the default, or an example (e.g.).

"""
_LISTS = """\

# What holds for some URLs only: those in which a regular expression is found. Of each thing the
# first rule decides that matches and says something of it: depth (of these URLs, instead of
# limits.depth), priority, delay, window, follow (take links of the page), record.
# [[rules]]  # e.g.
# match = '^https://example\\.com/$'  # e.g.
# priority = "high"  # e.g.
# window = "1h"  # e.g.
# [[rules]]  # e.g.
# match = '/archive/'  # e.g.
# depth = 2  # e.g.
# delay = "5s"  # e.g.
# follow = false  # e.g.
# record = false  # e.g.

# Whose scripts are run, by URL: the first rule decides whose regular expression is found; what none
# is found in goes by render.mode.
# [[render.rules]]  # e.g.
# match = '/shop/'  # e.g.
# mode = "always"  # e.g.

# What is taken from pages in whose URL a regular expression is found, as rows of a table of their
# own: docs/extraction.md. `orbweaver extract URL --config crawl.toml` tries it on one page.
# [[items]]  # e.g.
# name = "articles"  # e.g.
# match = '/articles/'  # e.g.
# fields = { title = "h1", day = { css = "time", attribute = "datetime", type = "date" } }  # e.g.
"""


def _lines(one: Setting) -> Iterator[str]:
    yield from (f"# {line}\n" for line in one.about.splitlines())
    line = f"{one.key.rpartition('.')[2]} = {one.example or _default(one)}"
    if one.key in _GIVEN:
        yield f"{line}\n"
    else:
        yield f"# {line}  # e.g.\n" if one.example else f"# {line}\n"


def _default(one: Setting) -> str:
    """Write a default as TOML, which these values share with JSON."""
    write: Any = WRITTEN[one.kind] if one.kind in _TIMES else BY_PATH[one.key].codec.write
    return json.dumps(write(one.default))


def _starter() -> Iterator[str]:
    for table in ("", *TABLES):
        if table:
            yield f"\n{_ABOUT_TABLES.get(table, '')}[{table}]\n"
        for one in SETTINGS:
            if one.key.rpartition(".")[0] == table and one.about + one.example:
                yield from _lines(one)


STARTER = f"{_HEAD}{''.join(_starter())}{_LISTS}"
