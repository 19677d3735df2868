"""Parse crawl definitions (`crawl.toml` or JSON) into plans, and write them.

The input is a decoded document, so TOML, JSON and API requests are handled in one way. All problems
are found, not only the first. Texts of problems never contain values of headers, which can be
secret.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from orbweaver.control.crawl_spec import SEEDS_FILE, CrawlSpec
from orbweaver.control.definition_keys import BY_PATH, KEYS, PATHS, TABLES
from orbweaver.control.definition_values import (
    SHOWN_CHARS_MAX,
    UnfitSetting,
    UnfitWithin,
    plain,
    shown,
)
from orbweaver.control.spec_checks import problems_of
from orbweaver.model.request_url import seed_of_line
from orbweaver.model.value import positional_value_class


@positional_value_class
class DefinitionProblem:
    """A problem in a document. `path` is the key (`limits.pages`), or "" for all of it."""

    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


class DefinitionError(ValueError):
    """A document is invalid. `problems` contains all problems."""

    def __init__(self, problems: tuple[DefinitionProblem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


# --- reading ------------------------------------------------------------------------------------


# Maximum number of unknown keys for which the nearest known key is searched, because each search
# compares all known keys.
HINTS_MAX = 100
NO_TABLE = (
    'it is no table of keys: give some, like {"seeds": ["https://example.com/"]};'
    " docs/definition.md has all of them"
)


def parse(document: object, lines: str | None = None) -> CrawlSpec:
    """Parse a plan from a decoded document. Raises DefinitionError with all problems.

    `lines` is the content of the document's `seeds_file`. If it is None, a `seeds_file` is a
    problem.
    """
    plan, problems = read(document, lines)
    problems = (*problems, *check(plan, problems))
    if problems:
        raise DefinitionError(problems)
    return plan


def read(
    document: object, lines: str | None = None
) -> tuple[CrawlSpec, tuple[DefinitionProblem, ...]]:
    """Parse the valid parts of a plan, and list parse errors. `check` validates the values."""
    if not isinstance(document, Mapping):
        return CrawlSpec(), (DefinitionProblem("", NO_TABLE),)
    parts: dict[str, Any] = {}
    problems: list[DefinitionProblem] = []
    for path, value in _leaves(document):
        key = BY_PATH.get(path)
        if isinstance(value, DefinitionProblem):
            problems.append(value)
        elif key is not None:
            try:
                parts[key.part] = key.codec.read(value)
            except UnfitSetting as error:
                given = "" if key.secret else f"{shown(value)} does not fit: "
                problems.append(DefinitionProblem(path, f"{given}{error}"))
            except UnfitWithin as error:
                parts[key.part] = error.rest
                problems += [DefinitionProblem(f"{path}{at}", said) for at, said in error.problems]
    if (file := parts.pop("", None)) is not None:
        if lines is None:
            fix = "no file can be read here: give its lines as seeds"
            problems.append(DefinitionProblem(SEEDS_FILE, f"{shown(file)}: {fix}"))
        parts["seeds"] = (*parts.get("seeds", ()), *lines_of(lines or ""))
    return replace(CrawlSpec(), **parts), tuple(problems)


def files_in(plan: CrawlSpec) -> tuple[DefinitionProblem, ...]:
    """Return a problem for each file that a plan from another machine names."""
    text = "no file can be read here: leave it out, or use `orbweaver crawl` on one machine"
    named = {"ca_bundle": plan.ca_bundle, "client_cert": plan.client_cert}
    return tuple(DefinitionProblem(PATHS[part], text) for part, file in named.items() if file)


def check(
    plan: CrawlSpec, known: tuple[DefinitionProblem, ...] = (), now_ms: int | None = None
) -> tuple[DefinitionProblem, ...]:
    """Find problems in a plan's values, except in keys with a `known` problem.

    If `now_ms` is given, a schedule whose last time has passed is a problem.
    """
    paths = {problem.path for problem in known}
    sources = plan.seeds or plan.sitemap_urls or plan.apis
    if paths & {"", "seeds", SEEDS_FILE, "sitemaps", "api"} and not sources:
        paths.add("seeds")  # there are some that could not be read
    found = (
        DefinitionProblem(f"{PATHS.get(error.field, error.field)}{error.path}", error.problem)
        for error in problems_of(plan, now_ms)
    )
    return tuple(problem for problem in found if not _is_known(problem.path, paths))


def _is_known(path: str, known: set[str]) -> bool:
    return any(
        path == other or path.startswith(f"{other}.") or other.startswith(f"{path}.")
        for other in known
    )


def seeds_file_of(document: object) -> str | None:
    """Return the `seeds_file` of a document, `-` for the standard input. None: it has none."""
    name = document.get(SEEDS_FILE) if isinstance(document, Mapping) else None
    return name if isinstance(name, str) else None


def given_in(document: object) -> tuple[str, ...]:
    """List the paths of the known keys that a document sets."""
    if not isinstance(document, Mapping):
        return ()
    return tuple(path for path, _ in _leaves(document) if path in BY_PATH)


def lines_of(text: str) -> tuple[str, ...]:
    """Return the seeds of a text, one per line, without empty lines and comments (`#`)."""
    lines = (line.strip() for line in text.removeprefix("\ufeff").splitlines())
    return tuple(seed_of_line(line) for line in lines if line and not line.startswith("#"))


def document_of(plan: CrawlSpec) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for key in KEYS:
        value = getattr(plan, key.part) if key.part else None
        if value is not None:
            put_at(document, key.path, key.codec.write(value))
    return document


def put_at(document: dict[str, Any], path: str, value: Any) -> None:
    """Set the value of a key in a document, unless its parent is no table."""
    table, _, name = path.rpartition(".")
    if not table:
        document[name] = value
    elif isinstance(holder := document.get(table, {}), Mapping):
        document[table] = {**holder, name: value}


def _leaves(document: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield the path and value of each key. The value of an unknown key is a DefinitionProblem."""
    hints = iter(range(HINTS_MAX))
    for name, value in document.items():
        if name not in TABLES:
            known = name in BY_PATH and "." not in name
            yield (
                name,
                value
                if known
                else _unknown("", name, a_table=isinstance(value, Mapping), hints=hints),
            )
        elif not isinstance(value, Mapping):
            keys = _listed(name)
            text = f"{shown(value)} does not fit: it is a table, [{name}], of {keys}"
            yield name, DefinitionProblem(name, text)
        else:
            for inner, one in value.items():
                path = f"{name}.{inner}"
                yield (
                    path,
                    one if path in BY_PATH else _unknown(name, inner, a_table=False, hints=hints),
                )


