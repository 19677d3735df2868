"""`python -m tests.chaos`: one run, its verdict, and the exit code."""

from __future__ import annotations

import argparse
import json
import secrets
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from types import FrameType

from localstack.errors import LocalStackError
from tests.chaos import verdict
from tests.chaos.run import run
from tests.chaos.scale import FULL, SMALL

SMALL_PAGES_MAX = 500
INTERRUPTED = 130


def main(words: Sequence[str] | None = None) -> int:
    """Run chaos once; return 1 if a promise is broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, help="default: a fresh one, which is printed")
    parser.add_argument("--pages", type=int, default=FULL.pages, help="a small run up to 500")
    parser.add_argument("--json", action="store_true", help="the verdict as one JSON object")
    asked = parser.parse_args(words)
    seed = secrets.randbelow(1_000_000) if asked.seed is None else asked.seed
    scale = replace(FULL if asked.pages > SMALL_PAGES_MAX else SMALL, pages=asked.pages)
    signal.signal(signal.SIGTERM, _interrupt)
    _say(f"seed {seed}")
    try:
        evidence = run(seed, scale, _say)
    except LocalStackError as error:
        _say(str(error))
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    lines = verdict.judge(evidence)
    if asked.json:
        print(json.dumps(verdict.document(evidence, lines)))
    else:
        print(verdict.text(evidence, lines))
    return 0 if all(line.holds for line in lines) else 1


def _say(text: str) -> None:
    print(f"[chaos] {text}", file=sys.stderr, flush=True)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
