"""What all clients are told, and what they say at their end; needs nothing that is installed."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def arguments(*switches: str) -> argparse.Namespace:
    """Read where to begin, how many requests may go at once, and a client's own switches."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--at-once", type=int, default=64)
    for switch in switches:
        parser.add_argument(switch, action="store_true")
    return parser.parse_args()


def said(got: Mapping[str, Any], versions: Mapping[str, str]) -> None:
    """Say what was got: pages with a title, bytes; the last line of the output."""
    sys.__stdout__.write(json.dumps({**got, "versions": dict(versions)}) + "\n")  # type: ignore[union-attr]
    sys.__stdout__.flush()  # type: ignore[union-attr]
