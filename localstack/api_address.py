"""The API's address on an emulator, which differs from the template's output.

The output `ApiUrl` is an AWS name (`https://ID.execute-api.REGION.amazonaws.com/STAGE/`), even on
an emulator. A client that used it would send signed requests to the Internet. So on an emulator,
the output is replaced by the address at which the emulator serves the API.

Source: MiniStack and LocalStack serve REST APIs at `/restapis/ID/STAGE/_user_request_/`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from localstack import layout

if TYPE_CHECKING:
    from collections.abc import Mapping

OUTPUT = "ApiUrl"
_AWS = re.compile(r"https://([a-z0-9]+)\.execute-api\.[^/]+/([^/]+)/")


def local_outputs(outputs: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return a stack's outputs with the API's address that works in an environment."""
    endpoint, found = environment.get(layout.ENDPOINT), _AWS.fullmatch(outputs.get(OUTPUT, ""))
    if not endpoint or found is None:
        return dict(outputs)
    path = f"restapis/{found[1]}/{found[2]}/_user_request_/"
    return {**outputs, OUTPUT: f"{endpoint.rstrip('/')}/{path}"}
