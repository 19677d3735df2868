"""Builds into wheel and sdist what is not in the repository: the templates of the local stack.

They are synthesized by the environment of `make setup`. An sdist holds them, so that a wheel is
built from it anywhere. An editable install needs none.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

TEMPLATES = "localstack/shipped/templates"
FIX = "run `make setup` first: the wheel carries the stack's template, which CDK makes"


class Templates(BuildHookInterface[Any]):
    """See the module."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the templates, unless they are there already."""
        root = Path(self.root)
        if version == "editable" or (root / TEMPLATES).is_dir():
            return
        python, made = root / ".venv" / "bin" / "python", root / "build" / "templates"
        if not (root / "node_modules").is_dir() or not python.exists():
            raise RuntimeError(FIX)
        # The build's own environment leads Python to other packages.
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        words = [python, "-m", "localstack.ship", made]
        subprocess.run(words, cwd=root, env=kept, check=True)  # noqa: S603 - no shell
        build_data["force_include"][str(made)] = TEMPLATES
