"""Decode JSON responses, within limits on their size, depth and number of values.

Source: RFC 8259. As in JSON-LD, control characters in strings are accepted.
"""

from __future__ import annotations

import json
from typing import Any

from orbweaver.extraction.json_ld import DEPTH_MAX, count_nodes

# Objects and lists of one response.
NODES_MAX = 200_000


class UnfitJson(ValueError):
    """A body is not JSON, or it exceeds a limit."""


def decoded(body: bytes, *, truncated: bool = False) -> Any:
    """Decode a body. Raises UnfitJson."""
    if truncated:
        raise UnfitJson(f"the body is cut at {len(body):,} bytes, so the JSON has no end")
    try:
        data = _DECODER.decode(body.decode(json.detect_encoding(body)).removeprefix("\ufeff"))
        count_nodes(data, NODES_MAX, NODES_MAX)
    except RecursionError as error:
        raise UnfitJson(f"JSON nested more than {DEPTH_MAX} deep") from error
    except json.JSONDecodeError as error:
        raise UnfitJson(f"not JSON: {error.msg} (character {error.pos})") from error
    except UnicodeDecodeError as error:
        raise UnfitJson(f"not JSON: byte {error.start} is not {error.encoding}") from error
    except ValueError as error:  # too many or too deep, or a number of thousands of digits
        raise UnfitJson(f"JSON that exceeds a limit: {str(error)[:100]}") from error
    return data


# "NaN" and the like, which JSON does not have, become None.
_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda _: None)
