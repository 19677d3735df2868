"""Builds the documentation site into .local/site/html: `make site`.

The site shows the Markdown files of the repository that zensical.toml lists. They are copied with
their paths, so relative links between them work. Links to other files point at the address in
SOURCE, or become plain text without it. A warning of the build is an error.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LOCAL = ROOT / ".local" / "site"
PAGES = LOCAL / "pages"
HTML = LOCAL / "html"
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


def stage(source: str) -> None:
    """Copy the pages, and the files that they show or offer."""
    shutil.rmtree(PAGES, ignore_errors=True)
    pages = listed()
    for page in pages:
        text = (ROOT / page).read_text()
        copy = PAGES / page
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(relink(text, page, pages, source))
        targets = [*IMAGE.findall(text), *(found[1] for found in LINK.findall(text))]
        for target in targets:
            path = normpath(PurePosixPath(page).parent / target)
            if is_asset(path):
                (PAGES / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / path, PAGES / path)
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
