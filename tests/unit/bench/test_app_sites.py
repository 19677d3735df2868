"""Sites of the rendering benchmark serve exactly their expected pages."""

from __future__ import annotations

import json
from pathlib import Path

from bench import package_registry
from bench.app_sites import APPLICATIONS, PARTS, PRODUCTS, AppSite, shop
from bench.framework_shops import APPLICATIONS as PACKAGES
from bench.framework_shops import FRAMEWORKS
from tests.sites.server import Asked


def told(site: AppSite, target: str) -> bytes:
    """Return the body of the answer to a request for `target`."""
    answer = site.answer(Asked(method="GET", target=target, host="", headers={}))
    assert answer.status == 200, target
    return answer.body


def test_shop_serves_its_catalogue_as_data_only(tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist/index.html").write_text("<div id=app></div>")
    site = shop(tmp_path)
    listed = [
        one["id"]
        for part in range(PARTS)
        for one in json.loads(told(site, f"/api/products?part={part}"))
    ]
    assert listed == list(range(PRODUCTS))
    for path, truth in site.truth.items():
        assert told(site, path) == b"<div id=app></div>"
        if path == "/":
            assert truth.links == {f"/product/{one}" for one in listed}
            continue
        data = json.loads(told(site, f"/api/products/{path.rpartition('/')[2]}"))
        assert truth.links == {f"/product/{one}" for one in data["related"]}
        text = " ".join(map(str, data.values()))
        assert all(word in text for word in truth.words)


def test_applications_serve_words_of_their_truth(tmp_path: Path) -> None:
    assert {*APPLICATIONS, package_registry.NAME} == PACKAGES.keys()
    for make in APPLICATIONS.values():
        site = make(tmp_path)
        served = b"".join(answer.body for answer in site.extra.values()).decode()
        words = [word for truth in site.truth.values() for word in truth.words]
        assert len(words) == PRODUCTS
        assert all(word in served for word in words)


def test_registry_stores_one_document_per_package(tmp_path: Path) -> None:
    package_registry.configure(tmp_path, "http://127.0.0.1:1")
    truth = package_registry.truth()
    listed = {path.rpartition("/")[2] for path in truth.pop("/").links}
    assert listed == {path.rpartition("/")[2] for path in truth}
    assert len(listed) == PRODUCTS
    for path, page in truth.items():
        stored = tmp_path / "storage" / path.rpartition("/")[2] / "package.json"
        assert all(word in stored.read_text() for word in page.words)


def test_every_framework_has_sources_without_catalogue() -> None:
    assert len(FRAMEWORKS) == 8
    for made in FRAMEWORKS.values():
        assert made.packages
        assert "load" in "".join(made.sources.values())
        assert made.main in made.sources
        assert not any("word1x" in source for source in made.sources.values())
