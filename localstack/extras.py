"""Extras of an installation beside the least, and how to install those that it lacks.

`pip install orbweaver-crawler` has what crawls on a store, exports and queries. What speaks to a
stack, on AWS or on an emulator, is in the extras of pyproject.toml; docs/install.md says what each
costs.
"""

from __future__ import annotations

import importlib.util

# The distribution; the packages and the command are called `orbweaver`.
DISTRIBUTION = "orbweaver-crawler"
AWS, DEPLOY, NODE = "aws", "deploy", "node"
# The extra of each package that a command may lack, and what needs it.
A_STACK = "a stack, on AWS or on an emulator,"
PACKAGES = {
    **dict.fromkeys(("aiobotocore", "boto3", "botocore"), (AWS, A_STACK)),
    **dict.fromkeys(("aws_cdk", "cdk_nag", "constructs"), (DEPLOY, "a stack's template")),
}


class ExtraMissing(ModuleNotFoundError):
    """Something needs an extra that is not installed; the text says what, and how to install it."""


def has(module: str) -> bool:
    """Tell whether a module is installed, without importing it."""
    return importlib.util.find_spec(module) is not None


def has_cdk() -> bool:
    """Tell whether a template can be synthesized here."""
    return has("aws_cdk")


def install_words(extra: str) -> str:
    """Write the command that installs an extra."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def told(error: ModuleNotFoundError) -> str | None:
    """Say which extra an import lacked, and how to install it; None if it is of no extra."""
    if isinstance(error, ExtraMissing):
        return str(error)
    package = (error.name or "").partition(".")[0]
    if package not in PACKAGES:
        return None
    extra, what = PACKAGES[package]
    return f"{what} needs {package}, which is not installed: {install_words(extra)}"
