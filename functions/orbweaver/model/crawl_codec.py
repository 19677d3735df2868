"""Convert a crawl to its stored fields and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, asdict, fields, replace
from dataclasses import Field as DataclassField
from enum import StrEnum
from hashlib import blake2b
from typing import Any, TypeVar, cast

from orbweaver.model.crawl import Crawl, Stop
from orbweaver.model.crawl_settings import RenderMode, RenderRule
from orbweaver.model.url_rules import UrlRule
from orbweaver.model.version import FIELD, check

T = TypeVar("T")
VERSION = 1
COLUMNS = tuple(field.name for field in fields(Crawl))
# Fields that describe the run, not the requested work.
OF_THE_RUN = frozenset(
    {"id", "started_at_ms", "state", "stop", "finished_at_ms", "announced"}
    | {
        "work",
        "edits",
        "erased",
        "quotas",
        "hosts_counted",
        "pages_before",
        "paused_at_ms",
        "paused_ms",
    }
    | {"resumes", "pages_carried"}
)


def to_fields(crawl: Crawl) -> dict[str, Any]:
    """Return a crawl as plain fields without None."""
    known = {key: value for key, value in asdict(crawl).items() if value is not None}
    return {FIELD: VERSION, **known}


def from_fields(raw: dict[str, Any]) -> Crawl:
    """Convert plain fields to a crawl. Raises NewerVersion if a newer version stored them.

    Unknown fields are ignored, and missing fields get their defaults. So a stored crawl can be read
    after an upgrade and after a rollback.
    """
    check(raw, f"the crawl {raw.get('id')!r}", VERSION)
    return _read(Crawl, raw)


def _read(kind: type[T], raw: Mapping[str, Any]) -> T:
    return kind(
        **{
            field.name: _value(field, raw[field.name])
            for field in fields(cast("Any", kind))
            if field.name in raw
        }
    )


def _value(field: DataclassField[Any], value: Any) -> Any:
    if value and field.name in _READERS:
        return _READERS[field.name](value)
    if isinstance(field.default, StrEnum):
        return type(field.default)(value)
    return _tuples(value)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


def _rules(raw: Sequence[dict[str, Any]]) -> tuple[Any, ...]:
    return tuple(_read(UrlRule, one) for one in raw)


def _items(raw: Sequence[dict[str, Any]]) -> tuple[Any, ...]:
    # Imported here, because only crawls with items need it.
    from orbweaver.model.item_rules import ItemRule

    return tuple(_read(ItemRule, one) for one in raw)


def _render_rules(raw: Sequence[dict[str, Any]]) -> tuple[Any, ...]:
    return tuple(RenderRule(match=one["match"], mode=RenderMode(one["mode"])) for one in raw)


def _auth(raw: Sequence[dict[str, Any]]) -> tuple[Any, ...]:
    from orbweaver.model.auth import OriginAuth

    return tuple(_read(OriginAuth, one) for one in raw)


def _apis(raw: Sequence[dict[str, Any]]) -> tuple[Any, ...]:
    from orbweaver.model.api_source import ApiSource

    return tuple(_read(ApiSource, one) for one in raw)


def _paging(raw: dict[str, Any]) -> Any:
    from orbweaver.model.api_source import Paging

    return _read(Paging, raw)


def _host_access(raw: Sequence[dict[str, Any]]) -> tuple[Any, ...]:
    from orbweaver.model.crawl_settings import HostAccess, Referer

    found = (_read(HostAccess, one) for one in raw)
    return tuple(replace(one, referer=one.referer and Referer(one.referer)) for one in found)


def _login(raw: dict[str, Any]) -> Any:
    from orbweaver.model.auth import Login

    return _read(Login, raw)


def _page_check(raw: dict[str, Any]) -> Any:
    from orbweaver.model.auth import PageCheck

    return _read(PageCheck, raw)


def _fields(raw: Sequence[dict[str, Any]]) -> tuple[Any, ...]:
    from orbweaver.model.item_rules import Field

    return tuple(_read(Field, one) for one in raw)


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "apis": _apis,
    "paging": _paging,
    "auth": _auth,
    "host_access": _host_access,
    "login": _login,
    "check": _page_check,
    "lost": _page_check,
    "stop": Stop,
    "rules": _rules,
    "items": _items,
    "render_rules": _render_rules,
    "fields": _fields,
}


def changes(crawl: Crawl, was: Crawl) -> dict[str, Any]:
    """Return the plain fields of `crawl` that differ from `was`. None means a removed value."""
    new, old = asdict(crawl), asdict(was)
    return {name: new[name] for name in COLUMNS if new[name] != old[name]}


def edit_fields(crawl: Crawl, was: Crawl) -> dict[str, Any]:
    """Return the fields that an edit writes. None means a removed value."""
    return {FIELD: VERSION, **changes(crawl, was), "edits": was.edits + 1}


def digest_of(crawl: Crawl) -> str:
    """Return a digest of a crawl's definition, without the fields of the run.

    Fields with default values are left out, so that a new field does not change the digests of
    stored crawls.
    """
    asked = {
        field.name: value
        for field, value in zip(fields(Crawl), asdict(crawl).values(), strict=True)
        if field.name not in OF_THE_RUN and value not in (field.default, MISSING)
    }
    text = json.dumps(asked, sort_keys=True, default=str)
    return blake2b(text.encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()
