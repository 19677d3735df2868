"""Identifiers of the package use the standard terms."""

from __future__ import annotations

import re
import tokenize
from pathlib import Path

import orbweaver

PACKAGE = Path(orbweaver.__file__).parent
# Banned words, with the term of the glossary.
INSTEAD = {
    "purse purses treasury allowance allowances": "budget, reservation",
    "attendance attended": "shared clock",
    "draft drafts": "result",
    "settler": "applier",
    "advancer": "processor",
    "visitor": "pack fetcher",
    "concluder": "handler",
    "ingester": "seeder",
    "crowd crowds crowded": "others, busy",
    "tally tallies": "counts",
    "books": "counters",
    "desk bench": "workspace",
    "mender mend": "repairer, repair",
    "sealer": "finalizer",
    "fate fates": "URL status",
    "meant": "scope",
    "tame wild": "safe, unsafe",
    "survey": "preview",
    "sweep sweeper blot blotter restate restater": "erase, eraser",
}
BANNED = {word: better for words, better in INSTEAD.items() for word in words.split()}
# Field names in answers of the API.
PUBLIC = {("api/responses.py", "fate")}


def words_of(identifier: str) -> list[str]:
    """Return the lower-case words of a name, split at underscores and capitals."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", identifier)]


def test_names_are_split_into_words() -> None:
    assert words_of("_MemoryPurses") == ["memory", "purses"]
    assert words_of("PURSES_MAX2") == ["purses", "max"]
    assert words_of("HTTPTally") == ["http", "tally"]


def test_identifiers_use_standard_terms() -> None:
    found: set[str] = set()
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        with tokenize.open(path) as file:
            names = {
                token.string
                for token in tokenize.generate_tokens(file.readline)
                if token.type == tokenize.NAME
            }
        for name in names | {path.stem}:
            found |= {
                f"{place}: {name}: say {BANNED[word]}"
                for word in words_of(name)
                if word in BANNED and (place, name) not in PUBLIC
            }
    assert not sorted(found)
