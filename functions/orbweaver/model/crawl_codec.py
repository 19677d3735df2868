"""A crawl as plain fields, and back: the one codec of its stored form.

Fields that are not known here are passed over, and fields that are missing take their defaults, so
a stored crawl outlives a deploy in either direction. One of a newer version is not read at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, asdict, fields
from enum import StrEnum
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from orbweaver.model.crawl import Crawl, Stop
from orbweaver.model.url_rules import THINGS, UrlRule
from orbweaver.model.version import FIELD, check

if TYPE_CHECKING:
    from orbweaver.model.item_rules import ItemRule

VERSION = 1
COLUMNS = tuple(field.name for field in fields(Crawl))
# What is of a run and not of its work.
OF_THE_RUN = frozenset(
    {"id", "started_at_ms", "state", "stop", "finished_at_ms", "announced"}
    | {"work", "edits", "quotas", "hosts_counted", "pages_before", "paused_at_ms", "paused_ms"}
    | {"resumes", "pages_carried"}
)


def to_fields(crawl: Crawl) -> dict[str, Any]:
    """Render a crawl as plain fields of the current version, without those that are None."""
    known = {key: value for key, value in asdict(crawl).items() if value is not None}
    return {FIELD: VERSION, **known}


def from_fields(raw: dict[str, Any]) -> Crawl:
    """Read plain fields back; raises NewerVersion for those of a newer version."""
    check(raw, f"the crawl {raw.get('id')!r}", VERSION)
    known = {
        field.name: _value(field, raw[field.name]) for field in fields(Crawl) if field.name in raw
    }
    return Crawl(**known)


def _value(field: Field[Any], value: Any) -> Any:
    """Read what a field holds by its name, or by its default."""
    if value is not None and field.name in _READERS:
        return _READERS[field.name](value)
    if isinstance(field.default, StrEnum):
        return type(field.default)(value)
    return _tuples(value)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


def _items(raw: Sequence[dict[str, Any]]) -> tuple[ItemRule, ...]:
    if not raw:
        return ()
    # Imported here: for crawls that have items.
    from orbweaver.model.item_rule_codec import rule_of

    return tuple(rule_of(one) for one in raw)


def _rules(raw: Sequence[dict[str, Any]]) -> tuple[UrlRule, ...]:
    return tuple(
        UrlRule(match=one["match"], **{thing: one.get(thing) for thing in THINGS}) for one in raw
    )


_READERS: Mapping[str, Callable[[Any], Any]] = {"stop": Stop, "rules": _rules, "items": _items}


def changes(crawl: Crawl, was: Crawl) -> dict[str, Any]:
    """Return the plain fields in which a crawl differs from what it was; None for what is gone."""
    new, old = asdict(crawl), asdict(was)
    return {name: new[name] for name in COLUMNS if new[name] != old[name]}


def digest_of(crawl: Crawl) -> str:
    """Digest what a crawl asks for: all but what is of the run, so that it can be told again.

    Fields that have their defaults do not count: one more, and it is still the same work.
    """
    asked = {
        field.name: value
        for field, value in zip(fields(Crawl), asdict(crawl).values(), strict=True)
        if field.name not in OF_THE_RUN and value not in (field.default, MISSING)
    }
    text = json.dumps(asked, sort_keys=True, default=str)
    return blake2b(text.encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()
