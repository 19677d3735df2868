"""Parse and write the key `network.hosts` of a definition: limits of requests, by host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orbweaver.control.definition_values import (
    CODECS,
    Codec,
    Key,
    Problems,
    parts_of,
    read_tables,
    schema_of_keys,
    word_of,
)
from orbweaver.model.crawl_settings import HostAccess, Referer
from orbweaver.model.host_access import HOSTS_MAX

EXAMPLE = '[network.hosts."example.org"] with timeout = "60s" below'
REFERER = word_of({str(word): word for word in Referer})
HOST_KEYS = (
    Key("timeout", "timeout_ms", CODECS["milliseconds"]),
    Key("retries", "retries", CODECS["number"]),
    Key("referer", "referer", REFERER),
)


def _read(value: object) -> tuple[HostAccess, ...]:
    return read_tables(value, EXAMPLE, _access_of)


def _access_of(host: str, table: Mapping[str, Any], path: str, problems: Problems) -> HostAccess:
    return HostAccess(origin=host, **parts_of(table, HOST_KEYS, path, problems, "a host"))


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
