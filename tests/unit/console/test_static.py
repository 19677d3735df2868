"""Static files of the console: vendored files are unchanged, scripts are small, safe and typed."""

from __future__ import annotations

import gzip
import hashlib
import re
import subprocess
from pathlib import Path

import pytest

import orbweaver
from orbweaver.console.files import static_files
from tests.screens import BYTES_MAX, FOLDER, ROOT, THEMES, screens

STATIC = Path(orbweaver.__file__).parent / "console" / "static"
SCRIPTS = sorted(STATIC.glob("*.js"))
# Vendored files as their packages contain them. docs/console.md lists them.
VENDORED = {
    # htm 3.1.1, preact/standalone.module.js: htm, and Preact with its hooks
    "preact-htm.js": "72284e8e9079c87817145df1110f74e8a2aa040b2fc384922e18dfcb46fc1fd7",
    "htm.LICENSE": "740725f7252e750af735d0028cc534970772f513331e9f68150fede8fb3ce00f",
    "preact.LICENSE": "1fe6958409c8c257a70c587a18b6f7f412b179b456630790d30b2ec9a8e4b7d4",
}
SCRIPT_BYTES_MAX, STYLE_BYTES_MAX = 70 * 1024, 12 * 1024
SCRIPT_LINES_MAX = 200


def pressed(*paths: Path) -> int:
    """Return the total size of files in bytes, each compressed."""
    return sum(len(gzip.compress(path.read_bytes(), 9)) for path in paths)


def test_vendored_files_have_published_digests() -> None:
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (STATIC / "vendor").iterdir()
    }
    assert found == VENDORED
    page = (Path(__file__).parents[3] / "docs" / "console.md").read_text()
    assert VENDORED["preact-htm.js"] in page


def test_application_is_small_when_compressed() -> None:
    assert pressed(*SCRIPTS, *(STATIC / "vendor").glob("*.js")) <= SCRIPT_BYTES_MAX
    assert pressed(STATIC / "style.css") <= STYLE_BYTES_MAX
    long = {path.name for path in SCRIPTS if len(path.read_text().splitlines()) > SCRIPT_LINES_MAX}
    assert not long


def test_screenshots_of_docs_are_small_and_complete() -> None:
    names = {f"{screen}-{theme}" for screen in screens("", "", "", "") for theme in THEMES}
    found = {path.stem: path.stat().st_size for path in FOLDER.iterdir()}
    assert found.keys() == names
    assert max(found.values()) <= BYTES_MAX
    page = (ROOT / "docs" / "console.md").read_text()
    assert {
        f"console/{name}.webp" for name in names if f"console/{name}.webp)" not in page
    } == set()


def test_no_script_makes_elements_or_code_from_text() -> None:
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|srcdoc"
        r"|dangerouslySetInnerHTML|DOMParser|createContextualFragment|javascript:"
    )
    for path in SCRIPTS:
        assert not forbidden.search(path.read_text()), path.name
    page = (STATIC / "index.html").read_text()
    assert not re.search(r"<style|\son\w+=|style=|<script(?![^>]*\ssrc=)", page)


def test_urls_of_sites_are_never_links() -> None:
    for path in SCRIPTS:
        for target in re.findall(r"href=(\S+)", path.read_text()):
            assert target.startswith(('"#', '"/', "${`#/", "${link(")), (path.name, target)


def test_every_import_is_served_and_every_module_imported() -> None:
    named = {
        found
        for path in (*SCRIPTS, STATIC / "index.html")
        for found in re.findall(r"[\"'(](/[\w./-]+\.(?:js|css|svg))[\"')]", path.read_text())
    }
    assert named | {"/", "/index.html"} == set(static_files())


# --- types ----------------------------------------------------------------------------------------

PROJECT = Path(__file__).parents[2] / "console"
CHECKER = PROJECT / "node_modules" / ".bin" / "tsc"


@pytest.mark.skipif(not CHECKER.exists(), reason="`make setup` installs the type checker")
def test_scripts_pass_type_checker() -> None:
    done = subprocess.run(
        [CHECKER, "--project", PROJECT], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
