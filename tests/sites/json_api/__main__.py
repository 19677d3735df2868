"""Run the shop: `python -m tests.sites.json_api [--port PORT]`."""

from __future__ import annotations

import argparse
import threading
from contextlib import suppress

from tests.sites.json_api.server import serving
from tests.sites.json_api.shop import Shop


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.sites.json_api", description=__doc__)
    parser.add_argument("--port", type=int, default=8792)
    arguments = parser.parse_args()
    with serving(Shop(), arguments.port) as served, suppress(KeyboardInterrupt):
        print(f"{served.url}/v1/cursor", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
