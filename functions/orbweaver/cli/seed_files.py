"""Seed lists: URLs from a file or the standard input, one per line or in a column of a CSV table.

- A list is read line by line, so it needs only the memory of its URLs. A file can be compressed
  with gzip.
- Empty lines, and lines that begin with `#`, are skipped.
- `--column` is a column's name in the header, or its number in a table without a header. Without
  it, a file whose name ends in .csv or .tsv has its URLs in the column `url`.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TextIO, cast

from orbweaver.cli import text
from orbweaver.cli.crawl_options import STANDARD_INPUT
from orbweaver.cli.exit_codes import UsageError
from orbweaver.control import spec_checks
from orbweaver.control.crawl_spec import CrawlSpec
from orbweaver.model.request_url import seed_of_line

if TYPE_CHECKING:
    from orbweaver.cli.context import CliContext

TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
ANY_COLUMN, COLUMN = "", "url"
DELIMITERS = ",;\t|"
GZIP = b"\x1f\x8b"
LINE_CHARS_MAX, LINES_MAX = 1_000_000, 10_000_000
COLUMNS_SHOWN = 20


class SeedListError(UsageError):
    """A seed list cannot be read. `problems` are sentences about lines of the list."""

    def __init__(self, name: str, problems: list[str]) -> None:
        lines = [f"  {text.clean(problem)}" for problem in problems]
        super().__init__("\n".join([f"{name}: some lines cannot be crawled", *lines]))
        self.problems = problems


def seeds_in(
    given: str, folder: Path, around: CliContext, column: str | None = None
) -> tuple[str, ...]:
    """Read the URLs of the list `given`, `-` for the standard input. Raises UsageError."""
    if given == STANDARD_INPUT:
        return _seeds("the input", around.stdin, column)
    name = text.clean(given)
    if column is None and given.lower().endswith(TABLES):
        column = ANY_COLUMN
    try:
        with (folder / given).open("rb") as file:
            packed = file.peek(len(GZIP))[: len(GZIP)] == GZIP
            raw = cast("BinaryIO", gzip.GzipFile(fileobj=file)) if packed else file
            with io.TextIOWrapper(raw, "utf-8", "surrogateescape", newline="") as lines:
                return _seeds(name, lines, column)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        why = f"is not a whole gzip file: {error}"
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
    except ValueError:
        why = "is no name of a file"
    raise UsageError(f"{name} {why}")


def _seeds(name: str, stream: TextIO, column: str | None) -> tuple[str, ...]:
    lines = SeedLines(name, stream)
    try:
        found = list(lines.bounded(lines.plain() if column is None else lines.cells(column)))
    except csv.Error as error:
        raise UsageError(f"{name}, line {lines.number}: {error}") from error
    seeds = tuple(seed for _, seed in found)
    if spec_checks.valid_seeds(CrawlSpec(seeds=seeds), None) is None:
        raise SeedListError(name, list(_problems(found)))
    return seeds


def _problems(found: list[tuple[int, str]]) -> Iterator[str]:
    problems = (
        f"line {number}: {problem}"
        for number, seed in found
        if (problem := spec_checks.problem_of(seed)) is not None
    )
    yield from itertools.islice(problems, spec_checks.PROBLEMS_MAX)
    if more := sum(1 for _ in problems):
        yield f"{more:,} more lines cannot be crawled"


class SeedLines:
    """Reads the lines of a seed list. `number` is the number of lines read so far."""

    def __init__(self, name: str, stream: TextIO) -> None:
        self._name = name
        self._stream = stream
        self.number = 0

    def __iter__(self) -> Iterator[str]:
        while line := self._stream.readline(LINE_CHARS_MAX):
            self.number += 1
            if len(line) == LINE_CHARS_MAX or self.number > LINES_MAX:
                most = f"a list has up to {LINES_MAX:,} lines of {LINE_CHARS_MAX:,} characters"
                raise UsageError(f"{self._name}, line {self.number}: {most}")
            if not _is_unicode(line):
                raise UsageError(f"{self._name}, line {self.number} is not UTF-8: save it as such")
            yield line.removeprefix("\ufeff") if self.number == 1 else line

    def plain(self) -> Iterator[tuple[int, str]]:
        for line in self:
            yield self.number, seed_of_line(line.strip())

    def cells(self, column: str) -> Iterator[tuple[int, str]]:
        first = next(filter(_has_content, self), "")
        delimiter = max(DELIMITERS, key=first.count)
        header = next(csv.reader([first], delimiter=delimiter), [])
        place = _place(header, column or COLUMN)
        rest: Iterable[str] = self
        start = self.number + 1
        if place is None:
            place = self._place_without_header(header, column)
            rest, start = itertools.chain([first], self), self.number
        for row in csv.reader(rest, delimiter=delimiter):
            if len(row) > place and _has_content(row[0] or row[place]):
                yield start, row[place].strip()
            start = self.number + 1

    def _place_without_header(self, header: list[str], column: str) -> int:
        if column.isdecimal() and int(column):
            return int(column) - 1
        if column == ANY_COLUMN and len(header) <= 1:
            return 0
        known = ", ".join(text.cut(cell.strip(), 40) for cell in header[:COLUMNS_SHOWN])
        raise UsageError(
            f"{self._name} has no column {column or COLUMN!r}: give --column with one of {known};"
            " with a number if the table has no header"
        )

    def bounded(self, found: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """Yield `found` without empty lines and comments.

        Raises UsageError if the seeds exceed a crawl's limits.
        """
        count = size = 0
        for number, seed in found:
            if not _has_content(seed):
                continue
            count, size = count + 1, size + len(seed)
            if count > spec_checks.SEEDS_MAX or size > spec_checks.SEEDS_BYTES_MAX:
                most = f"{spec_checks.SEEDS_MAX:,} URLs of {text.size(spec_checks.SEEDS_BYTES_MAX)}"
                raise UsageError(
                    f"{self._name} has more than {most}, the limit of a crawl: {spec_checks.SPLIT}"
                )
            yield number, seed


def _is_unicode(line: str) -> bool:
    """Return False if a line had invalid UTF-8, which was decoded to lone surrogates."""
    try:
        line.encode()
    except UnicodeEncodeError:
        return False
    return True


def _has_content(line: str) -> bool:
    stripped = line.strip()
    return bool(stripped) and not stripped.startswith("#")


def _place(header: list[str], column: str) -> int | None:
    """Return the index of a column in the header, by exact name or else ignoring case."""
    names = [cell.strip() for cell in header]
    if column in names:
        return names.index(column)
    folded = [name.casefold() for name in names]
    return folded.index(column.casefold()) if column.casefold() in folded else None
