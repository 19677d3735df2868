"""Plans (parsed definitions), and the crawls they become."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orbweaver.control import spec_checks
from orbweaver.control.crawl_spec import CrawlSpec, PlanError
from orbweaver.control.spec_checks import SEEDS_MAX, crawl_of, name_of, problems_of
from orbweaver.model import crawl_codec
from orbweaver.model.crawl import DAY_S
from orbweaver.model.crawl_settings import WEEK_S, Bodies, Scope
from orbweaver.model.url import canonicalize

NOW_MS = 1_795_251_600_000  # 2026-11-21 09:00:00 UTC
SEED = "https://example.com/"


DEFAULTS = {
    "id": "example.com-20261121-090000",
    "name": "example.com",
    "started_at_ms": NOW_MS,
    "seeds": (SEED,),
    "seeds_planned": 1,
    "scope": Scope.HOST,
    "depth_max": 20,
    "pages_max": 1_000_000,
    "shards": 16,
    "delay_ms": 1_000,
    "concurrency": 1,
    "obey_robots": True,
    "express": False,
    "window_s": WEEK_S,
    "canonical_only": False,
    "noindex_skipped": False,
    "tracking": None,
}
WISHES = {"canonical_only": True, "noindex_skipped": True}
USUAL = {"strip_parameters": ("utm_*", "GCLID")}
ALIKE = ("HTTPS://Example.com/b#x", "https://example.com:443/b", "https://a.org")


def urls(number: int) -> tuple[str, ...]:
    return tuple(f"https://example.com/{place}" for place in range(number))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, DEFAULTS),
        (USUAL, {"tracking": None}),
        ({"seeds": ALIKE}, {"seeds": ("https://example.com/b", "https://a.org/")}),
        # The number of messages with seeds is known before they are sent.
        ({"seeds": urls(100)}, {"seeds_planned": 1}),
        ({"seeds": urls(101)}, {"seeds_planned": 2}),
        ({"seeds": urls(250)}, {"seeds_planned": 3}),
        (WISHES, WISHES),
        ({"pages_max": 7}, {"pages_max": 7, "shards": 1}),
        ({"pages_max": 1_000_000}, {"pages_max": 1_000_000, "shards": 1}),
        ({"delay_ms": 0}, {"delay_ms": 0, "concurrency": 16}),
        ({"delay_ms": 0, "concurrency": 3}, {"concurrency": 3}),
        ({"delay_ms": 5, "concurrency": 4}, {"concurrency": 4}),
        ({"window_s": 0}, {"window_s": 0}),
        ({"name": "shop"}, {"name": "shop", "id": "shop-20261121-090000"}),
        ({"id": "run-1"}, {"name": "example.com", "id": "run-1"}),
        ({"scope": Scope.ANY, "depth_max": 0}, {"scope": Scope.ANY, "depth_max": 0}),
        ({"express": True, "obey_robots": False}, {"express": True, "obey_robots": False}),
    ],
)
def test_options_of_plan_reach_crawl(changes: dict[str, Any], expected: dict[str, Any]) -> None:
    crawl = crawl_of(replace(CrawlSpec(seeds=(SEED,)), **changes), NOW_MS)
    assert {key: getattr(crawl, key) for key in expected} == expected


@pytest.mark.parametrize(
    ("strip", "keep", "seed"),
    [
        ((), False, "https://example.com/?ref=2&My_x=3"),
        (("REF",), False, "https://example.com/?My_x=3"),
        (("my_*",), False, "https://example.com/?ref=2"),
        (("*",), False, "https://example.com/"),
        ((), True, "https://example.com/?utm_id=1&ref=2&My_x=3"),
        (("ref",), True, "https://example.com/?utm_id=1&My_x=3"),
    ],
)
def test_plan_strips_chosen_parameters_from_all_urls(
    strip: tuple[str, ...], seed: str, *, keep: bool
) -> None:
    given = ("https://example.com/?utm_id=1&ref=2&My_x=3",)
    crawl = crawl_of(CrawlSpec(seeds=given, strip_parameters=strip, keep_parameters=keep), NOW_MS)
    assert crawl.seeds == (seed,)
    assert canonicalize(given[0], tracking=crawl.removed_parameters) == seed


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"seeds": ()}, "seeds", "at least one URL"),
        ({"seeds": ("example.com",)}, "seeds", "did you mean https://example.com/?"),
        ({"seeds": ("example.com/a?b",)}, "seeds", "did you mean https://example.com/a?b?"),
        ({"seeds": ("localhost:8000/x",)}, "seeds", "did you mean http://localhost:8000/x?"),
        ({"seeds": ("127.0.0.1:80",)}, "seeds", "did you mean http://127.0.0.1/?"),
        ({"seeds": ("http://[::1]:99999/a",)}, "seeds", "a port is a number from 1 to 65535"),
        ({"seeds": ("http://a.test:8o80",)}, "seeds", "a port is a number from 1 to 65535"),
        ({"seeds": ("[::1]:8000",)}, "seeds", "did you mean http://[::1]:8000/?"),
        ({"seeds": ("htps://example.com",)}, "seeds", "did you mean https://example.com/?"),
        ({"seeds": ("htp://[/",)}, "seeds", "'htp://[/' cannot be crawled"),
        ({"seeds": ("ftp://example.com",)}, "seeds", "'ftp://example.com' cannot be crawled"),
        ({"seeds": ("mailto:a@example.com",)}, "seeds", "cannot be crawled"),
        ({"seeds": (SEED, "books")}, "seeds", "'books' cannot be crawled"),
        ({"seeds": ("https://me:secret@example.com/",)}, "seeds", "names a user, who is not sent"),
        ({"sitemap_urls": ("http://me@example.com/",)}, "sitemap_urls", "identity.headers"),
        ({"seeds": ("exa mple.com",)}, "seeds", "'exa mple.com' cannot be crawled"),
        ({"seeds": (SEED,) * (SEEDS_MAX + 1)}, "seeds", "200,001 seeds are too many"),
        ({"name": ""}, "name", "does not fit"),
        ({"name": "Weavers Shop!"}, "name", "weavers-shop would do"),
        ({"name": "x" * 81}, "name", "1 to 80"),
        ({"name": "default"}, "name", "crawl of bare URLs"),
        ({"name": "."}, "name", "a letter or digit first"),
        ({"name": ".."}, "name", "a letter or digit first"),
        ({"name": "_x"}, "name", "; x would do"),
        ({"id": ".."}, "id", "'..' is not a crawl's id"),
        ({"id": "f" * 32}, "id", "put a word before it"),
        ({"id": "a b"}, "id", "'a b' is not a crawl's id"),
        ({"id": "default"}, "id", "not a crawl's id"),
        ({"depth_max": -1}, "depth_max", "give 0 to 1,000"),
        ({"pages_max": 0}, "pages_max", "give 1 to 100,000,000"),
        ({"delay_ms": 90_000_000}, "delay_ms", "give 0s to 1d"),
        ({"concurrency": 65}, "concurrency", "give 1 to 64"),
        ({"window_s": 400 * DAY_S}, "window_s", "give 0s to 366d"),
        ({"strip_parameters": ("a=b",)}, "strip_parameters", "'a=b' is not a parameter's name"),
        ({"sitemap_urls": ("s.xml",)}, "sitemap_urls", "'s.xml' cannot be crawled: not an"),
        ({"strip_parameters": ("",)}, "strip_parameters", "like ref or my_*"),
        ({"strip_parameters": ("*a",)}, "strip_parameters", "'*a' is not"),
        ({"strip_parameters": ("é",)}, "strip_parameters", "as URLs spell it"),
        ({"strip_parameters": ("x" * 65,)}, "strip_parameters", "is not a parameter's name"),
        ({"strip_parameters": ("a",) * 101}, "strip_parameters", "101 are too many: at most 100"),
    ],
)
def test_invalid_plan_error_names_part_value_and_fix(
    changes: dict[str, Any], field: str, said: str
) -> None:
    with pytest.raises(PlanError) as caught:
        crawl_of(replace(CrawlSpec(seeds=(SEED,)), **changes), NOW_MS)
    assert caught.value.field == field
    assert said in str(caught.value)


def test_sitemap_of_plan_is_a_seed_and_counted_once() -> None:
    seed, sitemap = "https://example.com/", "https://example.com/s.xml"
    alone = crawl_of(CrawlSpec(sitemap_urls=("HTTPS://example.com/s.xml#x", sitemap)), NOW_MS)
    assert (alone.seeds, alone.sitemap_urls, alone.sitemaps) == ((), (sitemap,), True)
    assert (alone.name, alone.seeds_planned, alone.references) == ("example.com", 1, (sitemap,))
    plan = CrawlSpec(seeds=(seed, sitemap), sitemap_urls=(sitemap,), sitemaps=False)
    both = crawl_of(plan, NOW_MS)
    assert (both.references, both.seeds_planned, both.sitemaps) == ((seed, sitemap), 1, False)
    assert crawl_codec.from_fields(crawl_codec.to_fields(both)) == both


@pytest.mark.parametrize(
    ("seed", "bodies", "is_sitemap"),
    [
        ("https://example.com/sitemap.xml", Bodies.OFF, True),
        ("https://example.com/maps/pages-1.xml.gz?v=2", Bodies.OFF, True),
        ("https://example.com/sitemap.xml", Bodies.ALL, False),
        ("https://example.com/xml", Bodies.OFF, False),
        ("https://example.com/a.html?b=c.xml", Bodies.OFF, False),
    ],
)
def test_seed_with_xml_name_is_read_as_sitemap(seed: str, bodies: Bodies, is_sitemap: bool) -> None:
    crawl = crawl_of(CrawlSpec(seeds=(seed,), bodies=bodies), NOW_MS)
    assert (crawl.seeds, crawl.sitemap_urls) == (((), (seed,)) if is_sitemap else ((seed,), ()))


@pytest.mark.parametrize("bytes_max", [299_999, 300_000])
def test_crawl_of_list_over_size_limit_names_the_fix(
    bytes_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spec_checks, "SEEDS_BYTES_MAX", bytes_max)
    plan = CrawlSpec(seeds=tuple(f"https://example.com/{place:010}" for place in range(10_000)))
    if bytes_max == 300_000:
        assert len(crawl_of(plan, NOW_MS).seeds) == 10_000
        return
    with pytest.raises(PlanError, match=r"take 300,000 bytes.*split the list"):
        crawl_of(plan, NOW_MS)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://example.com/a", "example.com"),
        ("http://127.0.0.1:8000/", "127.0.0.1-8000"),
        ("http://[::1]:8000/", "1-8000"),
        ("http://[::]/", "crawl"),
        ("https://sub_domain.example.com/", "sub_domain.example.com"),
        ("http://default/", "crawl"),
        (f"https://{'a' * 60}.{'b' * 60}.com/", f"{'a' * 60}.{'b' * 19}"),
    ],
)
def test_default_name_is_valid_for_any_host(url: str, name: str) -> None:
    assert name_of(url) == name
    assert crawl_of(CrawlSpec(seeds=(url,)), NOW_MS).name == name


@pytest.mark.parametrize("pages", [None, 100_001])
def test_stop_without_news_needs_page_limit(pages: int | None) -> None:
    plan = CrawlSpec(seeds=("https://example.com/",), pages_max=pages, stop_when_nothing_new=True)
    (problem,) = problems_of(plan)
    assert problem.field == "stop_when_nothing_new"
    assert "give a limit of pages of up to 100,000" in str(problem)
    assert not problems_of(replace(plan, pages_max=100_000))
