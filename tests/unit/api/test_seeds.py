"""Seeds over HTTP, from a request or a file: all or none are taken (cases 56, 79 and 80)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orbweaver.api.crawls import FILE_BYTES_MAX, LINES_MAX, URLS_MAX
from orbweaver.frontier.messages import SeedsMessage
from orbweaver.model.crawl import State
from orbweaver.model.settings import Settings
from tests.unit.api.stage import CRAWL, SITE, Stage
from tests.unit.stage import fail_on

INNER = (
    "http://127.0.0.1/",
    "http://10.0.0.8:8080/",
    "http://169.254.169.254/latest/meta-data/",
    "http://[::1]/",
    "http://[::ffff:10.0.0.1]/",
    "http://0x7f.1/",
    "http://2130706433/",
    "https://example.com:22/",
)


async def test_seeds_of_live_crawl_are_queued_and_counted(stage: Stage) -> None:
    stage.begin(replace(CRAWL, express=True))
    reply = await stage.post("/seeds", {"urls": [f"{SITE}/a", f"{SITE}/b"], "crawl": CRAWL.id})
    assert (reply.status, reply.body) == (202, {"crawl": CRAWL.id, "accepted": 2})
    assert [mail.express for mail in stage.world.sent] == [True]
    (seeds,) = stage.sent()
    assert isinstance(seeds, SeedsMessage)
    assert seeds.references == (f"{SITE}/a", f"{SITE}/b")
    assert not seeds.planned


async def test_seeds_without_crawl_create_default_crawl(stage: Stage) -> None:
    assert (await stage.post("/seeds", {"url": SITE})).body["crawl"] == "default"
    assert list(stage.world.crawls) == ["default"]


@pytest.mark.parametrize("headers", [{}, {"idempotency_key": "mine"}])
async def test_repeated_request_sends_same_seed_ids(stage: Stage, headers: dict[str, str]) -> None:
    for _ in range(2):
        await stage.post("/seeds", {"url": SITE}, **headers)
    one, other = stage.sent()
    assert one.id == other.id
    await stage.post("/seeds", {"url": SITE}, idempotency_key="another")
    assert stage.sent()[-1].id != one.id


async def test_request_of_10000_urls_is_accepted_and_more_refused(stage: Stage) -> None:
    urls = [f"{SITE}/{number}" for number in range(URLS_MAX)]
    assert (await stage.post("/seeds", {"urls": urls})).body["accepted"] == URLS_MAX
    assert sum(len(seeds.references) for seeds in stage.sent()) == URLS_MAX
    stage.world.sent.clear()
    reply = await stage.post("/seeds", {"urls": [*urls, SITE]})
    assert (reply.status, reply.body["title"]) == (413, "Content too large")
    assert stage.world.sent == []


async def test_one_bad_url_refuses_request_and_is_named(stage: Stage) -> None:
    urls = [f"{SITE}/a", "nonsense", "file:///etc/passwd", "https://me:secret@"]
    reply = await stage.post("/seeds", {"urls": urls})
    assert (reply.status, reply.paths) == (400, ["urls[1]", "urls[2]", "urls[3]"])
    assert "secret" not in str(reply.body)
    assert (stage.world.sent, stage.world.crawls) == ([], {})


@pytest.mark.parametrize("url", INNER)
async def test_inner_addresses_are_refused(stage: Stage, url: str) -> None:
    """The API refuses every spelling of an address that must not be dialled (case 56)."""
    stage.world.files["seeds/x"] = f"{SITE}\n{url}\n".encode()
    bodies: tuple[Any, ...] = ({"url": url}, {"urls": [SITE, url]}, {"s3": "seeds/x"})
    for body in bodies:
        assert (await stage.post("/seeds", body)).status == 400
    for body in ({"seeds": [url]}, {"seeds": [SITE], "sitemaps": [url]}):
        assert (await stage.post("/crawls", body)).status == 400
    assert (stage.world.sent, stage.world.crawls) == ([], {})


async def test_inner_addresses_are_accepted_on_local_stack() -> None:
    stage = Stage(settings=Settings.of(allow_addresses="127.0.0.0/8", closed_ports="4566"))
    for host in ("127.0.0.1", "localhost"):
        assert (await stage.post("/seeds", {"url": f"http://{host}:9/"})).status == 202
        reply = await stage.post("/seeds", {"url": f"http://{host}:4566/"})
        assert reply.status == 400
        assert "the stack's own" in reply.body["detail"]


@pytest.mark.parametrize("state", [State.STOPPING, State.FINISHED])
async def test_seeds_for_ended_crawl_are_conflict(stage: Stage, state: State) -> None:
    stage.begin(replace(CRAWL, state=state))
    reply = await stage.post("/seeds", {"url": SITE, "crawl": CRAWL.id})
    assert (reply.status, reply.body["detail"]) == (409, f"crawl site-1 is {state}: start another")
    assert stage.world.sent == []


async def test_seeds_for_unknown_crawl_are_404(stage: Stage) -> None:
    reply = await stage.post("/seeds", {"url": SITE, "crawl": "nobody"})
    assert (reply.status, reply.body["detail"]) == (404, "there is no crawl 'nobody'")
    assert stage.world.sent == []


async def test_throttled_queue_is_503() -> None:
    reply = await Stage(gate=fail_on("queue.send")).post("/seeds", {"url": SITE})
    assert (reply.status, reply.body["detail"]) == (503, "try again: queue.send")


# --- files --------------------------------------------------------------------------------------


async def test_seed_file_skips_comments_and_empty_lines(stage: Stage) -> None:
    lines = [f"{SITE}/{number}" for number in range(URLS_MAX + 1)]
    stage.world.files["seeds/many.txt"] = "\n".join(["# mine", "", *lines]).encode()
    reply = await stage.post("/seeds", {"s3": "seeds/many.txt"})
    assert reply.body == {"crawl": "default", "accepted": URLS_MAX + 1}
    assert sum(len(seeds.references) for seeds in stage.sent()) == URLS_MAX + 1


@pytest.mark.parametrize(
    ("content", "status", "detail"),
    [
        (None, 400, "there is no file 'seeds/x'"),
        (b"", 400, "'seeds/x' has no URL"),
        (b"# nothing\n\n", 400, "'seeds/x' has no URL"),
        (b"\xff\xfe", 400, "is no text in UTF-8"),
        (b"https://a.example\nnonsense\n", 400, "line[1]: 'nonsense' cannot be crawled"),
        (b"https://a.example/" + b"x" * 9_000, 400, "longer than 8,192 characters"),
        (b"https://a.example\n" * (LINES_MAX + 1), 413, "has more than 100,000 URLs"),
        (b"#" * (FILE_BYTES_MAX + 1), 413, "10,000,001 bytes, and at most 10,000,000"),
    ],
)
async def test_seed_file_is_refused_completely_if_invalid_or_large(
    stage: Stage, content: bytes | None, status: int, detail: str
) -> None:
    if content is not None:
        stage.world.files["seeds/x"] = content
    reply = await stage.post("/seeds", {"s3": "seeds/x"})
    assert reply.status == status
    assert detail in reply.body["detail"]
    assert stage.world.sent == []


@pytest.mark.parametrize(
    "key", ["exports/x", "seeds/", "seeds/../exports/x", "/seeds/x", "s3://b/seeds/x", "seeds/a b"]
)
async def test_seed_file_outside_seeds_folder_is_refused(stage: Stage, key: str) -> None:
    stage.world.files["exports/x"] = SITE.encode()
    assert (await stage.post("/seeds", {"s3": key})).status == 400
    assert stage.world.sent == []
