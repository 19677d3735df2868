"""Examples of docs/python.md run, and cover the package."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import orbweaver
from tests.sites import graph

GUIDE = Path(__file__).parents[3] / "docs/python.md"


SITE = {
    "/": graph.page("Books", ["/dune", "/emma"]),
    "/dune": graph.page("Dune", text="Spice, worms and a desert planet."),
    "/emma": graph.page("Emma", text="Handsome, clever, and rich."),
}


@pytest.fixture
def site() -> Iterator[str]:
    with graph.serve_in_background(SITE) as served:
        yield served.url


def test_blocks_print_output_of_guide(site: str, tmp_path: Path) -> None:
    text = GUIDE.read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    known = {"site": site, "folder": tmp_path / "store"}
    typed = "\n".join(blocks)
    example = doctest.DocTestParser().get_doctest(typed, known, GUIDE.name, str(GUIDE), 0)
    said: list[str] = []
    ran = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF).run(example, out=said.append)
    assert ran.attempted == len(re.findall(r"^>>> ", text, re.MULTILINE)) > 10
    assert not ran.failed, "".join(said)


def test_every_public_function_has_an_example() -> None:
    text = GUIDE.read_text()
    for name in orbweaver.__all__:
        if not isinstance(getattr(orbweaver, name), type):
            assert f"orbweaver.{name}(" in text, name
