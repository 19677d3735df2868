"""Parse and write the key `auth` of a definition: how a crawl logs in, by origin.

Messages name keys and never show values, which could be secrets that were typed in the place of
references.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orbweaver.control.definition_values import (
    CODECS,
    STRING,
    Codec,
    Key,
    Problems,
    UnfitSetting,
    UnfitWithin,
    no_such_key,
    parts_of,
    plain,
    read_tables,
    schema_of_keys,
)
from orbweaver.model.auth import FORM, LOGOUT, Login, OriginAuth, PageCheck
from orbweaver.model.http_exchange import Headers
from orbweaver.model.user_agent import HOSTS_MAX

EXAMPLE = '[auth."https://example.org"] with bearer = "env:TOKEN" below'
_NAMED = {"type": "object", "additionalProperties": STRING}


def _text(value: object) -> str:
    # The check of the plan reports an empty text, without the value that was given.
    return value if isinstance(value, str) else ""


def _named(value: object) -> Headers:
    if not isinstance(value, Mapping):
        raise UnfitSetting("give a table of names and references")
    return tuple((str(name), _text(one)) for name, one in value.items())


def _table_of(keys: tuple[Key, ...], noun: str) -> Codec:
    """Return the codec of a table with these keys, as a mapping of parts."""

    def read(value: object) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise UnfitSetting(f"give a table of {', '.join(key.path for key in keys)}")
        problems: Problems = []
        parts = parts_of(value, keys, "", problems, noun)
        if problems:
            raise UnfitWithin(parts, problems)
        return parts

    return Codec(read=read, schema=schema_of_keys(keys))


TEXT = Codec(read=_text, schema=STRING)
NAMED = Codec(read=_named, schema=_NAMED, write=dict)
BASIC_KEYS = (Key("user", "user", TEXT), Key("password", "password", TEXT))
_CONDITIONS = (
    Key("url", "url", CODECS["text"]),
    Key("selector", "selector", CODECS["text"]),
    Key("text", "text", CODECS["text"]),
    Key("status", "status", CODECS["number"]),
)
CHECK_KEYS = (*_CONDITIONS, Key("cookie", "cookie", CODECS["text"]))
LOST_KEYS = (*_CONDITIONS, Key("without", "without", CODECS["text"]))
LOGIN_KEYS = (
    Key("url", "url", CODECS["text"]),
    Key("form", "form", CODECS["text"]),
    Key("fields", "inputs", NAMED),
    Key("check", "check", _table_of(CHECK_KEYS, "a check")),
    Key("lost", "lost", _table_of(LOST_KEYS, "a lost session")),
    Key("logout", "logout", CODECS["text"]),
    Key("origins", "origins", CODECS["texts"]),
)
ORIGIN_KEYS = (
    Key("basic", "basic", _table_of(BASIC_KEYS, "basic")),
    Key("bearer", "bearer", TEXT),
    Key("header", "headers", NAMED),
    Key("cookies", "cookies", TEXT),
    Key("login", "login", _table_of(LOGIN_KEYS, "a login")),
)


def _read(value: object) -> tuple[OriginAuth, ...]:
    return read_tables(value, EXAMPLE, _read_origin)


def _read_origin(
    origin: str, table: Mapping[str, Any], path: str, problems: Problems
) -> OriginAuth:
    # Unlike `parts_of`, messages never show values.
    parts: dict[str, Any] = {}
    for name, one in table.items():
        key = next((key for key in ORIGIN_KEYS if key.path == name), None)
        if key is None:
            problems.append(_unknown(path, name))
            continue
        try:
            parts[key.part] = key.codec.read(one)
        except UnfitSetting as error:
            problems.append((f"{path}.{name}", str(error)))
        except UnfitWithin as error:
            problems += [(f"{path}.{name}{at}", text) for at, text in error.problems]
    return _auth_of(origin, parts)


def _unknown(path: str, name: str) -> tuple[str, str]:
    """Return path and message for an unknown key, which may be a secret in a wrong place."""
    text = no_such_key(name, ORIGIN_KEYS, "an origin")
    # A name without a similar key is not shown.
    return (f"{path}.{plain(name)}", text) if "did you mean" in text else (path, text)


def _auth_of(origin: str, parts: dict[str, Any]) -> OriginAuth:
    if (basic := parts.pop("basic", None)) is not None:
        parts["basic"] = (basic.get("user", ""), basic.get("password", ""))
    if (login := parts.pop("login", None)) is not None:
        checks = {name: PageCheck(**login.pop(name)) for name in ("check", "lost") if name in login}
        parts["login"] = Login(**{"url": "", **login, **checks})
    # An empty text is a missing reference, which must not look like a missing key.
    for name in ("bearer", "cookies"):
        if parts.get(name) == "":
            parts[name] = "none"
    return OriginAuth(origin=origin, **parts)


def _written(auth: tuple[OriginAuth, ...]) -> dict[str, Any]:
    return {one.origin: dict(_pairs_of(one)) for one in auth}


def _pairs_of(one: OriginAuth) -> list[tuple[str, Any]]:
    pairs: list[tuple[str, Any]] = []
    if one.basic is not None:
        pairs.append(("basic", {"user": one.basic[0], "password": one.basic[1]}))
    pairs += [(name, value) for name in ("bearer", "cookies") if (value := getattr(one, name))]
    if one.headers:
        pairs.append(("header", dict(one.headers)))
    if (login := one.login) is not None:
        table: dict[str, Any] = {"url": login.url}
        table |= {"form": login.form} if login.form != FORM else {}
        table |= {"fields": dict(login.inputs), "check": _check_written(login.check)}
        table |= {"lost": _check_written(login.lost)} if login.lost is not None else {}
        table |= {"logout": login.logout} if login.logout != LOGOUT else {}
        table |= {"origins": list(login.origins)} if login.origins else {}
        pairs.append(("login", table))
    return pairs


def _check_written(check: PageCheck) -> dict[str, Any]:
    values = ((key.path, getattr(check, key.part)) for key in (*CHECK_KEYS, LOST_KEYS[-1]))
    return {name: value for name, value in values if value is not None}


AUTH = Codec(
    read=_read,
    schema={
        "type": "object",
        "maxProperties": HOSTS_MAX,
        "additionalProperties": schema_of_keys(ORIGIN_KEYS),
    },
    write=_written,
)
