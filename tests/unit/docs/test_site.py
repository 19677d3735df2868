"""The documentation site: its navigation, and links of all pages."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import orbweaver
from orbweaver.cli.commands import MODULES

ROOT = Path(__file__).parents[3]
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def load() -> ModuleType:
    """Import the tool, which is outside the packages."""
    spec = importlib.util.spec_from_file_location("website", ROOT / "tools" / "website.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WEBSITE = load()
LISTED: list[str] = WEBSITE.listed()
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        ROOT / "changes/README.md",
        ROOT / "localstack/README.md",
    ]
)


@cache
def anchors(path: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    found: Counter[str] = Counter()
    for heading in HEADING.findall(WEBSITE.FENCE.sub("", path.read_text())):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        found[slug] += 1
    return {f"{slug}-{n}" if n else slug for slug, times in found.items() for n in range(times)}


def test_navigation_contains_every_page_once() -> None:
    assert sorted(LISTED) == sorted([*PAGES, *WEBSITE.GENERATED])


@pytest.mark.thorough
def test_options_page_shows_help_of_every_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    page = WEBSITE.commands_page()
    for command in MODULES:
        assert f"\n## {command}\n\n```text\nusage: orbweaver {command} " in page
    assert "\n## dlq list\n" in page
    assert "--max-pages N" in page


def test_python_page_shows_signature_of_every_name() -> None:
    page = WEBSITE.python_page()
    for name in orbweaver.__all__:
        assert f"\n## {name}\n\n```python\n{name}(" in page
    assert "canonicalize(reference: str, base: str | None = None) -> str" in page
    assert "\n### AsyncClient.start\n" in page


def test_navigation_titles_of_decisions_are_their_headings() -> None:
    text = (ROOT / "zensical.toml").read_text()
    for page in (page for page in PAGES if page.startswith("docs/adr/")):
        heading = HEADING.findall((ROOT / page).read_text())[0].replace("`", "")
        assert f'{{ "{heading}" = "{page}" }}' in text


@pytest.mark.parametrize("page", PAGES)
def test_relative_links_and_anchors_resolve(page: str) -> None:
    path = ROOT / page
    for target in LINK.findall(WEBSITE.FENCE.sub("", path.read_text())):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        name, _, anchor = target.partition("#")
        linked = (path.parent / name).resolve() if name else path
        assert linked.exists(), target
        assert linked.is_relative_to(ROOT), target
        if anchor:
            assert anchor in anchors(linked), target


@pytest.mark.parametrize("page", PAGES)
def test_nested_blocks_are_indented_for_both_renderers(page: str) -> None:
    """GitHub accepts two spaces, the site needs four."""
    text = WEBSITE.FENCE.sub("", (ROOT / page).read_text())
    assert not re.findall(r"^ {1,3}(?:[-*] |[|]|\d+\. ).*", text, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_page_begins_with_its_only_title_and_a_sentence(page: str) -> None:
    """The first sentence states the purpose of the page."""
    text = WEBSITE.FENCE.sub("```", (ROOT / page).read_text())
    assert re.match(r"# .*\n\n(?:[A-Z*`\[])(?!``)", text)
    assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1


@pytest.mark.parametrize(
    ("link", "source", "expected"),
    [
        ("[cost](cost.md#idle)", "", "[cost](cost.md#idle)"),
        ("[of it](../README.md)", "", "[of it](../README.md)"),
        ("[adr](adr)", "", "[adr](../docs/adr/1.md)"),
        ("[a picture](scale/a.svg)", "", "[a picture](scale/a.svg)"),
        ("[a site](https://example.com/a)", "", "[a site](https://example.com/a)"),
        ("[below](#idle)", "", "[below](#idle)"),
        ("[url.py](../model/url.py)", "", "url.py"),
        ("[url.py](../model/url.py)", "https://s/main", "[url.py](https://s/main/model/url.py)"),
        ("[url.py](../url.py#L3)", "https://s/main/", "[url.py](https://s/main/url.py#L3)"),
        ("```\n[url.py](../url.py)\n```", "", "```\n[url.py](../url.py)\n```"),
    ],
)
def test_link_leads_to_page_or_source(link: str, source: str, expected: str) -> None:
    pages = ["README.md", "docs/cost.md", "docs/adr/1.md"]
    assert WEBSITE.relink(link, "docs/yield.md", pages, source) == expected
