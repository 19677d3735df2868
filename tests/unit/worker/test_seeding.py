"""URLs on a queue without a crawl (loose references) become seeds, and seeds candidates."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orbweaver.frontier.messages import SEEDS_REFERENCES_MAX, Loose, SeedsMessage
from orbweaver.model.crawl import Crawl, State, default_crawl
from orbweaver.model.target import Target
from orbweaver.worker.seeding import Seeder, result_of
from tests.unit.stage import CRAWL, NOW_MS, SITE, Stage

LOOSE = Loose(crawl="default", references=(f"{SITE}/a", f"{SITE}/b"))


def seeder(stage: Stage) -> Seeder:
    return Seeder(queue=stage.queue, crawls=stage.crawls, clock=stage.clock)


@pytest.mark.parametrize("loose", [LOOSE, replace(LOOSE, references=("nonsense", f"{SITE}/a"))])
async def test_usable_reference_starts_default_crawl(loose: Loose) -> None:
    stage = Stage()
    assert await seeder(stage).send_seeds("m1", loose) is None
    assert stage.world.crawls == {"default": default_crawl(NOW_MS)}
    (seeds,) = stage.sent()
    assert isinstance(seeds, SeedsMessage)
    assert (seeds.crawl, seeds.references) == ("default", loose.references)
    assert not seeds.planned


async def test_same_message_makes_same_seeds() -> None:
    """The ids follow from the id of the message (case 2)."""
    stage = Stage()
    for origin in ("m1", "m1", "m2"):
        await seeder(stage).send_seeds(origin, LOOSE)
    ids = [seeds.id for seeds in stage.sent()]
    assert ids[0] == ids[1] != ids[2]


async def test_many_references_are_split_into_messages() -> None:
    stage = Stage()
    references = tuple(f"{SITE}/{place}" for place in range(SEEDS_REFERENCES_MAX + 1))
    await seeder(stage).send_seeds("m1", Loose(crawl="default", references=references))
    sizes = [len(seeds.references) for seeds in stage.sent() if isinstance(seeds, SeedsMessage)]
    assert sizes == [SEEDS_REFERENCES_MAX, 1]


async def test_references_are_sent_to_named_crawl() -> None:
    stage = Stage()
    stage.begin(replace(CRAWL, express=True))
    assert await seeder(stage).send_seeds("m1", replace(LOOSE, crawl=CRAWL.id)) is None
    (mail,) = stage.world.sent
    assert (mail.express, mail.group) == (True, CRAWL.id)


@pytest.mark.parametrize(
    ("loose", "reason"),
    [
        (replace(LOOSE, crawl="nobody"), "unknown crawl 'nobody'"),
        (Loose(crawl="default", references=("example.com",)), "no usable URL: not an absolute URL"),
        (Loose(crawl="default", references=("ftp://a/", "")), "no usable URL: not an http"),
    ],
)
async def test_unusable_loose_references_have_reason(loose: Loose, reason: str) -> None:
    stage = Stage()
    refused = await seeder(stage).send_seeds("m1", loose)
    assert refused is not None
    assert refused.startswith(reason)
    assert stage.world.sent == []


# --- journals of seeds ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("crawl", "references", "planned", "urls", "counts"),
    [
        (CRAWL, (f"{SITE}/a#x", f"{SITE}/a"), True, (f"{SITE}/a",), {"seeds": 1}),
        (CRAWL, (f"{SITE}/a", "nonsense", "\ud800"), False, (f"{SITE}/a",), {"refused.invalid": 2}),
        (
            replace(CRAWL, state=State.STOPPING),
            (f"{SITE}/a", f"{SITE}/b"),
            True,
            (),
            {"refused.closed": 2, "seeds": 1},
        ),
        (replace(CRAWL, state=State.FINISHED), (f"{SITE}/a",), False, (), {"refused.closed": 1}),
        (
            replace(CRAWL, include=("/x",), exclude=("/b",)),
            (f"{SITE}/a", f"{SITE}/b"),
            False,
            (f"{SITE}/a",),
            {"refused.exclude": 1},
        ),
    ],
)
def test_seeds_become_candidates_at_depth_0(
    crawl: Crawl,
    references: tuple[str, ...],
    urls: tuple[str, ...],
    counts: dict[str, int],
    *,
    planned: bool,
) -> None:
    """Candidates have the time of the message. Refused seeds are counted (case 14)."""
    seeds = SeedsMessage(id="s", crawl=crawl.id, at_ms=5, references=references, planned=planned)
    journal = result_of(seeds, crawl).journal((), seeds.at_ms)
    assert journal.candidates == tuple(Target(url=url, depth=0) for url in urls)
    assert journal.at_ms == 5
    assert journal.counts == counts
