"""One crawl on the emulated stack: the crawler `stack` of the comparison.

    python bench/yields/on_stack.py URL --pages N

The stack is started afresh and removed: what an earlier crawl has claimed is of no account. The
emulator runs two workers at once, and delivers messages in no certain order.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

PORT = 4_778


def main() -> None:
    """Start the stack, crawl, and end it."""
    parser = argparse.ArgumentParser(prog="python bench/yields/on_stack.py")
    parser.add_argument("url")
    parser.add_argument("--pages", type=int, required=True)
    given = parser.parse_args()
    program = Path(sys.executable).with_name("orbweaver")
    at = ("--port", str(PORT))
    subprocess.run([program, "local", "up", "--fresh", *at], check=True)
    try:
        words = ["crawl", given.url, "--target", "local", *at, "--json", "--delay", "0"]
        words += ["--max-pages", str(given.pages), "--format", "jsonl", "--out", "out"]
        subprocess.run([program, *words], check=True)
    finally:
        subprocess.run([program, "local", "down", *at], check=True)


if __name__ == "__main__":
    main()
