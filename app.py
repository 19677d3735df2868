"""The CDK app: context in, one stack out.

Run by `cdk` itself it keeps the deployed settings, for which it asks AWS (localstack/synthesis.py).
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from infra.asset import ROOT, STORE, Asset, Libraries, build, source_of
from infra.browser import obtain
from infra.config import Config, is_ours
from infra.keys import ConfigError
from infra.node import use_wheel_node
from infra.wheels import AssetError
from localstack import synthesis
from localstack.errors import LocalStackError

if TYPE_CHECKING:
    from collections.abc import Mapping

# The template's metadata contains the context that a deployment was given. Values of cdk.json are
# read from the file each time. `stack_name` and `target` only identify the deployment, and event
# sources have the state of `worker_enabled`. Secrets are stored by name. The command line passes
# the context to store (`KEY`), because it chooses some values anew for each deployment.
KEY = "orbweaver:context"
METADATA, CONTEXT = "Orbweaver", "Context"
NEVER = ("stack_name", "target", "worker_enabled", "keep_settings")


def main() -> int:
    """Synthesize the stack; what is wrong with the context is said in one line."""
    use_wheel_node()
    from aws_cdk import App

    from infra.program import Code
    from infra.stack import OrbweaverStack

    app = App()
    file = json.loads((ROOT / "cdk.json").read_text()).get("context", {})
    context = app.node.get_all_context()
    try:
        planned = _plan(context, file)
        context = planned.context
        config = replace(Config.from_context(context), stack_exists=planned.stack_exists)
        custom = source_of(config.extractor, ROOT)
        asset, files = (
            build(
                config.functions_run_on,
                name,
                extractor=custom if name == "runtime" else None,
                console=config.hosts_console and name == "runtime",
            )
            for name in get_args(Libraries)
        )
        rendering = _of_renderer(config, custom)
    except (AssetError, ConfigError, LocalStackError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stderr.write(f"{asset}\n{files}\n")
    code = Code(
        path=str(asset.archive),
        hash=asset.hash,
        files=Code(path=str(files.archive), hash=files.hash),
        renderer=None
        if rendering is None
        else Code(path=str(rendering.archive), hash=rendering.hash),
    )
    stack = OrbweaverStack(app, config.stack_name, config=config, code=code)
    stack.template_options.metadata = metadata(context, file)
    app.synth()
    return 0


def _plan(context: Mapping[str, Any], file: Mapping[str, Any]) -> synthesis.Planned:
    """Return the context to synthesize with: what was given is replaced by what was planned."""
    given = context_to_store(context, file)
    planned = synthesis.plan(
        given, context, os.environ, say=lambda line: sys.stderr.write(f"{line}\n")
    )
    rest = {key: value for key, value in context.items() if key not in given}
    return replace(planned, context={**rest, **planned.context})


def _of_renderer(config: Config, extractor: Path | None) -> Asset | None:
    """Build the code with a browser; an emulator's functions have that of this machine."""
    if not config.renders or config.local:
        return None
    browser = obtain(ROOT, STORE)
    built = build(config.renderer_runs_on, extractor=extractor, browser=browser)
    sys.stderr.write(f"of the renderer, {built}\n")
    return built


def metadata(context: Mapping[str, Any], file: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a template for an app's context and its cdk.json."""
    given = json.loads(context[KEY]) if KEY in context else context_to_store(context, file)
    return {METADATA: {CONTEXT: {key: given[key] for key in sorted(given) if key not in NEVER}}}


def context_to_store(context: Mapping[str, Any], file: Mapping[str, Any]) -> dict[str, str]:
    """Return Orbweaver's keys in a context with values that differ from cdk.json."""
    return {
        key: str(value)
        for key, value in context.items()
        if is_ours(key) and (key not in file or file[key] != value)
    }


if __name__ == "__main__":
    sys.exit(main())
