"""Groups of similar URLs (kinds): shapes of any text, their differences and number."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orbweaver.model import url_kind
from orbweaver.model.url_kind import (
    IDS_WITHIN,
    KINDS_MAX,
    NAME_CHARS_MAX,
    PARAMETERS_MAX,
    SIBLINGS_MAX,
    WORD_CHARS_MAX,
    Kinds,
    covers,
    folded,
    in_any_folder,
    kind_text,
    pattern_of,
    shape_of,
    with_open_id,
)
from orbweaver.model.url_patterns import PATTERN_CHARS_MAX, matches, problem_of

SITE = "https://example.com"
SEGMENTS = st.sampled_from(
    (
        *("", "wiki", "a", "Special:Log", "User%3ABob", "page-7", "42", "x9f3e1", "index.php"),
        *("the-orchard-and-the-sea", "caf%C3%A9", "v1.2", "~ann", "Talk:", "a.b.c", "tar.gz"),
        *("e.html", "+(x)"),
    )
)
VALUES = st.sampled_from(
    (
        *("", "=", "=edit", "=7", "=Special:Log", "=N", "=a+b", "=2024-01-02", "=x=y"),
        *("=deadbeef01", "=a;b"),
    )
)
NAMES = st.sampled_from(["title", "action", "p", "id2", "tag%5B%5D", "", "wsdl", "a:b", "7"])
PARAMETERS = st.builds(lambda name, value: name + value, NAMES, VALUES)


@st.composite
def urls(draw: st.DrawFn) -> str:
    path = "/".join(draw(st.lists(SEGMENTS, min_size=1, max_size=5)))
    between = draw(st.sampled_from("&;"))
    query = draw(st.none() | st.lists(PARAMETERS, max_size=PARAMETERS_MAX + 2).map(between.join))
    origin = draw(st.sampled_from([SITE, "http://127.0.0.1:4811"]))
    return f"{origin}/{path}" + ("" if query is None else f"?{query}")


@dataclass
class Met:
    """URLs of a group."""

    urls: list[str] = field(default_factory=list)

    def merge(self, other: Met) -> None:
        self.urls += other.urls

    @property
    def weight(self) -> int:
        return len(self.urls)


def kinds_of(
    met: list[str],
    kinds_max: int = KINDS_MAX,
    stands: Callable[[Met], bool] | None = None,
) -> Kinds[Met]:
    kinds = Kinds(Met, kinds_max, stands)
    for url in met:
        kinds.data_of(url).urls.append(url)
    return kinds


@given(st.text() | urls())
def test_any_text_has_shape_of_bounded_length(text: str) -> None:
    shape = shape_of(text)
    assert shape == shape_of(text)
    assert len(shape) <= 8 + PARAMETERS_MAX
    assert all(len(token) <= WORD_CHARS_MAX + 2 for token in (*shape[1:7], *shape[8:]))
    assert len(shape[7]) <= (PARAMETERS_MAX + 1) * (NAME_CHARS_MAX + 2)
    assert len(kind_text(shape)) <= len(shape[0]) + 21 * 5 + 2 * PARAMETERS_MAX * (
        WORD_CHARS_MAX + 4
    )


@given(urls(), urls())
def test_pattern_matches_urls_covered_by_shape(one: str, other: str) -> None:
    shape = shape_of(one)
    pattern = pattern_of(shape)
    assert problem_of(pattern) is None or len(pattern) > PATTERN_CHARS_MAX
    assert re.search(pattern, one)
    assert covers(shape, shape)
    assert bool(re.search(pattern, other)) == covers(shape, shape_of(other))
    for kept in range(3):
        wider = in_any_folder(shape, kept)
        assert covers(wider, shape)
        assert bool(re.search(pattern_of(wider), other)) == covers(wider, shape_of(other))


@pytest.mark.parametrize(
    ("path", "open_path"),
    [
        ("file/0b940c251a8e/docs/v1/a.md", "file/*/docs/v1/a.md"),
        ("user/42/posts", "user/*/posts"),
        ("2024/05/a-title", "*/05/a-title"),
        ("file/tip/a.md", None),
        ("wiki/Some_long_title_of_it/x", None),
        ("wiki/caf%C3%A9_und_mehr_davon/x", None),
        ("rev/0b940c251a8e", None),
        ("user/42/", None),
        ("a/" * IDS_WITHIN + "42/x", None),
    ],
)
def test_behind_id_opens_first_id_of_path(path: str, open_path: str | None) -> None:
    expected = open_path and f"{SITE}/{open_path}"
    assert with_open_id(f"{SITE}/{path}") == with_open_id(f"{SITE}/{path}?b=1") == expected


@given(st.text(max_size=60) | urls())
def test_behind_id_leaves_no_id_before_open_place(text: str) -> None:
    found = with_open_id(text)
    if found is not None:
        assert found.split("/")[:3] == text.partition("?")[0].split("/")[:3]
        assert "/*/" in found


def test_rare_words_become_wildcards() -> None:
    weights = {
        f"{SITE}/tree/docs/a?id=1x": 50,
        f"{SITE}/tree/infra/a?id=1x": 9,
        f"{SITE}/tree/tests/a?id=1x": 8,
        f"{SITE}/log/": 3,
        f"{SITE}/show?title=apple&action=edit": 40,
        f"{SITE}/show?title=pear&action=edit": 1,
    }
    places = folded({shape_of(url): weight for url, weight in weights.items()}, 10)
    assert [kind_text(places[shape_of(url)]).removeprefix(SITE) for url in weights] == [
        *("/tree/docs/a?id=*", "/tree/*/a?id=*", "/tree/*/a?id=*", "/log/"),
        *("/show?title=apple&action=edit", "/show?title=pear&action=edit"),
    ]
    assert folded({}, 1) == {}


@given(st.lists(st.tuples(urls(), st.integers(1, 30)), max_size=60), st.integers(0, 40))
def test_folded_shape_covers_original(met: list[tuple[str, int]], least: int) -> None:
    places = folded({shape_of(url): weight for url, weight in met}, least)
    assert all(re.search(pattern_of(places[shape_of(url)]), url) for url, _ in met)
    if least < 2:
        assert all(shape == now for shape, now in places.items())


FEW_WORDS = st.sampled_from(["aa", "bb", "cc", "dd", "x9f3e1"])
CROWDED = st.builds(
    lambda folders, query: f"{SITE}/{'/'.join(folders)}{query}",
    st.lists(FEW_WORDS, min_size=1, max_size=3),
    st.sampled_from(["", "?aa=1", "?bb=1", "?cc=1"]),
)


def check_order(met: list[str], seed: int) -> None:
    """Check that all URLs are in one kind that covers them, whatever their order."""
    shuffled = Random(seed).sample(met, len(met))
    found = {shape: sorted(of.urls) for shape, of in kinds_of(met).heaviest().items()}
    assert found == {shape: sorted(of.urls) for shape, of in kinds_of(shuffled).heaviest().items()}
    assert sorted(url for of in found.values() for url in of) == sorted(met)
    for shape, of in found.items():
        assert all(re.search(pattern_of(shape), url) for url in of)


@given(st.lists(urls(), max_size=150), st.integers())
def test_kinds_do_not_depend_on_order(met: list[str], seed: int) -> None:
    check_order(met, seed)


@settings(max_examples=300)
@given(st.lists(CROWDED, max_size=40), st.integers())
def test_kinds_with_nested_open_places_ignore_order(met: list[str], seed: int) -> None:
    with patch.object(url_kind, "SIBLINGS_MAX", 2):
        check_order(met, seed)


@given(st.lists(CROWDED, max_size=40), st.integers(1, 4))
def test_kept_queries_lose_no_url(met: list[str], least: int) -> None:
    """No URL counts twice when a folder becomes a wildcard later."""
    with patch.object(url_kind, "SIBLINGS_MAX", 1):
        found = kinds_of(met, stands=lambda known: known.weight >= least).heaviest()
    assert sorted(url for of in found.values() for url in of.urls) == sorted(met)
    for shape, of in found.items():
        assert all(re.search(pattern_of(shape), url) for url in of.urls)


def test_important_queries_are_kept_beyond_limit() -> None:
    words = [f"w{chr(97 + at)}" for at in range(SIBLINGS_MAX)]
    kinds = kinds_of(
        [f"{SITE}/pub/{name}.php?{query}" for name in "xy" for query in ("board=1", "board=2")]
        + [f"{SITE}/pub/x.php?{word}=1" for word in words],
        stands=lambda known: known.weight >= 2,
    )
    for word in words:
        kinds.data_of(f"{SITE}/{word}/y.php?z=1").urls.append("")
    for query in ("board=3", "wa=7", "never=1"):
        kinds.data_of(f"{SITE}/pub/x.php?{query}").urls.append("")
    found = {
        kind_text(shape).removeprefix(SITE): of.weight for shape, of in kinds.heaviest().items()
    }
    assert found == {
        "/*/x.php?board=0": 3,
        "/*/y.php?board=0": 2,
        "/*/x.php?*": SIBLINGS_MAX + 2,
        "/*/y.php?z=0": SIBLINGS_MAX,
    }


@pytest.mark.parametrize("seed", range(3))
def test_many_words_in_a_place_become_wildcard(seed: int) -> None:
    words = [f"w{chr(97 + at)}" for at in range(SIBLINGS_MAX + 1)]
    met = [
        f"https://{path.replace('…', word)}"
        for word in words
        for path in (
            *("a.example/wiki/…", "b.example/…/posts/x.html?page=2", "a.example/list?…=1"),
            *("a.example/files/a.…", "a.example/index.php?title=…&action=edit"),
            "a.example/index.php?title=…&action=history",
        )
    ]
    found = kinds_of(Random(seed).sample(met, len(met))).heaviest()
    assert {kind_text(shape): of.weight for shape, of in found.items()} == {
        f"https://{kind}": len(words)
        for kind in (
            *("a.example/wiki/*", "b.example/*/posts/x.html?page=0", "a.example/list?*"),
            *("a.example/files/*", "a.example/index.php?title=*&action=edit"),
            "a.example/index.php?title=*&action=history",
        )
    }


def test_many_hosts_become_wildcard() -> None:
    met = [f"https://{chr(97 + at)}.example/feed/" for at in range(SIBLINGS_MAX + 1)]
    (shape,) = kinds_of(met).heaviest()
    assert kind_text(shape) == "*/feed/"
    assert all(matches((pattern_of(shape),), url) for url in met)


def test_number_of_kinds_is_limited() -> None:
    letters = "abcdefghijklmn"
    tree = [f"{SITE}/{a}/{b}/{c}/x" for a in letters for b in letters for c in letters]
    kinds = kinds_of([*tree, *[f"{SITE}/often"] * 90])
    found = kinds.heaviest()
    assert KINDS_MAX // 50 < len(found) <= KINDS_MAX
    assert next(iter(found.values())).weight >= 90
    assert sum(of.weight for of in found.values()) == len(tree) + 90
    assert kinds.rest.weight == 0


def test_kinds_beyond_limit_are_counted_as_rest() -> None:
    paths = [
        "/".join(("7", "c%C3%A9")[number >> bit & 1] for bit in range(4)) for number in range(16)
    ]
    kinds = kinds_of([*[f"{SITE}/7/7/7/"] * 9, *(f"{SITE}/{path}" for path in paths)], 5)
    found = kinds.heaviest()
    assert len(found) == 5
    assert next(iter(found.values())).weight == 9
    assert kinds.rest.weight == 9 + 16 - sum(of.weight for of in found.values()) > 0


@pytest.mark.parametrize(
    ("urls_of_kind", "kind"),
    [
        # MediaWiki
        ("/index.php/Apple_pie_with_cream_and_more /index.php/The_42_things", "/index.php/*"),
        ("/index.php/Special:Log /index.php/Special:WhatLinksHere", "/index.php/Special:*"),
        ("/index.php?title=A_pear_pie&action=edit /index.php?title=Caf%C3%A9&action=edit",
         "/index.php?title=*&action=edit"),
        ("/index.php?title=Special:UserLogin&returnto=Main+Page",
         "/index.php?title=Special:*&returnto=*"),
        # cgit
        ("/cgit/web.git/diff/a/b.py?id=1f3a /cgit/web.git/diff/c/d/e.md?id=94c0aa",
         "/cgit/web.git/diff/**/*?id=*"),
        ("/cgit/web.git/log/?ofs=50 /cgit/web.git/log/?ofs=100", "/cgit/web.git/log/?ofs=0"),
        # Apache's index
        ("/doc/html/a/b/c/x.html /doc/html/a/b/c/d/index.html", "/doc/html/a/**/*.html"),
        ("/pub/?C=N;O=D /pub/?C=M;O=A", "/pub/?C=*;O=*"),
        # gitweb
        ("/?p=web.git;a=blob;f=a/x.py;h=3dfa /?p=web.git;a=blob;f=docs/the/guide.md;h=94c0aa",
         "/?p=web.git;a=blob;f=*;h=*"),
        # Shops.
        ("/products/red-shoe-of-wool-17.html /products/1001-nights-of-sleep.html",
         "/products/*.html"),
        ("/shop/list?color=red&page=2 /shop/list?color=red&page=31", "/shop/list?color=red&page=0"),
        # Forums.
        ("/viewtopic.php?f=2&t=34 /viewtopic.php?f=17&t=9", "/viewtopic.php?f=0&t=0"),
        ("/ucp.php?mode=login&sid=0a1b2c3d4e5f", "/ucp.php?mode=login&sid=*"),
        # Others.
        ("/2024/11/21/ /1999/1/1/", "/0/0/0/"),
        ("/?wsdl", "/?wsdl"),
        ("/x?", "/x?"),
        ("/a//b", "/a/*/b"),
        ("/s?1=1&2=2&3=3&4=4&5=5&6=6&7=7&8=8&9=9", "/s?0=0&0=0&0=0&0=0&0=0&0=0&0=0&0=0&…"),
    ],
)  # fmt: skip
def test_urls_of_one_kind_have_one_shape(urls_of_kind: str, kind: str) -> None:
    """Digits, ids, long words and escapes merge; short words and namespaces stay."""
    shapes = {shape_of(SITE + path) for path in urls_of_kind.split()}
    assert {kind_text(shape) for shape in shapes} == {f"{SITE}{kind}"}
    assert all(
        matches((pattern_of(shape),), SITE + path)
        for shape in shapes
        for path in urls_of_kind.split()
    )
