"""Pages whose tree takes quadratic time or memory. Only the child process parses them."""

from __future__ import annotations

import resource
from dataclasses import replace
from typing import Any

import pytest

from orbweaver.adapters.local.reader import BudgetReader, FunctionReader
from orbweaver.frontier.stored_content import Keeping
from orbweaver.model.item_rules import Field, ItemRule
from orbweaver.worker.page_reading import PageReading, ReadingJob, is_light
from tests.memory import ManualClock
from tests.unit.adapters.test_reader import HOST, LATER_MS, NOW_MS, job, own, read_within_cpu

HEADING = (ItemRule(name="x", match="/", fields=(Field(name="title", where="h1"),)),)
MEMORY_MB = 200


def many(text: str, number: int) -> bytes:
    return b"".join(text.replace("#", str(at)).encode() for at in range(number))


HOSTILE = [
    many("<div>", 20_000),
    many("<p><font x=#>", 8_000),
    many("<p><font x=#>", 1_000),
    many("<b x=#><table><td></b></table>", 8_000),
    many("<b x=#><object></b>", 8_000),
    b"<svg><style>" + many("<div>", 60_000),
    b"<svg><p>" + many("<path/>", 20_000),
    b"<svg><title>" + many("<div/>", 20_000),
    many("<li><ul>", 20_000),
    b"<p>" + many("<b x=#>", 200) + b"</p>" + many("<p>x</p>", 20_000),
    b"<select>" + many("<option>x", 20_000),
    b"</q>" + b"<b x='&amp;'>" * 3 + b"<b x=A>" + b"<p>x</p>" * 2_000,
    b"<a " + many("a# ", 100_000) + b">",
    b"<script " + many("a# ", 100_000) + b">x</script>",
    many("<body a#=1>", 10_000),
    many("<i></i>", 100_000),
    many("<svg>", 240) + many("</span>", 40_000),
    b"<" * 200_001,
    b"<svg><object><style>" + b"<div>" * 60_000,
    b"<math><annotation-xml><style>" + b"<div>" * 60_000,
    b"<table><tr><td>" + b"<svg><td></td>" * 25_000,
    b"<svg><style><title><style></style>" + b"<svg>" * 5_000,
    b"<svg><![CDATA[></svg><style>]]>" + b"<x>" * 5_000,
    b"<script><!--<script></script><style></script>" + b"<div>" * 5_000,
    b"<template><col><xmp></template>" + b"<div>" * 5_000,
    b"<frameset><style>" + b"<frameset>" * 5_000,
    b'<p a="b"=">' + b"<div>" * 5_000,
    many("<div><font x=#></div>", 5_000),
    b"<p><table></table><x-y></p>" * 5_000,
]


def asked(body: bytes) -> ReadingJob:
    return job(body, items=HEADING, keeping=Keeping(texts=True))


@pytest.mark.parametrize("body", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_tree_is_not_light(body: bytes) -> None:
    assert not is_light(asked(body))


@pytest.mark.long
@pytest.mark.parametrize("body", HOSTILE, ids=range(len(HOSTILE)))
async def test_hostile_tree_takes_bounded_cpu_and_memory(body: bytes) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = await read_within_cpu(asked(body))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert isinstance(found, PageReading)
    assert found.page is not None
    # The kernel reports the maximum of all children so far, and counts the memory of the forking
    # process, which other tests enlarge.
    own_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after.ru_maxrss <= max(MEMORY_MB * 1024, before.ru_maxrss, own_kb)


async def test_function_reader_page_over_budget_calls_no_function() -> None:
    """A function of the running program would parse the tree in this process."""
    called = list[str]()

    def title(_page: Any, url: str) -> None:
        called.append(url)

    others = BudgetReader(clock=ManualClock(NOW_MS))
    reader = FunctionReader(others, {"title": title})
    try:
        hostile = job(many("<p><font x=#>", 1_000), items=own("title"))
        found = await reader.read(hostile, HOST, LATER_MS)
        assert called == []
        assert isinstance(found, PageReading)
        assert (found.items, found.why) == (None, "reading its items: more than 160 MB")
    finally:
        others.close()


async def test_function_reader_large_page_passes_tree_to_function() -> None:
    others = BudgetReader(clock=ManualClock(NOW_MS))
    reader = FunctionReader(others, {"title": lambda page, _: {"title": len(page.tree.css("b"))}})
    try:
        large = job(b"<b>x</b>" * 2_000 + b"<a href=/c>", items=own("title"))
        found = await reader.read(large, HOST, LATER_MS)
        assert others.child_id is not None
        assert isinstance(found, PageReading)
        assert found.page is not None
        assert found.page.links == (f"{HOST}/c",)
        assert [item.fields for item in found.items or ()] == [{"title": "2000"}]
        redirect = replace(large, answer=replace(large.answer, headers={"refresh": "0; url=/d"}))
        assert (await reader.read(redirect, HOST, LATER_MS)) != found
    finally:
        others.close()
