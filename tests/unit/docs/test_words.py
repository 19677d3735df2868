"""The glossary: one word a concept, in docs, docstrings and comments."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
GLOSSARY = ROOT / "docs/glossary.md"
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
# Blocks, code, remarks and targets of links stand for names, which are not prose.
FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
# Docstrings that OpenAPI shows as descriptions: public, so they stay as they are.
PUBLIC = {
    "functions/orbweaver/api/responses.py": "while somebody reads",
    "functions/orbweaver/diagnostics/host_status.py": "where the books have none",
}
NOT_PROSE = re.compile(r"``.*?``|`[^`\n]*`|<!--.*?-->|\]\([^)\n]*\)")


def rows_of(page: str) -> list[tuple[str, str, str]]:
    """Read the glossary's table: use, for, not."""
    rows = [line for line in page.splitlines() if line.startswith("| ")][1:]
    cells = [tuple(cell.strip() for cell in row[1:].removesuffix("|").split("|")) for row in rows]
    return [(use, meaning, banned) for use, meaning, banned in cells if use != "---"]


ROWS = rows_of(GLOSSARY.read_text())
WORD_OF = {phrase: use for use, _, banned in ROWS if banned for phrase in re.split(r",\s*", banned)}
BANNED = re.compile(
    rf"(?<![#\w-])({'|'.join(map(re.escape, WORD_OF))})(?:s|ed|ing|'s)?(?![\w-])", re.IGNORECASE
)


def faults_of(prose: str) -> list[str]:
    """Say of each banned word in a text where it stands, and which word the glossary has."""
    return [
        f"{place}: write {WORD_OF[phrase.lower()]!r} instead of {phrase!r} (docs/glossary.md)"
        for place, line in enumerate(prose.splitlines(), 1)
        for phrase in BANNED.findall(line)
    ]


def prose_of_page(page: str) -> str:
    """Blank what is not prose; lines keep their numbers."""
    blanked = FENCED.sub(lambda block: "\n" * block[0].count("\n"), page)
    return NOT_PROSE.sub("", blanked)


def prose_of_code(source: str) -> str:
    """Keep docstrings and comments alone; lines keep their numbers."""
    if not BANNED.search(source):  # most have no such word anywhere: reading tokens takes long
        return ""
    lines = source.splitlines()
    kept = [""] * len(lines)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            kept[token.start[0] - 1] = token.string
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                at = slice(node.lineno - 1, node.end_lineno)
                kept[at] = lines[at]
    return NOT_PROSE.sub("", "\n".join(kept))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_pages_use_the_glossary_s_words(path: Path) -> None:
    """A page of docs has none of the words that the glossary replaces."""
    page = path.read_text()
    if path == GLOSSARY:  # its last column is the list
        page = re.sub(r"\|[^|\n]*\|$", "|", page, flags=re.MULTILINE)
    assert faults_of(prose_of_page(page)) == []


def test_code_uses_the_glossary_s_words() -> None:
    """No docstring and no comment of the functions has a word that the glossary replaces."""
    found = {}
    for path in sorted((ROOT / "functions").rglob("*.py")):
        name, source = str(path.relative_to(ROOT)), path.read_text()
        if name in PUBLIC:
            assert source.count(PUBLIC[name]) == 1
            source = source.replace(PUBLIC[name], "")
        found[name] = faults_of(prose_of_code(source))
    assert {name: faults for name, faults in found.items() if faults} == {}


def test_every_banned_word_is_found() -> None:
    """Each word of the last column is refused as prose, with its endings, and taken as a name."""
    code = '"""Doc: {0}."""\n# Remark: {0}.\nname = "{0}"  # `{0}`\n'
    for phrase, use in WORD_OF.items():
        for form in (phrase, f"{phrase}s", phrase.capitalize()):
            faults = faults_of(prose_of_code(code.format(form)))
            assert [fault.partition(":")[0] for fault in faults] == ["1", "2"], phrase
            assert all(repr(use) in fault for fault in faults)
        assert faults_of(prose_of_page(f"`{phrase}`\n\n```sh\n{phrase}\n```\n")) == []


def test_the_glossary_is_a_list() -> None:
    """A word stands in one row, in the order of the alphabet, and is banned for one word only."""
    uses = [use.casefold() for use, _, _ in ROWS]
    banned = [phrase for _, _, cell in ROWS for phrase in re.split(r",\s*", cell) if phrase]
    assert uses == sorted(set(uses))
    assert len(banned) == len(WORD_OF)
    assert all(meaning for _, meaning, _ in ROWS)
    assert "(glossary.md)" in (ROOT / "docs/README.md").read_text()
