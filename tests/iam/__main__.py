"""Compare used permissions with granted ones: `python -m tests.iam FOLDER [--all]`.

Each test stack leaves its book in the folder, from any process and in any order. Every used
permission must be granted. After `make test-long`, with `--all`, every granted permission must be
used by a function or by AWS itself (tests/e2e/needs.py).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.e2e.needs import ADVISORY, ONLY_IN_CONTRACT, ONLY_RENDERING, USED_BY_AWS
from tests.iam.book import Book, covers, together


def problems(book: Book, *, whole: bool) -> list[str]:
    """Return the mismatches; `whole` is true if all work of the functions was done."""
    found = [f"used, and not granted: {use}" for use in book.denied]
    if not book.used:
        found.append("nothing was used: no end-to-end test has left a book")
    if whole:
        spare = set(book.spare) - USED_BY_AWS - ONLY_IN_CONTRACT - ONLY_RENDERING - ADVISORY
        # The renderer runs the worker's program and needs its permissions too.
        spare -= {grant for grant in spare if _is_used_by_worker(grant, book)}
        found += [f"granted, and not used: {grant}" for grant in sorted(spare)]
    return found


def _is_used_by_worker(grant: str, book: Book) -> bool:
    return any(covers(grant.replace("renderer ", "worker ", 1), use) for use in book.used)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.iam", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--all", action="store_true", help="all that functions do was done")
    arguments = parser.parse_args(words)
    book = together(sorted(arguments.folder.glob("*.json")))
    found = problems(book, whole=arguments.all)
    for problem in found:
        print(problem, file=sys.stderr)
    unused = len(set(book.spare) - USED_BY_AWS)
    print(
        f"roles: {len(book.granted)} grants, {unused} not used in this run; {len(book.used)} uses"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
