"""Read a redirect map: a CSV file with an old and a new URL per line."""

from __future__ import annotations

import csv
from pathlib import Path

from orbweaver.cli.exit_codes import UsageError
from orbweaver.model.url import canonicalize

COLUMNS = 2
HEAD = "old"


def redirects_in(path: Path) -> dict[str, str]:
    """Return the canonical new URL of each old URL. Raises UsageError for an invalid line."""
    try:
        rows = [*csv.reader(path.read_text(encoding="utf-8-sig").splitlines())]
    except (OSError, ValueError, csv.Error) as error:
        raise UsageError(f"--redirect-map: {path}: {error}") from error
    found = {}
    for line, row in enumerate(rows, start=1):
        cells = [cell.strip() for cell in row]
        if not any(cells) or (line == 1 and cells[0].lower() == HEAD):
            continue
        if len(cells) != COLUMNS:
            raise UsageError(f"--redirect-map: {path}:{line}: write `old URL,new URL`")
        try:
            old, new = map(canonicalize, cells)
        except ValueError as error:
            raise UsageError(f"--redirect-map: {path}:{line}: {error}") from error
        found[old] = new
    if not found:
        raise UsageError(f"--redirect-map: {path} has no URLs")
    return found
