"""The module with the user's own extraction functions, deployed with the worker.

Before deployment it is parsed, not run: the file exists, is valid Python of the functions' version
or earlier, and defines a function.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from infra.wheels import AssetError

if TYPE_CHECKING:
    from pathlib import Path

# Name of the module in the deployment (orbweaver/adapters/local/custom_extractors.py).
MODULE = "orbweaver_extractor"


def source_of(path: str, root: Path) -> Path | None:
    """Return the file that the context key names, or None without one. Raises AssetError."""
    if not path:
        return None
    file = root / path
    if not file.is_file():
        raise AssetError(f"context key extractor={path}: there is no such file in {root}")
    try:
        tree = ast.parse(file.read_bytes(), filename=path)
    except (SyntaxError, ValueError) as error:
        raise AssetError(f"context key extractor={path}: it is not Python: {error}") from error
    if not functions_in(tree):
        fix = "define one that takes a page and its URL, and whose name begins with no underscore"
        raise AssetError(f"context key extractor={path}: it has no function: {fix}")
    return file


def functions_in(tree: ast.Module) -> list[str]:
    """Return the names of a module's public functions."""
    return [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    ]
