"""Links that the reference crawl follows, counts and ignores."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.sites import child, graph, static, walk
from tests.sites.server import Answer

SITES = Path(walk.__file__).parent


def _paths(urls: set[str]) -> set[str]:
    return {urlsplit(url)._replace(scheme="", netloc="").geturl() for url in urls}


async def test_walk_follows_anchors_and_areas_only() -> None:
    body = b"""<a href=/one>1</a><AREA HREF="two#x"><a href="/one#again">1</a>
<a href="/one?utm_source=x">1</a><!-- <a href=/ghost> --><script>"<a href=/ghost>"</script>
<link href=/ghost><img src=/ghost><a href="mailto:a@b.invalid">m</a><a href="javascript:x()">j</a>
<a href="http://[/">broken</a><a href="http://other.invalid/x">o</a><a>no href</a>
<a href="/pdf">p</a><a href="/gone">g</a>"""
    html = (("Content-Type", "text/html"),)
    scripts = {
        "/": Answer(headers=html, body=body),
        "/one": graph.page("One"),
        "/two": graph.page("Two"),
        "/pdf": Answer(headers=(("Content-Type", "application/pdf"),)),
        "/gone": graph.page("Gone", ["/ghost"], status=410),
    }
    async with graph.serve(scripts) as site:
        walked = await walk.walk(site.url)
    assert _paths(walked.pages) == {"/", "/one", "/two"}
    assert (_paths(walked.other), _paths(walked.failed)) == ({"/pdf"}, {"/gone"})
    assert walked.external == {"http://other.invalid/x"}
    assert sorted(site.log.paths()) == ["/", "/gone", "/one", "/pdf", "/robots.txt", "/two"]


@pytest.mark.parametrize("max_depth", [0, 1, 5, None])
async def test_walk_depth_is_limited(max_depth: int | None) -> None:
    async with graph.serve(graph.chain(8)) as site:
        walked = await walk.walk(site.url + "/chain/0", walk.Options(max_depth=max_depth))
    last = 8 if max_depth is None else max_depth
    assert _paths(walked.pages) == {f"/chain/{n}" for n in range(last + 1)}
    assert walked.depths[f"{site.url}/chain/{last}"] == last


async def test_redirects_add_no_depth_and_loops_end() -> None:
    scripts = {
        "/": graph.page("Home", ["/hop/0", "/far", "/loop"]),
        "/far": graph.page("Far", ["/hop/2"]),
        "/loop": graph.redirect("/loop"),
        **graph.redirects(2),
    }
    async with graph.serve(scripts) as site:
        walked = await walk.walk(site.url)
    assert _paths(walked.redirected) == {"/hop/0", "/hop/1", "/loop"}
    assert walked.depths[site.url + "/hop/2"] == 1


async def test_nofollow_is_obeyed_by_default() -> None:
    html = ("Content-Type", "text/html")
    scripts = {
        "/": Answer(
            headers=(html,),
            body=b'<a rel="nofollow ugc" href=/a>a</a><a href=/meta>m</a><a href=/header>h</a>',
        ),
        "/meta": Answer(
            headers=(html,), body=b'<meta name=ROBOTS content="noindex,NoFollow"><a href=/b>b</a>'
        ),
        "/header": graph.page("Header", ["/c"], headers=[html, ("X-Robots-Tag", "nofollow")]),
        **{path: graph.page(path) for path in ("/a", "/b", "/c")},
    }
    async with graph.serve(scripts) as site:
        assert _paths((await walk.walk(site.url)).pages) == {"/", "/meta", "/header"}
        walked = await walk.walk(site.url, walk.Options(follow_nofollow=True))
    assert _paths(walked.pages) == set(scripts)


ROBOTS = """
User-agent: other
Disallow: /
User-agent: more
User-agent: *
Disallow: /private  # a comment
Allow: /private/open
Disallow: /*?sort=
Disallow: /*.zip$
Disallow:
Disallow: /tie
Allow: /tie
User-agent: last
Disallow: /
"""


@pytest.mark.parametrize(
    ("path", "forbidden"),
    [
        ("/", False),
        ("/private", True),
        ("/private/x", True),
        ("/private/open/x", False),
        ("/a?sort=b", True),
        ("/a?b&sort=b", False),
        ("/a.zip", True),
        ("/a.zip?x", False),
        ("/tie", False),
    ],
)
async def test_robots_are_obeyed_by_default(path: str, *, forbidden: bool) -> None:
    start = graph.page("Start", [path])
    scripts = {"/start": start, path: graph.page("Page"), "/robots.txt": graph.robots(ROBOTS)}
    async with graph.serve(scripts) as site:
        walked = await walk.walk(site.url + "/start")
        assert (site.url + path in walked.disallowed) == forbidden
        assert (site.url + path in walked.pages) != forbidden
        walked = await walk.walk(site.url + "/start", walk.Options(robots=False))
        assert site.url + path in walked.pages


async def test_busy_page_is_requested_twice() -> None:
    scripts: dict[str, graph.Script] = {
        "/": [Answer(status=503), graph.page("Home", ["/busy"])],
        "/busy": Answer(status=429),
    }
    async with graph.serve(scripts) as site:
        walked = await walk.walk(site.url, walk.Options(robots=False))
    assert (_paths(walked.pages), _paths(walked.failed)) == ({"/"}, {"/busy"})
    assert site.log.paths() == ["/", "/", "/busy", "/busy"]


async def test_walk_of_endless_site_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """A truncated reference would be wrong."""
    monkeypatch.setattr(walk, "URLS_MAX", 5)
    async with graph.serve(graph.chain(8)) as site:
        with pytest.raises(RuntimeError, match="more than 5"):
            await walk.walk(site.url + "/chain/0")


async def test_walk_of_directory_equals_walk_of_its_site(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    pages = {
        "index.html": '<a href="sub">s</a> <a href="b%20c.html#x">b</a> <a href="no.html">n</a>',
        "sub/index.html": '<a href="../index.html">up</a> <a href="../x.txt">x</a>',
        "b c.html": '<a href="index.html/">not a directory</a> <a href="/../../etc/hosts">out</a>',
        "unlinked.html": "",
        "x.txt": "",
    }
    for name, text in pages.items():
        (tmp_path / name).write_text(text)
    async with static.serve(tmp_path) as site:
        live = await walk.walk(site.url + "/")
        files = await walk.walk_directory(tmp_path, site.url + "/")
    assert files == live
    assert _paths(files.pages) == {"/", "/index.html", "/sub/", "/b%20c.html"}
    assert _paths(files.redirected) == {"/sub"}
    assert _paths(files.other) == {"/x.txt"}
    assert _paths(files.failed) == {"/no.html", "/index.html/", "/etc/hosts"}
    below = await walk.walk_directory(tmp_path / "sub", "http://files.invalid/manual/")
    assert below.pages == {"http://files.invalid/manual/"}
    outside = {"http://files.invalid/index.html", "http://files.invalid/x.txt"}
    assert below.failed == outside


@pytest.mark.thorough
def test_sites_do_not_import_product() -> None:
    """The reference would share the faults of the product."""
    program = """
import importlib, pkgutil, sys, tests.sites
for module in pkgutil.walk_packages(tests.sites.__path__, "tests.sites."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
roots = {name.split(".")[0] for name in sys.modules}
print(sorted(roots & {"orbweaver", "handlers", "selectolax"}))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=child.ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
    # An extractor is code of a user of the product.
    files = [file for file in SITES.rglob("*.py") if file.name != "extractor.py"]
    assert "orbweaver" not in "".join(file.read_text() for file in files)
