"""What a pack is coming to: which of the links to one URL counts."""

from __future__ import annotations

from itertools import permutations

import pytest

from orbweaver.frontier.pack_result import PackResult
from orbweaver.model.target import Target, TargetKind

URL = "https://example.com/a"
DEEP, SHALLOW = Target(url=URL, depth=3), Target(url=URL, depth=2)
SITEMAP = Target(url=URL, depth=4, kind=TargetKind.SITEMAP)


@pytest.mark.parametrize(
    ("links", "taken"), [((DEEP, SHALLOW), SHALLOW), ((DEEP, SHALLOW, SITEMAP), SITEMAP)]
)
def test_the_shallowest_link_to_a_url_counts(links: tuple[Target, ...], taken: Target) -> None:
    """Whichever page ends first, so that what lies within the depth is found; a sitemap is one."""
    for order in permutations(links):
        result = PackResult("crawl")
        for target in order:
            result.link(target)
        assert list(result.links) == [taken]


def test_a_link_may_be_known_too_deep() -> None:
    """It is judged again where it lies less deep."""
    result = PackResult("crawl")
    result.link(DEEP)
    assert result.links_to(URL)
    assert [result.links_to(URL, depth) for depth in (2, 3, 4)] == [False, True, True]
    assert not result.links_to(f"{URL}b", 3)
