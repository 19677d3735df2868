"""Visits of a pack (message with up to 25 URLs): outcomes of answers, order of requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from orbweaver.budget.reservation import Reservations
from orbweaver.frontier.journal import Journal
from orbweaver.frontier.pack_result import FoundLinks, PackResult
from orbweaver.model.backoff import ATTEMPTS_MAX
from orbweaver.model.crawl import Crawl
from orbweaver.model.crawl_settings import Bodies, Scope
from orbweaver.model.http_exchange import Condition, Failure, Request, Response
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.page_record import PageRecord
from orbweaver.model.settings import Settings
from orbweaver.model.target import Prior, Target
from orbweaver.worker.pack_context import PackContext
from tests.unit.stage import CRAWL, NOW_MS, ROOT, SITE, Stage, answer, html

OTHER = "https://other.example"
POLITE = replace(CRAWL, delay_ms=1_000)
OBEDIENT = replace(POLITE, obey_robots=True)
A = Target(url=f"{SITE}/a", depth=1)


def targets(*paths: str, host: str = SITE) -> list[Target]:
    return [Target(url=f"{host}/{path}", depth=1) for path in paths]


async def visit(
    stage: Stage,
    asked: Sequence[Target],
    crawl: Crawl = CRAWL,
    ahead_ms: int = 60_000,
    named: frozenset[str] = frozenset(),
    seen: frozenset[str] = frozenset(),
    reservations: Reservations | None = None,
    done: list[tuple[str, int]] | None = None,
) -> Journal:
    """`done` gets each host whose URLs are done, with the number of requests until then."""

    async def host_done(host: str) -> None:
        if done is not None:
            done.append((host, len(stage.web.urls)))

    stage.world.crawls[crawl.id] = crawl
    result = PackResult(crawl.id)
    until_ms = stage.clock.at_ms + ahead_ms
    visit = PackContext(
        crawl=crawl,
        until_ms=until_ms,
        reservations=reservations or stage.budget_keeper.open(crawl, ROOT),
        named=named,
        seen=seen.intersection,
        linked=result.links_to,
        host_done=host_done,
    )
    with stage.pack_fetcher.holding(result):
        await stage.pack_fetcher.fetch(visit, result, asked)
    paid = await visit.reservations.pay(
        urls=len(asked), again=result.returning, looked_up=0, links=len(result.links)
    )
    result.add_links(FoundLinks(counts=paid.counts))
    return result.journal(asked, stage.clock.at_ms)


def redirect(location: str) -> Response:
    return answer(302, location=location)


# --- answers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "end", "found"),
    [
        (html("/b"), "fetched.ok", [f"{SITE}/b"]),
        (replace(html("/b"), truncated=True), "fetched.truncated", [f"{SITE}/b"]),
        (answer(200, b""), "fetched.ok", []),
        (answer(200, None, content_type="image/png"), "skipped.content_type", []),
        (answer(204), "skipped.empty", []),
        (answer(404, b"<a href=/b>"), "failed.http_client_error", []),
        (answer(501), "failed.http_server_error", []),
        (answer(304), "failed.http_status", []),
        (redirect("/b"), "redirected.redirect", [f"{SITE}/b"]),
        (redirect("b?c#d"), "redirected.redirect", [f"{SITE}/b?c"]),
        (redirect("/a"), "failed.redirect_limit", []),
        (redirect("a#there"), "failed.redirect_limit", []),
        (redirect(OTHER), "redirected.redirect", []),
        (html("/b", refresh="0; url=/c"), "redirected.refresh", [f"{SITE}/c", f"{SITE}/b"]),
        (html("/b", refresh="0; url=/a"), "fetched.ok", [f"{SITE}/b"]),
        (html(refresh=f"0; url={OTHER}"), "redirected.refresh", []),
        (html(refresh="0; url=javascript:x"), "fetched.ok", []),
        (redirect("file:///etc/passwd"), "failed.redirect_invalid", []),
        (redirect("javascript:alert(1)"), "failed.redirect_invalid", []),
        (redirect("http://[bad/"), "failed.redirect_invalid", []),
        (Failure(reason=Reason.TLS, detail="expired"), "failed.tls", []),
        (Failure(reason=Reason.ADDRESS, detail="private"), "failed.address", []),
    ],
)
async def test_each_answer_has_an_outcome(
    said: Response | Failure, end: str, found: list[str]
) -> None:
    """Pages have links, redirects a target, other answers a reason (cases 42, 46)."""
    stage = Stage().serve({A.url: said})
    journal = await visit(stage, [A])
    (record,) = journal.records
    assert f"{record.outcome}.{record.reason}" == end
    assert record.url == A.url
    assert record.fetched_at == NOW_MS
    assert journal.counts[end] == 1
    assert [target.url for target in journal.candidates] == found
    assert journal.returning == ()


@pytest.mark.parametrize("said", [answer(302, location="/b"), html(refresh="0; url=/b")])
async def test_redirect_chain_ends_at_tenth_hop(said: Response) -> None:
    """The record has the target of the last redirect. A refresh counts as a hop (cases 42, 63)."""
    stage = Stage().serve({A.url: said})
    journal = await visit(stage, [replace(A, hops=3)])
    assert journal.candidates == (Target(url=f"{SITE}/b", depth=1, hops=4, referrer=A.url),)
    journal = await visit(stage, [replace(A, hops=10)])
    assert journal.candidates == ()
    (record,) = journal.records
    assert (record.reason, record.error) == (Reason.REDIRECT_LIMIT, f"{SITE}/b")


@pytest.mark.parametrize("scope", [Scope.HOST, Scope.DOMAIN, Scope.PREFIX])
async def test_redirected_seed_widens_scope(scope: Scope) -> None:
    stage = Stage()
    crawl = replace(CRAWL, scope=scope, seeds=(f"{SITE}/docs/",))
    stage.web.put(f"{SITE}/docs/", redirect(f"{OTHER}/en/docs/"))
    stage.web.put(f"{OTHER}/en/docs/", html("a", f"{SITE}/elsewhere"))
    stage.web.put(f"{OTHER}/en/docs/a", html("b"))
    found = [Target(url=f"{SITE}/docs/", depth=0)]
    ends = []
    for _ in range(4):
        journal = await visit(stage, found, crawl)
        ends += [f"{record.outcome}.{record.reason}" for record in journal.records]
        found = list(journal.candidates)
    assert ends == ["redirected.widened", "fetched.ok", "fetched.ok", "failed.http_client_error"]
    assert stage.web.urls[-1] == f"{OTHER}/en/docs/b"


async def test_redirect_out_of_scope_is_counted_as_refused() -> None:
    stage = Stage().serve({A.url: redirect(f"{OTHER}/")})
    assert (await visit(stage, [A])).counts["refused.scope"] == 1
    wide = await visit(stage, [A], replace(CRAWL, scope=Scope.ANY))
    assert [target.url for target in wide.candidates] == [f"{OTHER}/"]


async def test_links_are_admitted_or_counted_by_reason() -> None:
    stage = Stage()
    body = b"""<a href=/b>1</a><a href=/b#x>2</a><a href=//other.example/>3</a>
        <a href=/c rel=nofollow>4</a><a href="http://[bad">5</a><a href=mailto:x>6</a>"""
    stage.web.put(A.url, Response(status=200, headers={"content-type": "text/html"}, body=body))
    journal = await visit(stage, [A])
    assert journal.candidates == (Target(url=f"{SITE}/b", depth=2, referrer=A.url),)
    refused = {key: count for key, count in journal.counts.items() if key.startswith("refused")}
    assert refused == {"refused.invalid": 1, "refused.nofollow": 1, "refused.scope": 1}
    deep = await visit(stage, [replace(A, depth=CRAWL.depth_max)])
    assert deep.candidates == ()
    assert deep.counts["refused.depth"] == 2


async def test_claimed_links_are_refused_only_out_of_scope() -> None:
    stage = Stage().serve({A.url: html("/b", f"{OTHER}/x")})
    claimed = frozenset({f"{SITE}/b", f"{OTHER}/x"})
    for depth, refused in ((1, "refused.scope"), (CRAWL.depth_max, "refused.depth")):
        journal = await visit(stage, [replace(A, depth=depth)], seen=claimed)
        assert journal.candidates == ()
        found = {key: count for key, count in journal.counts.items() if key.startswith("refused")}
        assert found == {refused: 1}


async def with_leaf(run: Crawl) -> tuple[Stage, Target]:
    """Return a stage with a record of `run`, and the target of the page."""
    stage = Stage()
    prior = Prior(crawl=run.id, at_ms=NOW_MS - 5_000)
    before = PageRecord(
        crawl=run.id,
        url=A.url,
        outcome=Outcome.FETCHED,
        reason=Reason.OK,
        fetched_at=prior.at_ms,
        depth=1,
        title="leaf",
        links=0,
        etag='"1"',
    )
    await stage.pages.store([before])
    stage.world.crawls[run.id] = run
    return stage, replace(A, prior=prior)


async def test_leaf_of_run_with_other_settings_is_requested_in_full() -> None:
    stage, target = await with_leaf(replace(CRAWL, id="site-0", bodies=Bodies.OFF))
    stage.web.put(A.url, html())
    await visit(stage, [target])
    assert stage.web.requests[-1].condition is None


async def test_unchanged_leaf_keeps_its_record() -> None:
    stage, target = await with_leaf(replace(CRAWL, id="site-0"))
    stage.web.put(A.url, answer(304))
    journal = await visit(stage, [target])
    assert stage.web.requests[-1].condition == Condition(etag='"1"', last_modified=None)
    (record,) = journal.records
    assert (record.outcome, record.reason) == (Outcome.UNCHANGED, Reason.NOT_MODIFIED)
    assert (record.crawl, record.title, record.etag) == (CRAWL.id, "leaf", '"1"')
    assert journal.counts["unchanged"] == 1


async def test_x_robots_tag_nofollow_refuses_links() -> None:
    """The header counts like the meta element (case 64)."""
    stage = Stage().serve({A.url: html("/b", "/c", x_robots_tag="noindex, NOFOLLOW")})
    journal = await visit(stage, [A])
    assert journal.candidates == ()
    assert journal.counts["refused.nofollow"] == 2


@pytest.mark.parametrize(
    "page",
    [
        html("/b", "/c", x_robots_tag="nofollow"),
        answer(200, b"<a href=/b rel=nofollow><a href=/c rel=nofollow>", content_type="text/html"),
    ],
    ids=["page", "links"],
)
async def test_seed_page_refusing_all_links_is_counted(page: Response) -> None:
    stage = Stage().serve({A.url: page})
    seed = replace(A, depth=0)
    journal = await visit(stage, [seed])
    assert journal.candidates == ()
    assert journal.counts["refused.seed_nofollow"] == 2
    assert "refused.nofollow" not in journal.counts
    journal = await visit(stage, [seed], replace(CRAWL, obey_nofollow=False))
    assert [target.url for target in journal.candidates] == [f"{SITE}/b", f"{SITE}/c"]
    assert not any("nofollow" in key for key in journal.counts)
    assert (await visit(stage, [A])).counts["refused.nofollow"] == 2
    stage.web.put(
        A.url, answer(200, b"<a href=/b rel=nofollow><a href=/c>", content_type="text/html")
    )
    assert (await visit(stage, [seed])).counts["refused.nofollow"] == 1


async def test_links_per_page_are_limited() -> None:
    """Omitted links are counted (case 61)."""
    stage = Stage(settings=Settings.of(links_per_page_max=3))
    stage.web.put(A.url, html(*(f"/{place}" for place in range(10))))
    journal = await visit(stage, [A])
    assert len(journal.candidates) == 3
    assert journal.counts["refused.cut"] == 7


async def test_request_has_settings_of_crawl_and_stack() -> None:
    stage = Stage(settings=Settings.of(user_agent="stack/1", body_bytes_max=7, fetch_total_s=3))
    await visit(stage, [A])
    await visit(stage, [A], replace(CRAWL, user_agent="mine/1"))
    assert stage.web.requests[0] == Request(
        url=A.url,
        user_agent="stack/1",
        accept=frozenset({"text/html", "application/xhtml+xml"}),
        body_bytes_max=7,
        total_s=3,
        paced=CRAWL.delay_ms > 0,
    )
    assert stage.web.requests[1].user_agent == "mine/1"


async def test_local_servers_are_passed_to_requests() -> None:
    stage = Stage()
    crawl, own = frozenset({"http://127.0.0.1:8000"}), "http://localhost:9"
    other = replace(A, url=f"{SITE}/b")
    await visit(stage, [replace(A, local=own), other], OBEDIENT, named=crawl)
    asked = {request.url: request.named for request in stage.web.requests}
    assert asked == {f"{SITE}/robots.txt": crawl | {own}, A.url: crawl | {own}, other.url: crawl}


# --- retries ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "end"),
    [
        (Failure(reason=Reason.DNS, detail="x"), "failed.dns"),
        (Failure(reason=Reason.TIMEOUT, detail="x"), "failed.timeout"),
        (answer(500), "failed.http_server_error"),
        (answer(503), "failed.http_server_error"),
        (answer(429), "failed.blocked"),
    ],
)
async def test_transient_failure_is_retried_up_to_limit(said: Response | Failure, end: str) -> None:
    """Each attempt returns later, and the last one ends the URL (cases 31, 46)."""
    for attempt in range(1, ATTEMPTS_MAX + 1):
        stage = Stage().serve({A.url: said})
        journal = await visit(stage, [replace(A, attempt=attempt)])
        if attempt < ATTEMPTS_MAX:
            (item,) = journal.returning
            assert replace(item.target, failed=None) == replace(A, attempt=attempt + 1)
            why = f"HTTP {said.status}" if isinstance(said, Response) else said.reason
            assert item.target.failed == why
            taken = {"retries_taken": 1} if attempt > 1 else {}
            assert journal.counts == {"retries": 1, **taken}
        else:
            (record,) = journal.records
            assert f"{record.outcome}.{record.reason}" == end
            assert record.attempt == ATTEMPTS_MAX


@pytest.mark.parametrize(("robots_fail", "least_s", "most_s"), [(False, 5, 10), (True, 50, 106)])
async def test_retry_delay_grows_from_base_setting(
    robots_fail: bool, least_s: int, most_s: int
) -> None:
    stage = Stage(settings=Settings.of(retry_base_s=100))
    failing = f"{SITE}/robots.txt" if robots_fail else A.url
    stage.web.put(failing, Failure(reason=Reason.TIMEOUT, detail="x"))
    crawl = OBEDIENT if robots_fail else CRAWL
    (item,) = (await visit(stage, [A], crawl)).returning
    assert least_s <= item.delay_s <= most_s  # an unreachable robots.txt is cached for five seconds


@pytest.mark.parametrize("attempt", [1, ATTEMPTS_MAX])
@pytest.mark.parametrize(
    ("status", "left_s", "least_s", "most_s"),
    [(429, 60, 40, 45), (503, 60, 40, 45), (429, 9, 9, 9)],
)
async def test_retry_after_blocks_host(
    status: int, attempt: int, left_s: int, least_s: int, most_s: int
) -> None:
    """The URLs of the host return after the block (case 45), or when the crawl's time ends."""
    stage = Stage().serve({A.url: answer(status, retry_after="40"), "/b": html()})
    asked = [replace(target, attempt=attempt) for target in (A, *targets("b"))]
    spent_s = (NOW_MS - POLITE.started_at_ms) // 1000
    crawl = replace(POLITE, duration_max_s=spent_s + left_s)
    journal = await visit(stage, asked, crawl)
    blocked_until_ms = stage.world.hosts[SITE].blocked_until_ms
    assert 40_000 <= blocked_until_ms - NOW_MS <= 45_000
    assert stage.web.urls == [A.url]
    for item in journal.returning:
        assert least_s <= item.delay_s <= most_s
    assert [item.target.url for item in journal.returning] == [
        target.url for target in asked if attempt == 1 or target is not asked[0]
    ]
    assert journal.counts["deferrals"] == 1


async def test_status_500_blocks_no_host() -> None:
    stage = Stage().serve({A.url: answer(500), "/b": html()})
    journal = await visit(stage, [A, *targets("b")], POLITE)
    assert stage.web.urls == [A.url, f"{SITE}/b"]
    assert [item.target.url for item in journal.returning] == [A.url]
    assert stage.world.hosts[SITE].blocked_until_ms == 0
