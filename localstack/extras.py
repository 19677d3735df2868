"""Optional parts of an installation, and how to install missing ones.

`pip install orbweaver-crawler` includes crawls on a store, exports and queries. Parts for a stack,
on AWS or an emulator, are extras in pyproject.toml. docs/install.md lists their sizes.
"""

from __future__ import annotations

import importlib.util

# The distribution. The packages and the command are called `orbweaver`.
DISTRIBUTION = "orbweaver-crawler"
AWS, DEPLOY, NODE = "aws", "deploy", "node"
# The extra of each optional package, and the part that needs it.
A_STACK = "a stack, on AWS or on an emulator,"
PACKAGES = {
    **dict.fromkeys(("aiobotocore", "boto3", "botocore"), (AWS, A_STACK)),
    **dict.fromkeys(("aws_cdk", "cdk_nag", "constructs"), (DEPLOY, "a stack's template")),
}


class ExtraMissing(ModuleNotFoundError):
    """A needed extra is not installed. The text contains the command that installs it."""


def has(module: str) -> bool:
    """Whether a module is installed, without importing it."""
    return importlib.util.find_spec(module) is not None


def has_cdk() -> bool:
    """Whether a template can be synthesized here."""
    return has("aws_cdk")


def install_words(extra: str) -> str:
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def told(error: ModuleNotFoundError) -> str | None:
    """Return the extra that an import lacked and its command, or None for other modules."""
    if isinstance(error, ExtraMissing):
        return str(error)
    package = (error.name or "").partition(".")[0]
    if package not in PACKAGES:
        return None
    extra, what = PACKAGES[package]
    return f"{what} needs {package}, which is not installed: {install_words(extra)}"
