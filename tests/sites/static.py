"""A directory of files as a site, for example a manual from a package.

Rules: `index.html` for a directory, a redirect from `/dir` to `/dir/`, the content type by file
name, otherwise 404. Paths are percent-decoded; a path that leaves the directory, also by a symbolic
link, is not found.

    python -m tests.sites.static DIRECTORY --port 8000
"""

from __future__ import annotations

import argparse
import mimetypes
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tests.sites.child import run
from tests.sites.server import AccessLog, Answer, Asked, background, listening

INDEX = "index.html"
CACHE_BYTES_MAX = 256 * 1024 * 1024  # Both manuals fit. Other files are read at each request.
# A table of this module, because the types of `mimetypes` differ between machines.
TYPES = mimetypes.MimeTypes(filenames=())
NOT_FOUND = Answer(status=404)  # An answer without a body; it is not cached.


class Static:
    """A directory's files, read once and cached."""

    def __init__(self, directory: Path) -> None:
        self.url = ""
        self.log = AccessLog()
        self._root = directory.resolve(strict=True)
        self._cache: dict[str, Answer] = {}
        self._cache_bytes = 0

    def answer(self, asked: Asked) -> Answer:
        if asked.method not in {"GET", "HEAD"}:
            return Answer(status=405, headers=(("Allow", "GET, HEAD"),))
        path = urlsplit("//" + asked.host + asked.target).path
        if path in self._cache:
            return self._cache[path]
        answer = self._read(path)
        if answer.body and self._cache_bytes + len(answer.body) <= CACHE_BYTES_MAX:
            self._cache[path] = answer
            self._cache_bytes += len(answer.body)
        return answer

    def _read(self, path: str) -> Answer:
        name = unquote(path).lstrip("/")
        if "\0" in name:
            return NOT_FOUND
        file = (self._root / name).resolve()
        if not file.is_relative_to(self._root):
            return NOT_FOUND
        if file.is_dir():
            if not path.endswith("/"):
                return Answer(status=301, headers=(("Location", path + "/"),))
            file /= INDEX
        elif path.endswith("/"):
            return NOT_FOUND
        if not file.is_file():
            return NOT_FOUND
        content_type = TYPES.guess_type(file.name)[0] or "application/octet-stream"
        return Answer(headers=(("Content-Type", content_type),), body=file.read_bytes())

    def reset(self) -> None: ...

    def documents(self) -> Mapping[str, Callable[[], object]]:
        return {}


def serve(directory: Path, port: int = 0) -> AbstractAsyncContextManager[Static]:
    return listening(Static(directory), port)


def serve_in_background(directory: Path, port: int = 0) -> AbstractContextManager[Static]:
    return background(Static(directory), port)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.sites.static")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    options = parser.parse_args()
    run(Static(options.directory), options.port)


if __name__ == "__main__":
    main()