def _unknown(table: str, name: str, *, a_table: bool, hints: Iterator[int]) -> DefinitionProblem:
    path = f"{table}.{plain(name)}" if table else plain(name)
    kind = "table" if a_table else "key"
    if next(hints, None) is None:
        return DefinitionProblem(path, f"there is no such {kind}")
    near = _near(table, name, a_table=a_table)
    if near is not None:
        hint = f"did you mean {near}?"
    elif a_table:
        hint = f"tables are {', '.join(TABLES)}"
    else:
        where = f"[{table}] has" if table else "outside of tables there are"
        hint = f"{where} {_listed(table)}"
    return DefinitionProblem(path, f"there is no such {kind}: {hint}")


def _near(table: str, name: str, *, a_table: bool) -> str | None:
    if a_table:
        tables = difflib.get_close_matches(name, TABLES, n=1)
        return f"[{tables[0]}]" if tables else None
    names = {key.rpartition(".")[2]: key for key in BY_PATH}
    if name in names:  # in another table
        return names[name]
    own = [key for key in BY_PATH if key.rpartition(".")[0] == table]
    words = {key.rpartition(".")[2]: key for key in own}
    for candidates, word in ((words, name), (names, name)):
        if found := difflib.get_close_matches(word[:SHOWN_CHARS_MAX].lower(), candidates, n=1):
            return candidates[found[0]]
    return None


def _listed(table: str) -> str:
    names = [path.rpartition(".") for path in BY_PATH]
    return ", ".join(name for holder, _, name in names if holder == table)
