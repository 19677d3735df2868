"""Builds the documentation site into .local/site/html: `make site`.

The site shows the Markdown files of the repository that zensical.toml lists. They are copied with
their paths, so relative links between them work. Links to other files point at the address in
SOURCE, or become plain text without it. Two pages are written from the code (`GENERATED`), and are
in no folder of the repository. A warning of the build is an error.
"""

from __future__ import annotations

import argparse
import inspect
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any

import orbweaver
from orbweaver.cli.arguments import parsers
from orbweaver.cli.commands import MODULES

ROOT = Path(__file__).resolve().parent.parent
LOCAL = ROOT / ".local" / "site"
PAGES = LOCAL / "pages"
HTML = LOCAL / "html"
LINE_MAX = 88
# Assets of pages, in the folder of the pages that show or offer them.
ASSETS = {".webp", ".svg", ".ipynb", ".json"}
FENCE = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])+)\]\(([^)\s#]+)(#[^)\s]*)?\)")
IMAGE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")


def entries(nav: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the paths of a navigation in its order."""
    for entry in nav:
        for target in entry.values():
            if isinstance(target, str):
                yield target
            else:
                yield from entries(target)


def listed() -> list[str]:
    """Return the pages in zensical.toml."""
    project = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
    return list(entries(project["nav"]))


def relink(text: str, page: str, pages: list[str], source: str) -> str:
    """Return a page whose links lead to pages and assets of the site, or to `source`."""
    folder = PurePosixPath(page).parent

    def replaced(found: re.Match[str]) -> str:
        label, target, anchor = found[1], found[2], found[3] or ""
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        path = normpath(folder / target)
        if path in pages or is_asset(path):
            return found[0]
        first = next((one for one in pages if one.startswith(f"{path}/")), None)
        if first is not None:
            up = "../" * len(folder.parts)
            return f"[{label}]({up}{first})"
        return f"[{label}]({source.rstrip('/')}/{path}{anchor})" if source else label

    parts = FENCE.split(text)
    return "".join(part if n % 2 else LINK.sub(replaced, part) for n, part in enumerate(parts))


def is_asset(path: str) -> bool:
    return path.startswith("docs/") and PurePosixPath(path).suffix in ASSETS


def commands_page() -> str:
    """Return the help of every command."""
    os.environ["COLUMNS"] = "100"  # the width of argparse's help
    lines = [
        "# Options of all commands",
        "",
        "Use this page to search the options of all commands. It shows their `--help`, written",
        "from the code. [Commands](commands.md) shows what to use them for.",
    ]
    for command in MODULES:
        for name, parser in parsers(command).items():
            lines += ["", f"## {name}", "", "```text", parser.format_help().strip(), "```"]
    return "\n".join(lines) + "\n"


class _Plain(str):
    """An annotation that a signature shows without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def signature(name: str, function: Any) -> str:
    """Return a call with its parameters, one a line if there are many."""
    found = inspect.signature(function)
    kept = [
        parameter.replace(annotation=_Plain(parameter.annotation))
        if isinstance(parameter.annotation, str)
        else parameter
        for parameter in found.parameters.values()
        if parameter.name != "self" and not parameter.name.startswith("_")
    ]
    returned = found.return_annotation
    result = _Plain(returned) if isinstance(returned, str) else inspect.Signature.empty
    result = inspect.Signature.empty if result == "None" else result
    whole = f"{name}{found.replace(parameters=kept, return_annotation=result)}"
    if len(whole) <= LINE_MAX:
        return whole
    inside = [str(parameter) for parameter in kept]
    named = next((n for n, one in enumerate(kept) if one.kind is one.KEYWORD_ONLY), None)
    if named is not None:
        inside.insert(named, "*")
    arrow = "" if result is inspect.Signature.empty else f" -> {result}"
    return "\n".join([f"{name}(", *(f"    {one}," for one in inside), f"){arrow}"])


def python_page() -> str:
    """Return names, signatures and docstrings of the package."""
    lines = [
        "# Names in `import orbweaver`",
        "",
        "Use this page to look up a signature. It is written from the code.",
        "[Python](python.md) has examples of all functions.",
    ]
    for name in orbweaver.__all__:
        one = getattr(orbweaver, name)
        lines += ["", f"## {name}", "", "```python", signature(name, one), "```", ""]
        lines += [inspect.getdoc(one) or ""]
        if not inspect.isclass(one):
            continue
        for member, value in inspect.getmembers(one):
            if member.startswith("_") or not (said := _docstring(value)):
                continue
            call = signature(member, value) if inspect.isfunction(value) else member
            lines += ["", f"### {name}.{member}", "", "```python", call, "```", "", said]
    return "\n".join(lines) + "\n"


def _docstring(value: Any) -> str:
    """Return the docstring of a method or property, and an empty string for other values."""
    is_documented = inspect.isfunction(value) or isinstance(value, property)
    return (inspect.getdoc(value) or "") if is_documented else ""


# Pages that are written from the code.
GENERATED = {"docs/options.md": commands_page, "docs/python-names.md": python_page}


def stage(source: str) -> None:
    """Write the pages, and copy the files that they show or offer."""
    shutil.rmtree(PAGES, ignore_errors=True)
    pages = listed()
    for page in pages:
        text = GENERATED[page]() if page in GENERATED else (ROOT / page).read_text()
        copy = PAGES / page
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(relink(text, page, pages, source))
        prose = FENCE.sub("", text)
        targets = [*IMAGE.findall(prose), *(found[1] for found in LINK.findall(prose))]
        for target in targets:
            path = normpath(PurePosixPath(page).parent / target)
            if is_asset(path):
                (PAGES / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / path, PAGES / path)
            elif ":" not in target and path not in GENERATED and not (ROOT / path).exists():
                raise SystemExit(f"{page}: {target} does not exist")
    assets = PAGES / "assets"
    assets.mkdir()
    shutil.copyfile(ROOT / "tools" / "website" / "website.css", assets / "website.css")
    shutil.copyfile(LOCAL / "mermaid" / "mermaid.min.js", assets / "mermaid.min.js")


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument(
        "--source", default="", help="address of the source tree, for links to files"
    )
    arguments = parser.parse_args()
    stage(arguments.source)
    zensical = LOCAL / "python" / "bin" / "zensical"
    done = subprocess.run([zensical, "build", "--strict", "--clean"], cwd=ROOT, check=False)
    if done.returncode != 0:
        return 1
    print(f"{HTML.relative_to(ROOT)}: serve it with")
    print(f"  python3 -m http.server --bind 127.0.0.1 --directory {HTML.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
