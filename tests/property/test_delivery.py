"""Deliveries that are killed anywhere, with consecutive versions of an export.

Every manifest at the receiver is always true, and finally only the newest versions remain.
"""

from __future__ import annotations

import asyncio
import hashlib

from hypothesis import example, given
from hypothesis import strategies as st

from orbweaver.delivery.plan import LEDGERS
from orbweaver.exporting.manifest import PREFIX, decode_manifest, manifest_path
from tests.memory import Moment
from tests.unit.delivering import DAY, Stage, exported, order, taken

FOREVER_MS = 10**15
KILLS_MAX = 60

bodies = st.lists(st.sampled_from([b"a1", b"a2", b"b1", b"long one"]), max_size=3)
# A version of the day (both crawls), or of its single crawl.
versions = st.tuples(bodies, bodies, st.booleans())
kills = st.lists(st.integers(1, 14), max_size=6)


class Killed(Exception):
    """The container is killed."""


class Watched(Stage):
    """A deliverer that dies after a number of effects; its receiver is checked each time."""

    def __init__(self) -> None:
        super().__init__()
        self.left: int | None = None

    async def watch(self, _effect: str, _moment: Moment) -> None:
        """Check the receiver, and die if it is time."""
        true(self.shelf)
        if self.left is not None:
            self.left -= 1
            if self.left <= 0:
                raise Killed

    async def work(self, crawl: str | None, deaths: list[int]) -> None:
        """Deliver with several deaths, and then to the end."""
        for left in [*deaths, None]:
            self.left = left
            try:
                body = order(crawl=crawl) if crawl else order()
                assert await self.deliverer(self.watch).run(taken(body), FOREVER_MS) == ()
            except Killed:
                continue
            finally:
                self.left = None


def true(shelf: dict[str, bytes]) -> None:
    """Check that manifests are true of their files."""
    for name, body in shelf.items():
        if name.startswith("manifests/") and (manifest := decode_manifest(body)) is not None:
            for file in manifest.files:
                assert hashlib.sha256(shelf[file.path]).hexdigest() == file.sha256, name


@given(st.lists(st.tuples(versions, kills), min_size=1, max_size=4))
@example([(([b"a1"], [], False), []), (([b"a2"], [], True), [3]), (([b"a1"], [], False), [4])])
def test_manifests_are_true_after_every_effect(
    story: list[tuple[tuple[list[bytes], list[bytes], bool], list[int]]],
) -> None:
    stage = Watched()

    async def tell() -> None:
        for (ours, theirs, alone), deaths in story:
            parts = ("/c/", "/crawl=c") if alone else ("/c/", "/d/", "/crawl=")
            for key in [key for key in stage.world.files if any(one in key for one in parts)]:
                del stage.world.files[key]
            contents = {"c": ours} if alone else {"c": ours, "d": theirs}
            manifest = exported(stage.world.files, contents, crawl="c" if alone else None)
            await stage.work(manifest.crawl, deaths)
            true(stage.shelf)
            assert decode_manifest(stage.shelf[manifest.path]) == manifest
            there = {
                path
                for path in stage.shelf
                if path.startswith("pages/") and (not alone or "/c/" in path)
            }
            assert there == {file.path for file in manifest.files}

    asyncio.run(tell())
    known = {"manifests", "pages", LEDGERS.strip("/")}
    assert {path.partition("/")[0] for path in stage.shelf} <= known


@given(st.lists(st.tuples(bodies, kills), min_size=2, max_size=3))
def test_unfinished_version_leaves_no_files(
    story: list[tuple[list[bytes], list[int]]],
) -> None:
    stage = Watched()

    async def tell() -> None:
        for ours, deaths in story[:-1]:
            exported(stage.world.files, {"c": ours})
            for left in deaths[:1]:
                stage.left = left
                try:
                    await stage.deliverer(stage.watch).run(taken(), FOREVER_MS)
                except Killed:
                    continue
        stage.left = None
        manifest = exported(stage.world.files, {"c": story[-1][0]})
        await stage.work(None, story[-1][1])
        there = {path for path in stage.shelf if path.startswith("pages/")}
        assert there == {file.path for file in manifest.files}
        assert stage.world.files[PREFIX + manifest_path(DAY)] == stage.shelf[manifest_path(DAY)]

    asyncio.run(tell())
