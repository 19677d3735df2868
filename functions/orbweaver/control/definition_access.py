"""Parse and write the key `network.hosts` of a definition: limits of requests, by host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orbweaver.control.definition_values import (
    CODECS,
    SHOWN_CHARS_MAX,
    Codec,
    Key,
    Problems,
    UnfitSetting,
    UnfitWithin,
    parts_of,
    schema_of_keys,
    word_of,
)
from orbweaver.model.crawl_settings import HostAccess, Referer
from orbweaver.model.host_access import HOSTS_MAX
from orbweaver.model.url import redacted

EXAMPLE = '[network.hosts."example.org"] with timeout = "60s" below'
REFERER = word_of({str(word): word for word in Referer})
HOST_KEYS = (
    Key("timeout", "timeout_ms", CODECS["milliseconds"]),
    Key("retries", "retries", CODECS["number"]),
    Key("referer", "referer", REFERER),
)


def _read(value: object) -> tuple[HostAccess, ...]:
    if not isinstance(value, Mapping):
        raise UnfitSetting(f"write {EXAMPLE}")
    problems: Problems = []
    found = []
    for host, table in value.items():
        path = f".{redacted(host, SHOWN_CHARS_MAX)!a}"
        if not isinstance(table, Mapping):
            problems.append((path, f"give a table: write {EXAMPLE}"))
            continue
        parts = parts_of(table, HOST_KEYS, path, problems, "a host")
        found.append(HostAccess(origin=host, **parts))
    if problems:
        raise UnfitWithin(tuple(found), problems)
    return tuple(found)


def _written(access: tuple[HostAccess, ...]) -> dict[str, Any]:
    return {
        one.origin: {
            key.path: key.codec.write(value)
            for key in HOST_KEYS
            if (value := getattr(one, key.part)) is not None
        }
        for one in access
    }


ACCESS = Codec(
    read=_read,
    schema={
        "type": "object",
        "maxProperties": HOSTS_MAX,
        "additionalProperties": schema_of_keys(HOST_KEYS),
    },
    write=_written,
)
