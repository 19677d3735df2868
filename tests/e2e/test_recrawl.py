"""A second run of a crawl: unchanged pages are not downloaded again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.stand import names
from tests.sites import child

if TYPE_CHECKING:
    from tests.e2e.stand import CommandStand

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(300)]


def test_unchanged_pages_are_not_downloaded_again(anywhere: CommandStand) -> None:
    options = ("--name", "recrawl", "--delay", "0", "--max-depth", "1", "--window", "0s")
    with child.start("bookshop", "--books", "60") as shop:
        first = anywhere.start(shop.url + "/", *options)
        second = anywhere.start(shop.url + "/", *options)
        log = shop.log()

    assert first.result["claimed"] == second.result["claimed"]
    assert first.urls("unchanged") == []
    leaves = {row["url"]: row for row in first.rows if row["depth"] == 1 and row.get("etag")}
    assert len(leaves) > 10
    assert names(second.urls("unchanged"), shop.url) == names(list(leaves), shop.url)
    for row in second.rows:
        if row["outcome"] == "unchanged":
            before = leaves[row["url"]]
            assert row["reason"] == "not_modified"
            assert [row[key] for key in ("title", "sha256", "etag", "links")] == [
                before[key] for key in ("title", "sha256", "etag", "links")
            ]
    assert sum(record.status == 304 for record in log) == len(leaves)
