"""A crawl of a site of which some pages need a browser: what it finds, and at what price."""

from __future__ import annotations

import json

from bench.mixed_rendering import measure
from orbweaver.worker.rendering_choice import PASSED_MAX
from orbweaver.worker.rendering_gain import is_sample
from tests.rendering.stage import NEEDS_BROWSER
from tests.sites.mixed import FRAME, SHELL, Mixed, Section, sections_of
from tests.sites.server import background

pytestmark = NEEDS_BROWSER
# What goes on while a sample is rendered, and what a crawl without a delay has asked for by then.
AT_ONCE = PASSED_MAX + 2 * 16


def test_all_of_a_mixed_site_is_found() -> None:
    """Also what does not look as if it needed scripts; one page in five is rendered for that.

    Of a site so small the first pages of its kinds are a larger part than of one of 2,000.
    """
    site = Mixed(sections_of(240, SHELL))
    with background(site):
        found = measure(site, "auto")
    assert found["content_percent"] == 100
    assert float(found["rendered_percent"]) <= 20
    assert found["missed_after_redesign"] == 0


def test_a_redesign_that_nothing_shows_is_noticed() -> None:
    """By the first sample of what came after it; all that is asked for from then on is rendered."""
    site = Mixed((Section(name="news", items=300, then=FRAME),))
    with background(site):
        found = measure(site, "auto")
    samples = [is_sample(site.url + path) for path in site.asked_new]
    first = samples.index(True) if any(samples) else len(samples)
    assert found["after_redesign"] == 150
    # Pages that were asked for before it, and waited for what it shows, are rendered, too.
    assert int(found["missed_after_redesign"]) <= first
    why = json.loads(str(found["why"]))
    assert why.get("kind", 0) + why.get("sampled", 0) >= len(samples) - first - AT_ONCE
