"""What a cold start imports, by `python -X importtime`: in all, and which parts take the most.

    python -m bench.imports [MODULE] [--runs 5]

Everything counts that is imported until a container can take its first invocation, the standard
library included. What is done beside that in Lambda's init phase (clients are opened, authorities
read) is the handler's own time, and is said apart.

Each module's own time is the least of several runs, each in a process of its own, so that what a
busy machine adds is mostly left out; a package's is the sum over its modules.
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
# What Lambda tells a container; there is nobody to be asked with these credentials.
ENVIRONMENT = {
    "PYTHONPATH": str(layout.ROOT / "functions"),
    "AWS_LAMBDA_FUNCTION_NAME": "bench",
    "AWS_REGION": layout.REGION,
    "AWS_DEFAULT_REGION": layout.REGION,
    "AWS_ACCESS_KEY_ID": "bench",
    "AWS_SECRET_ACCESS_KEY": "bench",
}


def own_us(output: str) -> dict[str, int]:
    """Read what each module took for itself, in microseconds."""
    found = (LINE.match(line) for line in output.splitlines())
    return {match[2]: int(match[1]) for match in found if match}


def least(runs: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Take the least that each module took."""
    found: dict[str, int] = {}
    for run in runs:
        for name, us in run.items():
            found[name] = min(us, found.get(name, us))
    return found


def by_package(modules: Mapping[str, int]) -> Counter[str]:
    """Add modules up to their packages."""
    packages: Counter[str] = Counter()
    for name, us in modules.items():
        packages[name.partition(".")[0]] += us
    return packages


def measured(module: str, runs: int) -> dict[str, int]:
    """Import a module so many times; what each of those that it needs took."""
    words = [sys.executable, "-X", "importtime", "-c", f"import {module}"]
    outputs = [
        subprocess.run(words, env=ENVIRONMENT, check=True, capture_output=True, text=True).stderr
        for _ in range(runs + 1)
    ]
    return least(own_us(output) for output in outputs[1:])  # the first one may have compiled


def main() -> None:
    """Print what the command line asks for."""
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
