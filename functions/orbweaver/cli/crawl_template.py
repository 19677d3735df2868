"""The definition that `orbweaver init` writes: every key with its default."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from orbweaver.control.crawl_spec import SETTINGS
from orbweaver.control.definition_keys import BY_PATH, TABLES
from orbweaver.model.crawl_settings import WRITTEN, Setting

# Keys that the written definition sets. It shows all other keys as comments.
_GIVEN = ("seeds", "limits.pages")
_TIMES = ("milliseconds", "seconds")
_ABOUT_TABLES = {
    "schedule": ("# Schedule, for `orbweaver schedule put`: an interval, or cron in a time zone.\n")
}
_HEAD = """\
# Definition of a crawl. `orbweaver check crawl.toml` shows what it does.
# Keys behind # are not set: they show the default, or an example (e.g.).

"""
_LISTS = """\

# Login at an origin (docs/login.md): basic, bearer, header, cookies or login. A secret is named by
# env:NAME, file:PATH, secret:NAME or ssm:NAME. `orbweaver check --login` tries it.
# [auth."https://example.com"]  # e.g.
# basic = { user = "me", password = "env:PASSWORD" }  # e.g.
# [auth."https://wiki.example.com".login]  # e.g.
# url = "/login"  # e.g.
# fields = { username = "me", password = "env:WIKI_PASSWORD" }  # e.g.
# check = { selector = "a.logout" }  # e.g.

# APIs that are crawled page by page; see docs/json-apis.md. Rules in [[items]] with source = "json"
# extract their items. `orbweaver extract URL --config crawl.toml` shows the next page, too.
# [[api]]  # e.g.
# url = "https://example.com/api/articles?limit=100"  # e.g.
# links = "$.results[*].url"  # e.g.
# pages = 1000  # e.g.
# paging = { by = "cursor", path = "$.next", parameter = "cursor" }  # e.g.

# Rules for URLs that match a regular expression. For each of these keys the first matching rule
# that sets it decides: depth (instead of limits.depth), priority, delay, window, follow (whether to
# follow links of the page), record.
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

# Render mode by URL. The first rule whose regular expression matches decides. For other URLs
# render.mode decides.
# [[render.rules]]  # e.g.
# match = '/shop/'  # e.g.
# mode = "always"  # e.g.

# Items to extract from pages whose URL matches a regular expression. Each rule has its own table;
# see docs/extraction.md. `orbweaver extract URL --config crawl.toml` tries the rules on one page.
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
    """Return a setting's default as TOML. For such values JSON and TOML are the same."""
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
