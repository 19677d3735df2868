"""Check a folder or file: links to files on disk, then the status of all other URLs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from orbweaver.cli.check_links.context import CheckContext, StatusResults
from orbweaver.cli.check_links.folder import HTML, MARKDOWN, FilePage, Folder
from orbweaver.cli.check_links.links import Anchors, LinkIndex
from orbweaver.cli.check_links.report import Results
from orbweaver.cli.check_links.verdict import LinkState, Verdict
from orbweaver.cli.exit_codes import UsageError
from orbweaver.frontier.link_table import table_rows
from orbweaver.model.cuts import column_text
from orbweaver.model.url import canonicalize


def folder_of(subject: str, context: CheckContext) -> Folder:
    """Return the folder to check. Raises UsageError."""
    here = context.around.folder.resolve()
    path = (here / subject).resolve()
    if not path.exists():
        url = f"https://{subject.rpartition('://')[2].strip('/')}/"
        fix = f"give a file, a folder, or a whole URL, like {url}"
        raise UsageError(f"{subject}: no such file or folder: {fix}")
    base: str | None = context.arguments.base_url
    try:
        base = None if base is None else canonicalize(base)
    except ValueError as error:
        raise UsageError(f"--base-url: {base!r}: {error}: give a whole URL") from error
    is_folder, kinds = path.is_dir(), ", ".join(HTML + MARKDOWN)
    folder = Folder(
        root=path if is_folder else path.parent,
        here=here,
        base_url=base,
        only=None if is_folder else path,
    )
    if not folder.files():
        what = (
            "the folder has no HTML or Markdown file" if is_folder else "no HTML or Markdown file"
        )
        raise UsageError(f"{subject}: {what} ({kinds})")
    return folder


@dataclass(slots=True)
class FolderCheck:
    """A check of the files of a folder."""

    folder: Folder
    context: CheckContext
    _paths: dict[str, Path] = field(default_factory=dict)
    _lines: dict[str, dict[str, int]] = field(default_factory=dict)
    # Targets as their links spell them. None: the target is no file.
    _verdicts: dict[str, Verdict | None] = field(default_factory=dict)

    def check(self) -> Results:
        index = LinkIndex(excludes=self.context.excludes, one_spelling=self._one_spelling)
        anchors: dict[str, tuple[str, Anchors]] = {}
        for path in self.folder.files():
            page = self._page(path)
            self._paths[page.name] = path
            anchors[page.url] = page.name, self._add(index, page)
        results = Results(index=index)
        outside = self._judge(results)
        if not self.context.external:
            index.keep(results.verdicts.__contains__)
        elif outside:
            statuses = asyncio.run(self._statuses(outside))
            results.verdicts |= {url: statuses.verdict(url) for url in outside}
            results.earlier = statuses.earlier
        wanted = results.wanted_fragments()
        for url, (name, found) in anchors.items():
            results.add_anchors(name, url, found, wanted.get(url, ()))
        return results

    def _page(self, path: Path) -> FilePage:
        try:
            return self.folder.page(path)
        except OSError as error:
            raise UsageError(f"{self.folder.name_of(path)}: {error.strerror}") from error

    def _add(self, index: LinkIndex, found: FilePage) -> Anchors:
        index.add_page(column_text(found.page.cut))
        for row in () if found.page.rows is None else table_rows(found.page.rows):
            index.add(found.name, row)
        return Anchors(found.page.html)

    def _judge(self, results: Results) -> list[str]:
        """Judge links to files. Return all other targets."""
        outside: list[str] = []
        for target in results.index.targets():
            verdict = self._on_disk(target)
            if verdict is None:
                outside.append(target)
            else:
                results.verdicts[target] = verdict
        return outside

    def _on_disk(self, target: str) -> Verdict | None:
        if target not in self._verdicts:
            self._verdicts[target] = self._found(target)
        return self._verdicts[target]

    def _found(self, target: str) -> Verdict | None:
        path = self.folder.path_of(target)
        if path is None:
            return None
        there = self.folder.find(path, is_folder=target.partition("?")[0].endswith("/"))
        if isinstance(there, Path):
            return Verdict(state=LinkState.FINE, url=self.folder.url_of(there))
        # The slash separates the broken link `page.html/` from the existing file `page.html`.
        url = f"{self.folder.url_of(path)}/"
        return Verdict(state=LinkState.BROKEN, url=url, detail=there)

    def _one_spelling(self, target: str) -> str:
        """Return the same URL for all targets, with or without a fragment, that are one file."""
        url, mark, fragment = target.partition("#")
        verdict = self._on_disk(url)
        return target if verdict is None else f"{verdict.url}{mark}{fragment}"

    async def _statuses(self, urls: list[str]) -> StatusResults:
        async with self.context.session() as session:
            return await self.context.statuses(session, urls, is_local=False)

    def line(self, name: str, target: str) -> int:
        """Return the first line of a file that links to the target, or 1."""
        if name not in self._lines:
            lines = self._page(self._paths[name]).lines()
            self._lines[name] = dict(lines)
            for reference, first in lines.items():
                self._lines[name].setdefault(self._one_spelling(reference), first)
        return self._lines[name].get(target, 1)
