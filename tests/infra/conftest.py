"""Stacks, each synthesized once per session, because it takes seconds."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from infra.config import Config
from infra.node import use_wheel_node

if TYPE_CHECKING:
    from tests.infra.template import Synthesize, Synthesized

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def synthesize(tmp_path_factory: pytest.TempPathFactory) -> Synthesize:
    """Return a function that synthesizes a stack for a context (keywords) over a tiny asset."""
    use_wheel_node()
    from aws_cdk import App

    from infra.program import Code
    from infra.stack import OrbweaverStack
    from tests.infra.template import Synthesized

    code = tmp_path_factory.mktemp("code")
    (code / "empty.py").touch()
    flags = json.loads((ROOT / "cdk.json").read_text())["context"]

    @cache
    def made(*, stack_exists: bool = False, **context: str) -> Synthesized:
        app = App(context=flags, outdir=str(tmp_path_factory.mktemp("assembly")))
        config = replace(Config.from_context(context), stack_exists=stack_exists)
        stack = OrbweaverStack(app, "Stack", config=config, code=Code(path=str(code)))
        folder = Path(app.synth().directory)
        manifest = json.loads((folder / "manifest.json").read_text())
        assert not manifest.get("missing"), "synthesis must not ask AWS"
        return Synthesized(
            stack=stack, template=json.loads((folder / stack.template_file).read_text())
        )

    return made


@pytest.fixture(scope="session")
def aws(synthesize: Synthesize) -> Synthesized:
    return synthesize()


@pytest.fixture(scope="session")
def local(synthesize: Synthesize) -> Synthesized:
    """Return the default stack on an emulator."""
    return synthesize(target="local", allow_addresses="127.0.0.1/32")
