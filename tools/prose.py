#!/usr/bin/env python3
"""Check the prose of docstrings, comments, docs, test names and the last commit subject.

Usage: prose.py                fail if a room has more hits per 1,000 words than its limit
       prose.py --write        lower the limits in tools/prose.json to today's figures
       prose.py --files FILE…  fail if a file has a hit that the last commit does not have
       prose.py ROOM           list the lines of a room that have a hit

A pattern is a hint at a sentence that is hard to read, not a ban. Peers have 2 to 5 hits.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
LISTED = ("git", "ls-files", "*.py", "*.md")
SHOW = ("git", "show")
LAST = ("git", "log", "-1", "--no-merges", "--format=%s")
LIMITS = ROOT / "tools/prose.json"
WORDS_MIN = 200  # the rate of a smaller room means little
RATE_MAX = 6.0  # for a room without a limit of its own
SHOWN = 20
SUBJECT = re.compile(r"(?=.{1,65}$)[a-z0-9][\w., /-]*: [a-z].*[^.]")
TEST = re.compile(r"def (test_\w+)")
NAMES = "test names"
RULES = {
    "name the subject": r"\b[Ww]hat (?:is|are|was|were|it|they|he|comes?|came|can|cannot|each)\b"
    r"|\b[Ww]hat (?:others?|of|has|have|no|one|an?|the|this|all|those|may|must|stands|lies)\b"
    r"|\b(?:[Ww]ho(?:so)?ever|[Ww]hom|[Ww]ho (?:is|are|has|looks|finds|asks|sends|may|wants))\b"
    r"|\b(?:that of|those of|those that|those which|the ones? that|one that|ones that)\b"
    r"|\b(?:[Nn]one of|None (?:is|are|for)|[Nn]obody|[Nn]o other|[Nn]othing (?:is|was|of))\b",
    "write must, may or can": r"\b(?:is|are|was|were) to [a-z]+\b|\b(?:comes?|came) to\b",
    "name the quantity": r"\bso (?:many|much|long|often|few)\b",
    "name the state": r"\b(?:stands?|stood|standing|lies?|lay)\b|\b(?:is|are|was|be) out\b(?! of)",
    "write a common word": r"\b(?:bears?|alike|likewise|besides?|nor|but for|by way of|for ever)\b",
    "components return or report": r"\b(?:says?|said|tells?|told|knows?)\b",
}
COMPILED = {rule: re.compile(pattern) for rule, pattern in RULES.items()}
ODD_NAME = re.compile(
    r"_(?:what|who|whoever|whom|that|those|none|nobody|nothing|stands|lies)_|_(?:as|of)_it_"
)
WORD = re.compile(r"[A-Za-z'-]+")
COMMENT = re.compile(r"(?:^|\s)# (?!noqa|type:|fmt:)([^\"']*)$")
NOT_PROSE = re.compile(r"```.*?```|`[^`]*`|(?<=\])\([^)]*\)", re.DOTALL)


class Text(NamedTuple):
    """A docstring, comment or page, and its place."""

    place: str
    words: str


def texts_of(source: str, name: str) -> Iterator[Text]:
    if name.endswith(".md"):
        yield Text(name, NOT_PROSE.sub(" ", source))
        return
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, kinds) and (words := ast.get_docstring(node)):
            yield Text(f"{name}:{node.body[0].lineno}", words)
    for number, line in enumerate(source.splitlines(), 1):
        if (comment := COMMENT.search(line)) is not None:
            yield Text(f"{name}:{number}", comment[1])


def room_of(name: str) -> str:
    """Return the room of a file: a package of the product, a test folder, or docs."""
    if name.endswith(".md"):
        return "docs"
    parts = name.split("/")
    depth = 3 if name.startswith("functions/orbweaver/") else 2 if parts[0] == "tests" else 1
    return "/".join(parts[: min(depth, len(parts) - 1)]) or "."


def rooms() -> dict[str, list[Text]]:
    """Read all tracked files, by room (see `room_of`)."""
    listed = subprocess.check_output(LISTED, cwd=ROOT, text=True)
    found: defaultdict[str, list[Text]] = defaultdict(list)
    for name in listed.split():
        if (path := ROOT / name).exists() and "vendor" not in name:
            found[room_of(name)] += texts_of(path.read_text(encoding="utf-8"), name)
    return found


def hits_of(text: Text) -> Iterator[str]:
    """Yield each hit as `place: rule: line`."""
    for rule, pattern in COMPILED.items():
        for hit in pattern.finditer(text.words):
            start = text.words.rfind("\n", 0, hit.start()) + 1
            yield f"{text.place}: {rule}: {text.words[start:].partition(chr(10))[0].strip()}"


def read() -> tuple[dict[str, list[str]], dict[str, float]]:
    """Return each room's hits, and its hits per 1,000 words. Test names are a room, too."""
    hits: dict[str, list[str]] = {}
    words: dict[str, int] = {}
    for room, texts in rooms().items():
        hits[room] = [hit for text in texts for hit in hits_of(text)]
        words[room] = sum(len(WORD.findall(text.words)) for text in texts)
    tests = sorted((ROOT / "tests").rglob("*.py"))
    names = [name for path in tests for name in TEST.findall(path.read_text(encoding="utf-8"))]
    hits[NAMES], words[NAMES] = list(filter(ODD_NAME.search, names)), len(names)
    measured = sorted(room for room in hits if words[room] > WORDS_MIN)
    return hits, {room: round(1000 * len(hits[room]) / words[room], 1) for room in measured}


def new_hits(name: str) -> list[str]:
    """Return the hits of a file whose line has no hit in the last commit."""
    now = texts_of((ROOT / name).read_text(encoding="utf-8"), name)
    shown = subprocess.run([*SHOW, f"HEAD:{name}"], cwd=ROOT, capture_output=True, check=False)
    before = texts_of(shown.stdout.decode(), name)  # empty for a new file
    known = {hit.partition(": ")[2] for text in before for hit in hits_of(text)}
    hits = [hit for text in now for hit in hits_of(text)]
    return [hit for hit in hits if hit.partition(": ")[2] not in known]


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--files"]:
        found = [hit for name in arguments[1:] for hit in new_hits(name)]
        print(*found, sep="\n", end="\n" if found else "")
        return 1 if found else 0
    hits, rates = read()
    limits = json.loads(LIMITS.read_text()) if LIMITS.exists() else {}
    if arguments[:1] == ["--write"]:
        lowered = {room: min(rate, limits.get(room, rate)) for room, rate in rates.items()}
        LIMITS.write_text(json.dumps(lowered, indent=2) + "\n")
        return 0
    if arguments:
        print("\n".join(hits[arguments[0]]))
        return 0
    over = [room for room, rate in rates.items() if rate > limits.get(room, RATE_MAX)]
    for room in over:
        print(f"{room}: {rates[room]} hits, {limits.get(room, RATE_MAX)} allowed; list all:")
        print(f"  tools/prose.py {room!r}", *hits[room][:SHOWN], sep="\n  ")
    subject = subprocess.check_output(LAST, cwd=ROOT, text=True).strip()
    odd = not SUBJECT.fullmatch(subject) or ";" in subject
    if odd:
        print("commit subject: write `room: imperative object`, at most 65 characters:", subject)
    return 1 if over or odd else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
