"""Optional parts of an installation (extras in pyproject.toml), and how to install missing ones.

`pip install orbweaver-crawler` includes crawls on a local store, exports and queries. A stack, on
AWS or an emulator, needs extras. docs/install.md lists their sizes.
"""

from __future__ import annotations

import importlib.util

# Name of the package for pip. The Python packages and the command are called `orbweaver`.
DISTRIBUTION = "orbweaver-crawler"
AWS, DEPLOY, NODE = "aws", "deploy", "node"
# Text in the table below, which maps a Python package to its extra and to the part of Orbweaver
# that needs it.
A_STACK = "a stack, on AWS or on an emulator,"
PACKAGES = {
    **dict.fromkeys(("aiobotocore", "boto3", "botocore"), (AWS, A_STACK)),
    **dict.fromkeys(("aws_cdk", "cdk_nag", "constructs"), (DEPLOY, "a stack's template")),
}


class ExtraMissing(ModuleNotFoundError):
    """A needed extra is not installed. The message contains the command that installs it."""


def is_installed(module: str) -> bool:
    """Return whether a module is installed, without importing it."""
    return importlib.util.find_spec(module) is not None


def install_words(extra: str) -> str:
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def require_cdk() -> None:
    """Raise ExtraMissing if the library of CDK is not installed."""
    if not is_installed("aws_cdk"):
        raise ExtraMissing(
            f"a deployment needs CDK, which is not installed: {install_words(DEPLOY)}"
        )


def missing_extra_text(error: ModuleNotFoundError) -> str | None:
    """Return a text about the extra that a failed import needs, or None if it needs no extra."""
    if isinstance(error, ExtraMissing):
        return str(error)
    package = (error.name or "").partition(".")[0]
    if package not in PACKAGES:
        return None
    extra, what = PACKAGES[package]
    return f"{what} needs {package}, which is not installed: {install_words(extra)}"
