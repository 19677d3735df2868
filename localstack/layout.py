"""The layout of this checkout, and the environment in which clients and tools run.

Rules
- A package that is installed has no checkout. Its folder is `ORBWEAVER_HOME`, or else `orbweaver`
  among the user's data (`XDG_DATA_HOME`, `~/.local/share`), and holds what a checkout holds.
- Credentials made up here are for an emulator only: with no endpoint, the caller's own count.
- Node comes from its wheel in the running environment, or else from the machine.
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
    """Return the folder of an installed package."""
    if given := environment.get("ORBWEAVER_HOME"):
        return Path(given).expanduser().absolute()
    data = environment.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(data).expanduser().absolute() / "orbweaver"


ROOT = PACKAGES if CHECKOUT else data_folder()
LOCAL = ROOT / ".local"
INSTANCES = LOCAL / "instances"
ASSEMBLIES = LOCAL / "assemblies"
LEFT = LOCAL / "left"  # what removed stacks have left, to be taken up again
# Functions run on the emulator's own Python, which is therefore that of this process.
_EMULATOR = "emulator" if CHECKOUT else f"emulator-{sys.version_info[0]}.{sys.version_info[1]}"
EMULATOR_PYTHON = LOCAL / _EMULATOR / "bin" / "python"
CDK = ROOT / "node_modules" / "aws-cdk" / "bin" / "cdk"

REGION = "us-east-1"
ACCOUNT = "000000000000"
ENDPOINT = "AWS_ENDPOINT_URL"
# What would send a client elsewhere than the endpoint, or under another identity than the dummy.
_FOREIGN = ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE")


def node_directory() -> Path:
    """Return the folder that holds the `node` that CDK runs on (infra/node.py)."""
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
