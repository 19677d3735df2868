"""One crawl on the emulated stack: the crawler `stack` of the comparison.

    python bench/yields/on_stack.py URL --port N --pages N

The stack starts fresh, without records of earlier crawls. The emulator may run ten workers at once.
It keeps running afterwards: `orbweaver local down` stops it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

WORKERS = 10


def main() -> None:
    parser = argparse.ArgumentParser(prog="python bench/yields/on_stack.py")
    parser.add_argument("url")
    parser.add_argument("--port", required=True)
    parser.add_argument("--pages", required=True)
    given = parser.parse_args()
    program, at = Path(sys.executable).with_name("orbweaver"), ("--port", given.port)
    several = ("-c", f"worker_concurrency_max={WORKERS}")
    subprocess.run([program, "local", "up", "--fresh", *several, *at], check=True)
    words = ["crawl", given.url, "--target", "local", *at, "--json", "--delay", "0"]
    words += ["--max-pages", given.pages, "--format", "jsonl", "--out", "out"]
    subprocess.run([program, *words], check=True)


if __name__ == "__main__":
    main()
