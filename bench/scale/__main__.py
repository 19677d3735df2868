"""Run the model for the page on scale: `python -m bench.scale`. Figures and plots go into docs/.

The same seed gives the same figures. All of it takes some minutes of one core. `--only` runs a
part, and `--render` draws existing figures again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.scale.experiments import QUESTIONS
from bench.scale.render import render

DOCS = Path(__file__).parents[2] / "docs"
# Quantities that are drawn over time.
COURSE = "course"
FIGURES = DOCS / "scale" / "figures.json"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("--only", help=f"some of {','.join(QUESTIONS)}")
    parser.add_argument("--render", action="store_true", help="run nothing, draw anew")
    parser.add_argument("--figures", type=Path, default=FIGURES, help="where figures are kept")
    asked = parser.parse_args()
    known: dict[str, Any] = {}
    if asked.figures.exists():
        known = json.loads(asked.figures.read_text())
    names = [] if asked.render else (asked.only.split(",") if asked.only else list(QUESTIONS))
    for name in names:
        began_s = time.process_time()
        known[name] = {key: _rounded(asdict(one)) for key, one in QUESTIONS[name]().items()}
        if name != COURSE:
            for one in known[name].values():
                del one["samples"]
        print(f"{name}: {time.process_time() - began_s:.0f} s of CPU", file=sys.stderr, flush=True)
        asked.figures.parent.mkdir(parents=True, exist_ok=True)
        asked.figures.write_text(json.dumps(known, separators=(",", ":")) + "\n")
    if asked.figures == FIGURES:
        render(known, DOCS)


def _rounded(value: Any) -> Any:
    """Round figures to five significant digits, so that the file stays small."""
    match value:
        case float():
            return float(f"{value:.5g}")
        case dict():
            return {key: _rounded(each) for key, each in value.items()}
        case list() | tuple():
            return [_rounded(each) for each in value]
    return value


if __name__ == "__main__":
    main()
