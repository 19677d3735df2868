"""Run the tests in parts, and the failed ones once more, alone.

    tools/tests.py part NAME [--quiet] -- <words for pytest>
    tools/tests.py failed

Parts run at the same time and leave their results in `.local/tests`. A part with a few failed
tests exits with 0. `failed` runs those alone, and fails if one fails again: it does not depend on
how busy the machine was. It prints how many there were.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

RESULTS = Path(__file__).resolve().parent.parent / ".local" / "tests"
# With more, the fault is not the machine's.
FAILED_MAX = 5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    part = commands.add_parser("part", help="run a part")
    part.add_argument("name")
    part.add_argument("--quiet", action="store_true", help="print the output at the end")
    part.add_argument("words", nargs="+", help="words for pytest")
    commands.add_parser("failed", help="run the failed tests of all parts once more")
    given = parser.parse_args()
    if given.command == "part":
        return run_part(given.name, given.words, quiet=given.quiet)
    return run_failed()


def run_part(name: str, words: list[str], *, quiet: bool) -> int:
    """Return pytest's exit code, or 0 if only a few tests failed, which run again."""
    cache = RESULTS / name
    _failed(cache).unlink(missing_ok=True)
    command = _pytest("-o", f"cache_dir={cache}", *words)
    done = subprocess.run(
        command,
        check=False,
        stdout=subprocess.PIPE if quiet else None,
        stderr=subprocess.STDOUT if quiet else None,
    )
    if quiet:
        sys.stdout.buffer.write(done.stdout)
    failed = _failed_in(cache)
    if done.returncode != 1 or not 0 < len(failed) <= FAILED_MAX:
        return done.returncode
    print(f"{name}: {len(failed)} failed, which run once more at the end", flush=True)
    return 0


def run_failed() -> int:
    """Run the failed tests of all parts, one after another."""
    failed = sorted(one for cache in RESULTS.glob("*") for one in _failed_in(cache))
    if not failed:
        return 0
    print(f"once more, alone: {len(failed)}", *failed, sep="\n  ", flush=True)
    return subprocess.run(_pytest("-p", "no:cacheprovider", *failed), check=False).returncode


def _pytest(*words: str) -> list[str]:
    # Only a long test needs this plug-in. Without it, each process starts 0.3 s earlier.
    return [sys.executable, "-m", "pytest", "-p", "no:schemathesis", *words]


def _failed(cache: Path) -> Path:
    return cache / "v" / "cache" / "lastfailed"


def _failed_in(cache: Path) -> list[str]:
    """Return the ids of the tests that failed, as pytest's cache has them."""
    path = _failed(cache)
    return list(json.loads(path.read_text())) if path.exists() else []


if __name__ == "__main__":
    sys.exit(main())
