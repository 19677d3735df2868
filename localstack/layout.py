"""Paths in this checkout, and the environment of clients and tools.

An installed package has no checkout. Its folder is `ORBWEAVER_HOME`, or `orbweaver` in the user's
data folder (`XDG_DATA_HOME`, `~/.local/share`), with the same contents as a checkout. The
credentials defined here are for an emulator only.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from infra import node
from localstack import extras
from localstack.errors import LocalStackError

if TYPE_CHECKING:
    from collections.abc import Mapping

PACKAGES = Path(__file__).resolve().parent.parent
CHECKOUT = (PACKAGES / "tools" / "bootstrap.py").is_file()


def data_folder(environment: Mapping[str, str] = os.environ) -> Path:
    if given := environment.get("ORBWEAVER_HOME"):
        return Path(given).expanduser().absolute()
    data = environment.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(data).expanduser().absolute() / "orbweaver"


ROOT = PACKAGES if CHECKOUT else data_folder()
LOCAL = ROOT / ".local"
INSTANCES = LOCAL / "instances"
ASSEMBLIES = LOCAL / "assemblies"
LEFT = LOCAL / "left"  # lists of resources that removed stacks left, for a later import
# The emulator's Python also runs the functions, so it has the version of this process's Python.
_EMULATOR = "emulator" if CHECKOUT else f"emulator-{sys.version_info[0]}.{sys.version_info[1]}"
EMULATOR_PYTHON = LOCAL / _EMULATOR / "bin" / "python"
CDK = ROOT / "node_modules" / "aws-cdk" / "bin" / "cdk"

REGION = "us-east-1"
ACCOUNT = "000000000000"
ENDPOINT = "AWS_ENDPOINT_URL"
# Variables that are not passed on, because they would redirect a client, or give it another
# identity.
_FOREIGN = ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE")


def node_directory() -> Path:
    """Return the folder of the `node` that runs CDK (infra/node.py)."""
    found = node.folder()
    if found is None:
        lacking = f"CDK needs Node {node.VERSION_MIN} or newer, with npm, and there is none"
        if CHECKOUT:
            raise LocalStackError(f"{lacking}: run `make setup`")
        raise extras.ExtraMissing(f"{lacking}: {extras.install_words(extras.NODE)}")
    return found


def client_environment(
    endpoint_url: str, inherited: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the environment for an emulator's clients. It contains no access to an AWS account."""
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
    """Return the environment for `cdk`, in which this Python and Node are first on PATH."""
    folder = node_directory()
    path = [str(Path(sys.executable).parent), str(folder), environment.get("PATH", os.defpath)]
    return {
        **environment,
        "PATH": os.pathsep.join(path),
        node.VARIABLE: str(folder / "node"),
        **node.UNWARNED,
        "CDK_HOME": str(LOCAL / "cdk"),
        "CDK_DISABLE_VERSION_CHECK": "1",
        "CDK_DISABLE_CLI_TELEMETRY": "1",
    }
