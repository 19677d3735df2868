"""The CDK app: context in, one stack out. It asks AWS nothing."""

from __future__ import annotations

import sys

from infra.asset import AssetError, build
from infra.config import Config
from infra.keys import ConfigError
from infra.node import use_wheel_node


def main() -> int:
    """Synthesize the stack; what is wrong with the context is said in one line."""
    use_wheel_node()
    from aws_cdk import App

    from infra.program import Code
    from infra.stack import OrbweaverStack

    app = App()
    try:
        config = Config.from_context(app.node.get_all_context())
        asset = build(config.functions_run_on)
    except (AssetError, ConfigError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stderr.write(f"{asset}\n")
    OrbweaverStack(
        app, config.stack_name, config=config, code=Code(folder=str(asset.folder), hash=asset.hash)
    )
    app.synth()
    return 0


if __name__ == "__main__":
    sys.exit(main())
