"""The API's address on an emulator.

Even on an emulator, the output `ApiUrl` is an AWS name
(`https://ID.execute-api.REGION.amazonaws.com/STAGE/`). A client that used it would send signed
requests to the Internet. So this address replaces it.

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
    """Return a stack's outputs with the emulator's API address, or unchanged on AWS."""
    endpoint, found = environment.get(layout.ENDPOINT), _AWS.fullmatch(outputs.get(OUTPUT, ""))
    if not endpoint or found is None:
        return dict(outputs)
    path = f"restapis/{found[1]}/{found[2]}/_user_request_/"
    return {**outputs, OUTPUT: f"{endpoint.rstrip('/')}/{path}"}
