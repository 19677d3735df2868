"""The files of the application: unchanged where they are others', small, and without inner HTML."""

from __future__ import annotations

import gzip
import hashlib
import re
from pathlib import Path

import orbweaver
from orbweaver.console.files import static_files
from tests.screens import BYTES_MAX, FOLDER, ROOT, THEMES, screens

STATIC = Path(orbweaver.__file__).parent / "console" / "static"
SCRIPTS = sorted(STATIC.glob("*.js"))
# Files of others, as their packages have them; docs/console.md names these.
VENDORED = {
    # htm 3.1.1, preact/standalone.module.js: htm, and Preact with its hooks
    "preact-htm.js": "72284e8e9079c87817145df1110f74e8a2aa040b2fc384922e18dfcb46fc1fd7",
    "htm.LICENSE": "740725f7252e750af735d0028cc534970772f513331e9f68150fede8fb3ce00f",
    "preact.LICENSE": "1fe6958409c8c257a70c587a18b6f7f412b179b456630790d30b2ec9a8e4b7d4",
}
SCRIPT_BYTES_MAX, STYLE_BYTES_MAX = 66 * 1024, 12 * 1024
SCRIPT_LINES_MAX = 200


def pressed(*paths: Path) -> int:
    """Say how many bytes files have, each compressed."""
    return sum(len(gzip.compress(path.read_bytes(), 9)) for path in paths)


def test_files_of_others_are_as_they_were_published() -> None:
    """By their digests, and no further file; the page of docs names version and digest."""
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (STATIC / "vendor").iterdir()
    }
    assert found == VENDORED
    page = (Path(__file__).parents[3] / "docs" / "console.md").read_text()
    assert VENDORED["preact-htm.js"] in page


def test_the_application_is_small() -> None:
    """All scripts, those of others too, and the stylesheet, as a server would compress them."""
    assert pressed(*SCRIPTS, *(STATIC / "vendor").glob("*.js")) <= SCRIPT_BYTES_MAX
    assert pressed(STATIC / "style.css") <= STYLE_BYTES_MAX
    long = {path.name for path in SCRIPTS if len(path.read_text().splitlines()) > SCRIPT_LINES_MAX}
    assert not long


def test_pictures_of_docs_are_small_and_of_every_screen_in_both_themes() -> None:
    """As `python -m tests.screens` makes them."""
    names = {f"{screen}-{theme}" for screen in screens("", "", "", "") for theme in THEMES}
    found = {path.stem: path.stat().st_size for path in FOLDER.iterdir()}
    assert found.keys() == names
    assert max(found.values()) <= BYTES_MAX
    page = (ROOT / "docs" / "console.md").read_text()
    assert {
        f"console/{name}.webp" for name in names if f"console/{name}.webp)" not in page
    } == set()


def test_nothing_makes_elements_of_texts() -> None:
    """No script of ours names what would, nor what runs a text; no style or handler is inline."""
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|srcdoc"
        r"|dangerouslySetInnerHTML|DOMParser|createContextualFragment|javascript:"
    )
    for path in SCRIPTS:
        assert not forbidden.search(path.read_text()), path.name
    page = (STATIC / "index.html").read_text()
    assert not re.search(r"<style|\son\w+=|style=|<script(?![^>]*\ssrc=)", page)


def test_addresses_of_sites_are_never_links() -> None:
    """Every link is made by the console; a site's URL leads to its explanation."""
    for path in SCRIPTS:
        for target in re.findall(r"href=(\S+)", path.read_text()):
            ours = ('"#', '"/', "${`#/", "${link(")
            assert target.startswith(ours), (path.name, target)


def test_every_import_is_a_file_that_is_served() -> None:
    """A module that is named is there, and every module is named."""
    named = {
        found
        for path in (*SCRIPTS, STATIC / "index.html")
        for found in re.findall(r"[\"'(](/[\w./-]+\.(?:js|css|svg))[\"')]", path.read_text())
    }
    assert named | {"/", "/index.html"} == set(static_files())
