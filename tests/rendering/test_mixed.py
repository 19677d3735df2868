"""Crawl of a site of which some pages need a browser: found pages and cost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import orbweaver
from orbweaver.worker.rendering_choice import PASSED_MAX
from orbweaver.worker.rendering_gain import is_sample
from tests.rendering.stage import NEEDS_BROWSER
from tests.sites.mixed import FRAME, SHELL, Mixed, Section, sections_of
from tests.sites.server import background

pytestmark = NEEDS_BROWSER
# Pages requested while a sample is rendered, in a crawl without a delay.
AT_ONCE = PASSED_MAX + 2 * 16
NOT_RENDERED = ("None", "no_scripts", "kind_gains_nothing", "never")


def measure(site: Mixed, folder: Path) -> dict[str, Any]:
    """Crawl a site. Return the share of its words found, and how pages were rendered.

    `missed` counts redesigned pages that were stored before the first of them was rendered.
    """
    done = orbweaver.crawl(
        f"{site.url}/",
        store=str(folder),
        delay="0s",
        workers=1,
        render="auto",
        text=True,
        max_depth=1,
    )
    rows = {row["url"].removeprefix(site.url): row for row in done.pages}
    texts = {row["url"].removeprefix(site.url): row["text"] for row in done.texts}
    found = [word in texts.get(path, "") for path in site.paths for word in site.words_of(path)]
    why = Counter(str(rows[path].get("render_why")) for path in site.paths if path in rows)
    new = [bool(rows[path].get("rendered")) for path in site.asked_new]
    return {
        "content": sum(found) / len(found),
        "rendered": sum(why[one] for one in why if one not in NOT_RENDERED) / len(site.paths),
        "missed": new.index(True) if any(new) else len(new),
        "why": why,
    }


def test_all_pages_of_mixed_site_are_found(tmp_path: Path) -> None:
    """Pages that do not look script-dependent are found too; one page in five is rendered.

    In a site this small, the first pages of each group of similar URLs are a larger share than with
    2,000 pages.
    """
    site = Mixed(sections_of(240, SHELL))
    with background(site):
        found = measure(site, tmp_path)
    assert found["content"] == 1
    assert found["rendered"] <= 0.2
    assert found["missed"] == 0


def test_invisible_redesign_is_detected_by_first_sample(tmp_path: Path) -> None:
    site = Mixed((Section(name="news", items=200, then=FRAME),))
    with background(site):
        found = measure(site, tmp_path)
    samples = [is_sample(site.url + path) for path in site.asked_new]
    first = samples.index(True) if any(samples) else len(samples)
    assert len(site.asked_new) == 100
    # Pages requested earlier that waited for the sample are rendered too.
    assert found["missed"] <= first
    why = found["why"]
    assert why["kind"] + why["sampled"] >= len(samples) - first - AT_ONCE
