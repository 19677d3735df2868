"""Static files of the application."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


@cache
def static_files() -> Mapping[str, tuple[bytes, str]]:
    """Map each served path to its content and content type. All other paths return 404."""
    found: dict[str, tuple[bytes, str]] = {}
    root = files("orbweaver.console") / "static"
    for folder, prefix in ((root, "/"), (root / "vendor", "/vendor/")):
        for file in folder.iterdir():
            kind = TYPES.get(f".{file.name.rpartition('.')[2]}")
            if file.is_file() and kind is not None:
                found[prefix + file.name] = (file.read_bytes(), kind)
    found["/"] = found["/index.html"]
    return found
