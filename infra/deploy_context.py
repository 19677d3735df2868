"""The context that a stack was deployed with, stored in its template's metadata.

Only context given to the deployment is stored. Values of cdk.json are read from the file each time,
and `stack_name` and `target` only identify the deployment. `worker_enabled` is not stored, because
the event sources have that state. Secrets are stored by name. The command line passes the context
to store (`orbweaver:context`), because it chooses some values anew for each deployment.
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
    """Return the metadata of a template for an app's context and its cdk.json."""
    given = json.loads(context[KEY]) if KEY in context else context_to_store(context, file)
    return {METADATA: {CONTEXT: {key: given[key] for key in sorted(given) if key not in NEVER}}}


def context_to_store(context: Mapping[str, Any], file: Mapping[str, Any]) -> dict[str, str]:
    """Return Orbweaver's keys in a context with values that differ from cdk.json."""
    return {
        key: str(value)
        for key, value in context.items()
        if is_ours(key) and (key not in file or file[key] != value)
    }
