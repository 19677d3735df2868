"""Crawls of applications that need a browser, compared with Playwright.

    python -m bench.app_rendering FOLDER [NAME…] [--playwright PYTHON]

FOLDER is the output of bench/framework_shops.py. A crawl without rendering, one with `--render
auto`, and Playwright (if a Python with that package is given) must find the same links and words.
Playwright opens four pages at a time and waits until the network is idle. The CPU of a crawl
includes its export and all processes of the browser. Playwright's is not measured, because not all
browser processes are its children.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from warcio.archiveiterator import ArchiveIterator

import orbweaver
from bench import package_registry
from bench.app_sites import APPLICATIONS, AppSite, shop
from orbweaver.rendering.launch import find_browser
from tests.sites.server import background

TABS = 4


def crawled(site: AppSite, mode: str) -> dict[str, Any]:
    began_s, cpu_s = time.monotonic(), _cpu_s()
    bodies: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        with orbweaver.Client(store=folder, workers=1) as client:
            name = client.start(f"{site.url}/", name="app", delay="0s", max_depth=3, render=mode)
            client.wait(name)
            took_s = time.monotonic() - began_s
            client.export(name, f"{folder}/out", ("warc",))
        # The browser's processes count only after they and the client have ended.
        used_s = _cpu_s() - cpu_s
        bodies = _bodies(Path(folder) / "out")
    pages = {url.removeprefix(site.url): body for url, body in bodies.items()}
    return {**_found(site, pages), **_costs(len(pages), took_s, used_s)}


def _bodies(folder: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in folder.rglob("*.warc.gz"):
        with path.open("rb") as file:
            for record in ArchiveIterator(file):
                url = record.rec_headers.get_header("WARC-Target-URI")
                if url and record.rec_type == "response":
                    found[url] = record.content_stream().read().decode("utf-8", "replace")
    return found


def _found(site: AppSite, pages: dict[str, str]) -> dict[str, Any]:
    links = words = links_all = words_all = 0
    for path, truth in site.truth.items():
        html = pages.get(path, "")
        read = orbweaver.parse_page(html.encode(), site.url + path)
        known = {urljoin(site.url, one) for one in truth.links}
        text = re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
        links += len(known & set(read.links))
        words += sum(word in text for word in truth.words)
        links_all += len(known)
        words_all += len(truth.words)
    return {
        "links": f"{links} of {links_all}",
        "items": f"{words} of {words_all}",
        "percent": round(100 * (links + words) / (links_all + words_all), 1),
    }


def _costs(pages: int, took_s: float, cpu_s: float) -> dict[str, Any]:
    return {
        "pages": pages,
        "pages_per_s": _rate(pages, took_s),
        "cpu_s_page": round(cpu_s / max(1, pages), 2),
    }


def _rate(pages: int, took_s: float) -> float:
    return round(pages / took_s, 1)


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def by_playwright(site: AppSite, python: str) -> dict[str, Any]:
    """Open the same pages with Playwright and return the result."""
    urls = [site.url + path for path in site.truth]
    script = str(Path(__file__).with_name("playwright_pages.py"))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "pages.json"
        words = [python, script, str(find_browser()), str(TABS), str(out)]
        began_s = time.monotonic()
        subprocess.run(words, input="\n".join(urls), text=True, check=True)
        took_s = time.monotonic() - began_s
        pages = {url.removeprefix(site.url): html for url, html in json.loads(out.read_text())}
    return {**_found(site, pages), "pages": len(pages), "pages_per_s": _rate(len(pages), took_s)}


@contextmanager
def served(folder: Path) -> Iterator[AppSite]:
    if folder.name == package_registry.NAME:
        with package_registry.registry(folder) as installed:
            yield installed
        return
    site = APPLICATIONS.get(folder.name, shop)(folder)
    with background(site):
        yield site


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.app_rendering")
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--playwright", metavar="PYTHON")
    given = parser.parse_args()
    names = given.names or sorted(one.name for one in given.folder.iterdir())
    for name in names:
        with served(given.folder / name) as site:
            for mode in ("never", "auto"):
                print(json.dumps({"name": name, "by": mode, **crawled(site, mode)}), flush=True)
            if given.playwright:
                found = by_playwright(site, given.playwright)
                print(json.dumps({"name": name, "by": "playwright", **found}), flush=True)


if __name__ == "__main__":
    main()
