"""Files of a crawl's TLS settings: certificate authorities, and a client certificate with key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from orbweaver.cli.exit_codes import UsageError
from orbweaver.control.crawl_spec import SETTINGS, CrawlSpec
from orbweaver.model.http_exchange import Trust

_PARTS = ("ca_bundle", "client_cert")
_KEYS = {one.name: one.key for one in SETTINGS if one.name in _PARTS}


def absolute_files(parts: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the parts of a plan that name such files, with absolute paths."""
    given = {part: parts[part] for part in _PARTS if parts.get(part)}
    return {
        part: ":".join(str((folder / file).absolute()) if file else "" for file in text.split(":"))
        for part, text in given.items()
    }


def with_absolute_files(plan: CrawlSpec, folder: Path) -> CrawlSpec:
    return replace(plan, **absolute_files(_parts(plan), folder))


def check_files(plan: CrawlSpec, names: Mapping[str, str] = _KEYS) -> None:
    """Raise UsageError if a file cannot be used. `names` are the options or keys of the parts."""
    for part, text in _parts(plan).items():
        from orbweaver.adapters.web.tls import TrustError, context_for

        try:
            context_for(Trust(**{part: text}))
        except TrustError as error:
            raise UsageError(f"{names[part]}: {error}") from None


def check_stack_has_files(plan: CrawlSpec) -> None:
    """Raise UsageError if a crawl of a stack needs a file of this machine."""
    for part in _parts(plan):
        fix = "leave it out, or crawl on this machine with `orbweaver crawl`"
        raise UsageError(f"{_KEYS[part]}: a stack cannot read a file of this machine: {fix}")


def _parts(plan: CrawlSpec) -> dict[str, Any]:
    return {part: text for part in _PARTS if (text := getattr(plan, part))}
