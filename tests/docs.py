"""Command blocks of README and docs, and how a test runs them.

A block of commands (`sh`, `console`) is run as printed, in the order of its page. The line before
its fence may mark an exception:

    <!-- needs: REASON -->     the block is not run: REASON is one of `REASONS`
    <!-- starts: a stack of its own -->     the block is run without another stack
    <!-- each: STATE -->     each command is run alone, on a crawl in that state
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = (
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/evidence").glob("*.md")),
    ROOT / "docs/grafana/README.md",
    ROOT / "localstack/README.md",
    ROOT / "CONTRIBUTING.md",
)
# Reasons why blocks are not run, with their number. Update it when you add a block.
REASONS = {
    "an AWS account": 14,
    "the AWS command line": 7,
    "a package index": 4,  # tests/e2e/test_wheel.py runs three of them.
    "a server of yours": 5,
    "a site with a login": 3,
    "a Docker engine": 3,
    "an answer at the terminal": 1,
    "a rule of yours that names functions": 1,
    "a dead letter": 1,
    "a Chromium": 1,  # tests/rendering/test_crawl.py runs it.
    "a browser": 1,  # tests/integration/test_console.py runs it.
    "minutes": 4,
}
OWN = "a stack of its own"
RUNNING, ENDED = "a running crawl", "an ended crawl"
STATES = (RUNNING, ENDED)
BLOCK = re.compile(
    r"(?:^ *<!-- (?P<kind>needs|starts|each): (?P<what>[^\n]*?) -->\n)?"
    r"^ *```(?P<shell>sh|console)\n(?P<body>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block of a page with its mark."""

    page: str
    shell: str
    body: str
    kind: str | None = None
    what: str | None = None

    @property
    def commands(self) -> list[str]:
        """Return the commands of the block, with continued lines joined."""
        joined = re.sub(r"\\\n\s*", "", self.body)
        return [line.strip() for line in joined.splitlines() if line.strip()]


def blocks(page: Path) -> list[Block]:
    return [
        Block(
            page=page.relative_to(ROOT).as_posix(),
            shell=found["shell"],
            body=found["body"],
            kind=found["kind"],
            what=found["what"],
        )
        for found in BLOCK.finditer(page.read_text())
    ]


ALL = tuple(block for page in PAGES for block in blocks(page))
