"""Erasure in dead letters: other URLs and unreadable letters are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from orbweaver.erasure import dead_letters
from orbweaver.erasure.dead_letters import DeadLetterEraser, message_left
from orbweaver.erasure.scope import ErasureScope
from orbweaver.frontier.dead_letters import RECEIVED_TOO_OFTEN
from orbweaver.frontier.messages import (
    Close,
    Loose,
    Message,
    MessageSource,
    Pack,
    SeedsMessage,
    decode,
    encode,
)
from orbweaver.model.crawl import State
from orbweaver.model.target import Target
from tests.memory import Mail
from tests.unit.forgetting import OTHER, URL, stores_of
from tests.unit.stage import CRAWL, NOW_MS, ROOT, Stage, pack_of

THERE = "https://other.example/x"
WHOLE = ErasureScope(urls=frozenset({URL}))
RUN = ErasureScope(runs=frozenset({"c-1"}))
SEEDS = SeedsMessage(id="5eed", crawl=CRAWL.id, at_ms=NOW_MS, references=(URL, OTHER))
NEWER = '{"v":2,"crawl":"site-1","at":1,"work":"compressed"}'
SAME = object()


@pytest.fixture
def stage() -> Stage:
    return Stage()


def eraser_of(stage: Stage) -> DeadLetterEraser:
    return DeadLetterEraser(stores_of(stage), WHOLE)


def is_visible(stage: Stage, mails: Sequence[Mail]) -> bool:
    looks = stage.world.looks
    return all(looks.get(mail.id, (0, 0))[1] <= stage.clock.now_ms() for mail in mails)


def _pack(*targets: Target) -> Pack:
    return Pack(id="p", crawl="c-1", at_ms=1, targets=targets)


def _target(url: str, referrer: str | None = None) -> Target:
    return Target(url=url, depth=1, referrer=referrer)


@pytest.mark.parametrize(
    ("message", "left"),
    [
        (_pack(_target(URL)), None),
        (_pack(_target(OTHER)), SAME),
        (_pack(_target(URL), _target(OTHER, URL)), _pack(_target(OTHER))),
        (
            _pack(_target(OTHER, THERE), _target(THERE, URL)),
            _pack(_target(OTHER, THERE), _target(THERE)),
        ),
        (SeedsMessage(id="s", crawl="c-1", at_ms=1, references=(URL,)), None),
        (
            SeedsMessage(id="s", crawl="c-1", at_ms=1, references=(f"{URL}#top", OTHER)),
            SeedsMessage(id="s", crawl="c-1", at_ms=1, references=(OTHER,)),
        ),
        (SeedsMessage(id="s", crawl="c-1", at_ms=1, references=(OTHER,)), SAME),
        (Loose(crawl="c-1", references=(URL, "x")), Loose(crawl="c-1", references=("x",))),
        (Close(crawl="c-1", at_ms=1), SAME),
    ],
)
def test_message_keeps_other_urls_without_referrer(
    message: Message, left: Message | object | None
) -> None:
    found = message_left(message, "", WHOLE)
    assert found is message if left is SAME else found == left
    assert message_left(message, "", RUN) is None
    other = ErasureScope(runs=frozenset({"c-2"}))
    assert message_left(message, "", other) is message


@pytest.mark.parametrize(
    ("body", "scope", "goes"),
    [
        (f'{{"strange": "{URL}"}}', WHOLE, True),
        ('{"strange": "x"}', WHOLE, False),
        ('{"v":2,"crawl":"c-1","at":1}', WHOLE, True),
        ('{"v":2,"crawl":"c-1","at":1}', RUN, True),
        ('{"v":2,"crawl":"c-2","at":1}', RUN, False),
        ('{"v":2,"at":1}', RUN, True),
    ],
)
def test_unreadable_message_is_removed_if_in_scope(
    body: str, scope: ErasureScope, *, goes: bool
) -> None:
    message = decode(body)
    assert message_left(message, body, scope) is (None if goes else message)


@pytest.mark.parametrize("source", MessageSource)
async def test_malformed_letter_naming_url_is_erased(stage: Stage, source: MessageSource) -> None:
    bodies = [f'{{"strange": "{URL}"}}', f"[{URL}]", f'{{"strange": "{URL}0"}}']
    stage.world.buried += [Mail(body=body, source=source, reason="malformed") for body in bodies]
    eraser = eraser_of(stage)
    await eraser.erase()
    assert dict(eraser.done) == {"dead_letters": 2}
    assert [mail.body for mail in stage.world.buried] == bodies[2:]
    assert is_visible(stage, stage.world.buried)


async def test_letter_of_newer_version_is_kept_and_reported(stage: Stage) -> None:
    stage.world.buried.append(Mail(body=NEWER, reason="newer"))
    eraser = eraser_of(stage)
    await eraser.erase()
    assert [mail.body for mail in stage.world.buried] == [NEWER]
    assert ["deploy that version" in left for left in eraser.left] == [True]


@pytest.mark.parametrize(("reason", "said"), [("crashed", "crashed"), (None, RECEIVED_TOO_OFTEN)])
async def test_rest_of_letter_stays_dead_letter(
    stage: Stage, reason: str | None, said: str
) -> None:
    other = Mail(body=encode(pack_of(OTHER)), reason="other")
    held = Mail(
        body=encode(Loose(crawl="site-1", references=(URL, OTHER))),
        reason=reason,
        source=MessageSource.SEEDS,
    )
    stage.world.buried += [held, other]
    eraser = eraser_of(stage)
    assert [letter.id for letter in await eraser.find()] == [held.id]
    assert is_visible(stage, stage.world.buried)
    await eraser.erase()
    (rest,) = (mail for mail in stage.world.buried if mail.id != other.id)
    assert rest.body == encode(Loose(crawl="site-1", references=(OTHER,)))
    assert (rest.reason, rest.source) == (said, MessageSource.SEEDS)
    assert is_visible(stage, stage.world.buried)


@pytest.mark.parametrize("most", [2, 4])
async def test_letters_beyond_memory_limit_are_reported(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(dead_letters, "LETTERS_MAX", most)
    monkeypatch.setattr(dead_letters, "TAKEN_MAX", 1)
    stage.world.buried += [Mail(body=encode(pack_of(URL)), reason="x") for _ in range(3)]
    eraser = eraser_of(stage)
    await eraser.erase()
    assert len(stage.world.buried) == max(0, 3 - most)
    assert any("run this again" in said for said in eraser.left) is (most < 3)


@pytest.mark.parametrize("state", State)
async def test_letters_of_live_crawl_end_after_redrive(stage: Stage, state: State) -> None:
    stage.world.crawls[CRAWL.id] = replace(CRAWL, state=state)
    mails = [Mail(body=encode(one), reason="crashed") for one in (pack_of(URL), SEEDS)]
    stage.world.buried += mails
    eraser = eraser_of(stage)
    await eraser.erase()
    bodies = [mail.body for mail in stage.world.buried]
    if stage.world.crawls[CRAWL.id].live:
        assert bodies == [mail.body for mail in mails]
        assert [CRAWL.id in said and "redrive" in said for said in eraser.left] == [True]
    else:
        assert bodies == [encode(replace(SEEDS, references=(OTHER,)))]
        assert (dict(eraser.done), eraser.left) == ({"dead_letters": 2}, set())


async def test_taken_letters_are_hidden_from_others(stage: Stage) -> None:
    stage.world.buried.append(Mail(body=encode(pack_of(URL, pack=ROOT)), reason="x"))
    await eraser_of(stage)._take()
    hidden_ms = NOW_MS + dead_letters.HOLD_S * 1000
    assert [until_ms for _, until_ms in stage.world.looks.values()] == [hidden_ms]
