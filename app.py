"""The CDK app: context in, one stack out. It asks AWS nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import get_args

from infra.asset import ROOT, STORE, Asset, Libraries, build
from infra.browser import obtain
from infra.config import Config
from infra.custom import source_of
from infra.kept import metadata
from infra.keys import ConfigError
from infra.node import use_wheel_node
from infra.wheels import AssetError


def main() -> int:
    """Synthesize the stack; what is wrong with the context is said in one line."""
    use_wheel_node()
    from aws_cdk import App

    from infra.program import Code
    from infra.stack import OrbweaverStack

    app = App()
    try:
        config = Config.from_context(app.node.get_all_context())
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
    except (AssetError, ConfigError) as error:
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
    file = json.loads((ROOT / "cdk.json").read_text()).get("context", {})
    stack.template_options.metadata = metadata(app.node.get_all_context(), file)
    app.synth()
    return 0


def _of_renderer(config: Config, extractor: Path | None) -> Asset | None:
    """Build the code with a browser; an emulator's functions have that of this machine."""
    if not config.renders or config.local:
        return None
    browser = obtain(ROOT, STORE)
    built = build(config.renderer_runs_on, extractor=extractor, browser=browser)
    sys.stderr.write(f"of the renderer, {built}\n")
    return built


if __name__ == "__main__":
    sys.exit(main())
