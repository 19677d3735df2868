"""The set-up of a checkout."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

    import pytest

ROOT = Path(__file__).parents[2]


def bootstrap() -> ModuleType:
    """Import the tool, which lies beside the packages."""
    spec = importlib.util.spec_from_file_location("bootstrap", ROOT / "tools" / "bootstrap.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_npm_packages_run_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither by the set-up, nor by an `npm install` by hand."""
    tool, commands = bootstrap(), []

    def run(words: Any, **_: Any) -> str:
        commands.append([str(word) for word in words])
        return str(tmp_path)

    monkeypatch.setattr(tool, "run", run)
    monkeypatch.setattr(tool, "NODE_MODULES", tmp_path)
    tool.ensure_node()
    npm = [words for words in commands if "ci" in words]
    assert len(npm) == 1
    assert "--ignore-scripts" in npm[0]
    settings = (ROOT / ".npmrc").read_text().split()
    assert "ignore-scripts=true" in settings
    assert "ignore-scripts=false" not in settings
