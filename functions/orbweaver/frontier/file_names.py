"""URLs that name an archive, a package or a disk image, and so are never pages.

Endings of images, films, PDFs and documents are not included, because wikis and galleries have
pages about files with such URLs. Sources: the registry of media types (IANA), and Python's
`mimetypes`.
"""

from __future__ import annotations

_ARCHIVES = "7z bz2 cab gz lz lz4 lzma rar tar tbz tbz2 tgz txz xz zip zst"
_PACKAGES = "apk deb ipa jar msi nupkg rpm war whl xpi"
_IMAGES = "dmg iso ova qcow2 vmdk"
ENDINGS = frozenset(f"{_ARCHIVES} {_PACKAGES} {_IMAGES}".split())
_ENDING_CHARS_MAX = max(map(len, ENDINGS))
# Compressed HTML (`page.html.gz`), which some servers send decoded.
_PAGES = frozenset({"htm", "html", "shtml", "xht", "xhtml"})
_SCRIPT_ENDINGS = "asp aspx cgi dll exe fcgi jsp lua php pl py rb"
# Folders below which repository browsers and wikis show files (`/repo/tree/set.zip`).
_SHOWING_WORDS = (
    "+ annotate attachment attachments blame blob browse browser commit commits details diff edit"
    " entry file finfo history item log show src tree view viewvc wiki"
)
_SCRIPTS = frozenset(_SCRIPT_ENDINGS.split())
_SHOWING = frozenset(_SHOWING_WORDS.split())


def names_file(url: str) -> bool:
    """Return True if the path of a canonical URL ends in a file name that is never a page."""
    stem, _, ending = url.rpartition(".")
    if len(ending) > _ENDING_CHARS_MAX or ending.lower() not in ENDINGS or "?" in stem:
        return False
    folders = stem.lower().split("/")[3:]
    if not folders:  # the name is a host's
        return False
    name = folders.pop()
    # Wikis have pages like `/wiki/File:Set.zip`.
    if ":" in name or "%3a" in name or name.rpartition(".")[2] in _PAGES:
        return False
    return not any(
        folder in _SHOWING or folder.rpartition(".")[2] in _SCRIPTS for folder in folders
    )
