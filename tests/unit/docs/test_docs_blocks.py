"""Marks of the command blocks in README and docs."""

from __future__ import annotations

import re
from collections import Counter

from tests import docs


def test_every_block_is_run_or_has_reason() -> None:
    reasons = Counter(block.what for block in docs.ALL if block.kind == "needs")
    assert reasons == docs.REASONS
    assert {block.what for block in docs.ALL if block.kind == "starts"} == {docs.OWN}
    assert {block.what for block in docs.ALL if block.kind == "each"} == set(docs.STATES)
    assert sum(block.kind != "needs" for block in docs.ALL) >= 40


def test_every_shell_fence_is_read() -> None:
    for page in docs.PAGES:
        text = page.read_text()
        assert len(re.findall(r"^ *```(?:sh|console)$", text, re.MULTILINE)) == len(
            docs.blocks(page)
        ), page
        fences = re.findall(r"^ *```(\w*)\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
        for body in (body for kind, body in fences if not kind):
            assert not re.search(r"^\s*(make|python|aws|export) ", body, re.MULTILINE)


def test_marks_are_spelled_correctly() -> None:
    for page in docs.PAGES:
        marks = re.findall(r"<!--(.*?)-->\n *```", page.read_text())
        assert len(marks) == sum(block.kind is not None for block in docs.blocks(page)), page
