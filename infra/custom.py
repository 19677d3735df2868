"""The module with functions of the user's own that is deployed with the worker.

It is checked before anything is deployed: that it is there, that it is Python of the functions'
version or an earlier one, and that it has a function at all. It is not run here.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from infra.wheels import AssetError

if TYPE_CHECKING:
    from pathlib import Path

# The package that it is where it is deployed (orbweaver/adapters/local/custom_extractors.py).
MODULE = "orbweaver_extractor"


def source_of(path: str, root: Path) -> Path | None:
    """Return the file that a context key names, None for none; raises AssetError."""
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
    """List the public functions of a module."""
    return [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    ]
