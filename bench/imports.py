"""Time of the imports in a cold start: the total, and the largest packages.

    python -m bench.imports [MODULE] [--runs 5]

It uses `python -X importtime`. All imports count until a container can receive its first
invocation, including the standard library. The other work in Lambda's init phase is shown
separately. Each module's own time is the minimum of several runs in separate processes, which
removes most effects of a busy machine. A package's time is the sum of its modules.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING

from localstack import layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LINE = re.compile(r"import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)$")
SHOWN = 15
# Lambda's environment variables of a container. The credentials are invalid.
ENVIRONMENT = {
    "PYTHONPATH": str(layout.ROOT / "functions"),
    "AWS_LAMBDA_FUNCTION_NAME": "bench",
    "AWS_REGION": layout.REGION,
    "AWS_DEFAULT_REGION": layout.REGION,
    "AWS_ACCESS_KEY_ID": "bench",
    "AWS_SECRET_ACCESS_KEY": "bench",
}


def own_us(output: str) -> dict[str, int]:
    found = (LINE.match(line) for line in output.splitlines())
    return {match[2]: int(match[1]) for match in found if match}


def least(runs: Iterable[Mapping[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for run in runs:
        for name, us in run.items():
            found[name] = min(us, found.get(name, us))
    return found


def by_package(modules: Mapping[str, int]) -> Counter[str]:
    packages: Counter[str] = Counter()
    for name, us in modules.items():
        packages[name.partition(".")[0]] += us
    return packages


def measured(module: str, runs: int) -> dict[str, int]:
    """Import a module `runs` times. Return the least own time of each imported module."""
    words = [sys.executable, "-X", "importtime", "-c", f"import {module}"]
    outputs = [
        subprocess.run(words, env=ENVIRONMENT, check=True, capture_output=True, text=True).stderr
        for _ in range(runs + 1)
    ]
    return least(own_us(output) for output in outputs[1:])  # the first run may have compiled


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.imports")
    parser.add_argument("module", nargs="?", default="handlers.worker")
    parser.add_argument("--runs", type=int, default=5)
    asked = parser.parse_args()
    modules = measured(asked.module, asked.runs)
    beside_us = modules.pop(asked.module)
    print(f"{asked.module}: {sum(modules.values()) / 1000:,.0f} ms, {len(modules)} modules")
    print(f"and {beside_us / 1000:,.0f} ms that are no imports")
    for words, shares in (("packages", by_package(modules)), ("modules", Counter(modules))):
        print(f"\n{words}")
        for name, us in shares.most_common(SHOWN):
            print(f"{us / 1000:8.1f} ms  {name}")


if __name__ == "__main__":
    main()
