"""Fuzz targets one after the other, and print a table; exit code 1 if an input fails."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.fuzz import slopes, worst
from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / ".local" / "fuzz"
PYTHON = HOME / "python" / "bin" / "python"
CORPUS = Path(__file__).parent / "corpus"
SECONDS = 60
# Long enough to show quadratic time. The fuzzer starts with short inputs.
INPUT_BYTES_MAX = 8_192
ONE_S_MAX = 10
MEMORY_MB_MAX = 1_024
OUTPUT_LINES = 30
_STATS = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
_COVERED = re.compile(r" cov: (\d+) ")


def fuzz(name: str, seconds: int) -> bool:
    """Fuzz a target for a while; return False if an input failed."""
    found, grown = HOME / "found" / name, HOME / "grown" / name
    for folder in (found, grown):
        folder.mkdir(parents=True, exist_ok=True)
    options = [
        f"-max_total_time={seconds}",
        f"-max_len={INPUT_BYTES_MAX}",
        f"-timeout={ONE_S_MAX}",
        f"-rss_limit_mb={MEMORY_MB_MAX}",
        f"-artifact_prefix={found}/",
        "-print_final_stats=1",
        str(grown),
        *(str(folder) for folder in [CORPUS / name] if folder.is_dir()),
    ]
    done = subprocess.run(
        [PYTHON, "-m", "tests.fuzz.child", name, *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(("functions", "."))},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    runs, covered = _STATS.findall(done.stdout), _COVERED.findall(done.stdout)
    kept = done.returncode == 0
    said = "kept its promises" if kept else f"FOUND something: {found}"
    print(f"{name:16} {(runs or ['?'])[-1]:>9} runs {(covered or ['?'])[-1]:>6} points  {said}")
    if not kept:
        print("\n".join(done.stdout.splitlines()[-OUTPUT_LINES:]))
    sys.stdout.flush()
    return kept


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fuzz", description="Fuzz what strangers write.")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="for each target")
    parser.add_argument("--only", nargs="+", choices=list(TARGETS), default=list(TARGETS))
    parser.add_argument("--slopes", action="store_true", help="repeat fragments, up to 2 MB")
    parser.add_argument("--worst", action="store_true", help="look for the most costly page")
    arguments = parser.parse_args()
    if arguments.worst:
        worst.search(arguments.seconds)
        return 0
    if arguments.slopes:
        return int(not slopes.show(arguments.only))
    kept = [fuzz(name, arguments.seconds) for name in arguments.only]
    return int(not all(kept))


if __name__ == "__main__":
    sys.exit(main())
