"""Extras of an installation beside the least, and how to install those that it lacks.

`pip install orbweaver-crawler` has what crawls on this machine and speaks to a stack that exists.
More is in the extras of pyproject.toml; docs/install.md says what each costs.
"""

from __future__ import annotations

import importlib.util

# The distribution; the packages and the command are called `orbweaver`.
DISTRIBUTION = "orbweaver-crawler"
QUERY, DEPLOY, NODE = "query", "deploy", "node"


def has(module: str) -> bool:
    """Tell whether a module is installed, without importing it."""
    return importlib.util.find_spec(module) is not None


def has_parquet() -> bool:
    """Tell whether Parquet files can be written here."""
    return has("pyarrow")


def has_cdk() -> bool:
    """Tell whether a template can be synthesized here."""
    return has("aws_cdk")


def install_words(extra: str) -> str:
    """Write the command that installs an extra."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"
