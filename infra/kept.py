"""The context that a stack was deployed with, kept in the metadata of its template.

Rules
- Only what was given to the deployment is kept. What cdk.json says is read from there every time,
  and names of the deployment itself (`stack_name`, `target`) are no settings.
- `worker_enabled` is not kept: the event sources themselves say whether workers are switched off.
- Secrets are kept as what they are given as: names.
- The command line says outright what is to be kept (`orbweaver:context`), as some of what it gives
  is chosen anew for each deployment.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from infra.config import is_ours

if TYPE_CHECKING:
    from collections.abc import Mapping

KEY = "orbweaver:context"
METADATA, CONTEXT = "Orbweaver", "Context"
NEVER = ("stack_name", "target", "worker_enabled", "keep_settings")


def metadata(context: Mapping[str, Any], file: Mapping[str, Any]) -> dict[str, Any]:
    """Return a template's metadata for the context of an app, and that of its cdk.json."""
    given = json.loads(context[KEY]) if KEY in context else given_in(context, file)
    return {METADATA: {CONTEXT: {key: given[key] for key in sorted(given) if key not in NEVER}}}


def given_in(context: Mapping[str, Any], file: Mapping[str, Any]) -> dict[str, str]:
    """Return our keys of a context that differ from those of cdk.json."""
    return {
        key: str(value)
        for key, value in context.items()
        if is_ours(key) and (key not in file or file[key] != value)
    }
