"""A site that serves a directory like a plain file server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sites import static

from .conftest import Client


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "secret.txt").write_text("secret")
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "bare").mkdir()
    names = ("index.html", "sub/index.html", "a b é.html", "style.css", "image.png", "data.xyz")
    for name in names:
        (root / name).write_text(name)
    (root / "link.txt").symlink_to(tmp_path / "secret.txt")
    return root


@pytest.mark.parametrize(
    ("path", "status", "content_type", "body"),
    [
        ("/", 200, "text/html", "index.html"),
        ("/?q=1", 200, "text/html", "index.html"),
        ("/index.html", 200, "text/html", "index.html"),
        ("/sub/", 200, "text/html", "sub/index.html"),
        ("/a%20b%20%C3%A9.html", 200, "text/html", "a b é.html"),
        ("/style.css", 200, "text/css", "style.css"),
        ("/image.png", 200, "image/png", "image.png"),
        ("/data.xyz", 200, "chemical/x-xyz application/octet-stream", "data.xyz"),
        ("/bare/", 404, None, ""),
        ("/index.html/", 404, None, ""),
        ("/none.html", 404, None, ""),
        ("/../secret.txt", 404, None, ""),
        ("/%2e%2e/secret.txt", 404, None, ""),
        ("/..%2fsecret.txt", 404, None, ""),
        ("/link.txt", 404, None, ""),
        ("/%00", 404, None, ""),
    ],
)
async def test_files_are_served_only_from_directory(
    directory: Path, client: Client, path: str, status: int, content_type: str | None, body: str
) -> None:
    async with static.serve(directory) as site:
        for _ in range(2):
            got = await client.get(site.url + path)
            assert (got.status, got.body.decode()) == (status, body)
            if content_type is not None:
                assert got.headers["Content-Type"] in content_type.split()
    assert [record.path for record in site.log.records()] == [path, path]


async def test_directory_without_slash_is_redirected(directory: Path, client: Client) -> None:
    async with static.serve(directory) as site:
        got = await client.get(site.url + "/sub")
        assert (got.status, got.headers["Location"]) == (301, "/sub/")
        assert (await client.get(site.url + "/", method="PUT")).status == 405


def test_missing_directory_raises(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        static.Static(tmp_path / "absent")
