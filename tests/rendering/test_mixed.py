"""Crawl of a site of which some pages need a browser: found pages and cost."""

from __future__ import annotations

import json

from bench.mixed_rendering import measure
from orbweaver.worker.rendering_choice import PASSED_MAX
from orbweaver.worker.rendering_gain import is_sample
from tests.rendering.stage import NEEDS_BROWSER
from tests.sites.mixed import FRAME, SHELL, Mixed, Section, sections_of
from tests.sites.server import background

pytestmark = NEEDS_BROWSER
# Pages requested while a sample is rendered, in a crawl without a delay.
AT_ONCE = PASSED_MAX + 2 * 16


def test_all_pages_of_mixed_site_are_found() -> None:
    """Pages that do not look script-dependent are found too; one page in five is rendered.

    In a site this small, the first pages of each group of similar URLs are a larger share than with
    2,000 pages.
    """
    site = Mixed(sections_of(240, SHELL))
    with background(site):
        found = measure(site, "auto")
    assert found["content_percent"] == 100
    assert float(found["rendered_percent"]) <= 20
    assert found["missed_after_redesign"] == 0


def test_invisible_redesign_is_detected_by_first_sample() -> None:
    site = Mixed((Section(name="news", items=300, then=FRAME),))
    with background(site):
        found = measure(site, "auto")
    samples = [is_sample(site.url + path) for path in site.asked_new]
    first = samples.index(True) if any(samples) else len(samples)
    assert found["after_redesign"] == 150
    # Pages requested earlier that waited for the sample are rendered too.
    assert int(found["missed_after_redesign"]) <= first
    why = json.loads(str(found["why"]))
    assert why.get("kind", 0) + why.get("sampled", 0) >= len(samples) - first - AT_ONCE
