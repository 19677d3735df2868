"""Encoding of items in the `hosts` table: hosts, robots.txt files, cookies."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orbweaver.adapters.dynamodb.table import BLOB_BYTES_MAX, assign, to_item
from orbweaver.politeness.host_schedule import Host, RobotsEntry

ROBOTS_BYTES_MAX = 512 * 1024
COOKIES = "cookies#"  # no host name begins with it


def robots_key(host: str) -> str:
    return f"{host}#robots"


def cookies_key(crawl_id: str, site: str) -> str:
    return f"{COOKIES}{crawl_id}#{site}"


def cookies_of_key(key: str) -> tuple[str, str] | None:
    """Return the crawl and the site in a key, or None if it is not a key of cookies."""
    if not key.startswith(COOKIES):
        return None
    crawl_id, _, site = key.removeprefix(COOKIES).partition("#")
    return crawl_id, site


def later(found: Host, known: Host) -> Host:
    """Merge a new read of a host (`found`) into an earlier one, because it might be older data."""
    latest = known if known.blocked_until_ms > found.blocked_until_ms else found
    robots = max(
        (entry for entry in (known.robots, found.robots) if entry),
        key=lambda entry: entry.fetched_at_ms,
        default=None,
    )
    return replace(
        found,
        tat_ms=max(found.tat_ms, known.tat_ms),
        line_ms=max(found.line_ms, known.line_ms),
        blocked_until_ms=latest.blocked_until_ms,
        strikes=latest.strikes,
        struck_at_ms=latest.struck_at_ms,
        robots=robots,
    )


def host_of_item(name: str, fields: Mapping[str, Any]) -> Host:
    return Host(
        name=name,
        tat_ms=fields.get("tat", 0),
        line_ms=fields.get("line", 0),
        blocked_until_ms=fields.get("blocked_until", 0),
        strikes=fields.get("strikes", 0),
        struck_at_ms=fields.get("struck_at", 0),
        failures=fields.get("failures", 0),
        failed_at_ms=fields.get("failed_at", 0),
    )


def robots_of_item(fields: Mapping[str, Any] | None) -> RobotsEntry | None:
    if fields is None:
        return None
    return RobotsEntry(
        fetched_at_ms=fields["fetched_at"],
        body=zlib.decompress(fields["body"]) if "body" in fields else None,
        verdict=fields["verdict"],
        detail=fields.get("detail"),
        reason=fields.get("reason"),
    )


def compress(body: bytes) -> bytes:
    """Compress a robots.txt. A large one is truncated at the end of a line, as RFC 9309 allows."""
    body = body[:ROBOTS_BYTES_MAX]
    while len(blob := zlib.compress(body)) > BLOB_BYTES_MAX:
        body = body[: len(body) // 2].rpartition(b"\n")[0]
    return blob


def if_as_seen(table: str, state: Host, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return an update that fails if the host's failures or block differ from `state`."""
    update = assign(fields)
    values, conditions = {}, []
    for name, seen in (("failures", state.failures), ("blocked_until", state.blocked_until_ms)):
        values[f":seen_{name}"] = seen
        absent = "" if seen else f"attribute_not_exists(#{name}) OR "
        conditions.append(f"({absent}#{name} = :seen_{name})")
    return {
        **update,
        "TableName": table,
        "Key": to_item({"host": state.name}),
        "ExpressionAttributeValues": {**update["ExpressionAttributeValues"], **to_item(values)},
        "ConditionExpression": " AND ".join(conditions),
        "ReturnValues": "ALL_NEW",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
