"""Arguments and results of all clients. Standard library only."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


def arguments(*switches: str) -> argparse.Namespace:
    """Parse the start URL, the number of concurrent requests, and a client's own switches."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--at-once", type=int, default=64)
    for switch in switches:
        parser.add_argument(switch, action="store_true")
    return parser.parse_args()


def said(got: Mapping[str, Any], versions: Mapping[str, str]) -> None:
    """Print the result as the last line: pages with a title, and bytes."""
    sys.__stdout__.write(json.dumps({**got, "versions": dict(versions)}) + "\n")  # type: ignore[union-attr]
    sys.__stdout__.flush()  # type: ignore[union-attr]
