"""A crawl as plain fields, and back: the one codec of its stored form.

Fields of another version are passed over, and fields that are missing take their defaults, so a
stored crawl outlives a deploy in either direction.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from orbweaver.core.crawl import Crawl, Scope, State, Stop

COLUMNS = tuple(field.name for field in fields(Crawl))


def to_fields(crawl: Crawl) -> dict[str, Any]:
    """Render a crawl as plain fields, without those that are None."""
    return {key: value for key, value in asdict(crawl).items() if value is not None}


def from_fields(raw: dict[str, Any]) -> Crawl:
    """Read plain fields back."""
    known = {key: value for key, value in raw.items() if key in COLUMNS}
    known["seeds"] = tuple(known.get("seeds", ()))
    known["sitemap_urls"] = tuple(known.get("sitemap_urls", ()))
    known["include"] = tuple(known.get("include", ()))
    known["exclude"] = tuple(known.get("exclude", ()))
    known["user_agents"] = tuple(known.get("user_agents", ()))
    known["headers"] = tuple((name, value) for name, value in known.get("headers", ()))
    tracking = known.get("tracking")
    known["tracking"] = None if tracking is None else tuple(tracking)
    known["scope"] = Scope(known.get("scope", Scope.HOST))
    known["state"] = State(known.get("state", State.RUNNING))
    stop = known.get("stop")
    known["stop"] = None if stop is None else Stop(stop)
    return Crawl(**known)
