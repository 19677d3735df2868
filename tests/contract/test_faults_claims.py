"""Claims under faults: stale reads, throttled writes, partly processed batches."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orbweaver.adapters.dynamodb.claims import TAKE_OVER_TRIES
from orbweaver.model.errors import Permanent, Transient
from tests.contract import faults, samples
from tests.contract.faults import THROTTLED, faulty
from tests.contract.test_frontier import claimer

if TYPE_CHECKING:
    from tests.contract.faults import Answer, Call
    from tests.contract.worlds import AwsWorld


async def test_unprocessed_keys_are_read_again(moto_world: AwsWorld) -> None:
    container, client = faulty(moto_world, "dynamodb", batch_get_item=faults.HALF_READ)
    now_ms = moto_world.clock.now_ms()
    urls = [f"https://example.com/{number}" for number in range(90)]
    targets = [samples.target(number) for number in range(90)]
    await moto_world.container().frontier.claim(claimer("a", now_ms), targets)
    assert (await container.frontier.known(claimer("b", now_ms), urls)).held == set(urls)
    assert client.calls["batch_get_item"] == 7


async def test_stale_read_wins_no_claim(moto_world: AwsWorld) -> None:
    now_ms = moto_world.clock.now_ms()
    first, second = samples.target(1), samples.target(2)
    await moto_world.container().frontier.claim(claimer("a", now_ms), [first])
    script = faults.answering({"Responses": {}})
    container, client = faulty(moto_world, "dynamodb", batch_get_item=script)
    won = await container.frontier.claim(claimer("b", now_ms), [first, second])
    assert won == {second.url}
    assert client.calls["put_item"] == 1
    assert await container.frontier.claim(claimer("a", now_ms), [first]) == {first.url}
    later = claimer("c", now_ms + 86_400_000)
    assert await container.frontier.claim(later, [first]) == {first.url}


@pytest.mark.parametrize("kept", [False, True])
async def test_claim_replaced_during_release_is_released(
    moto_world: AwsWorld, *, kept: bool
) -> None:
    """The first pack's claim must not reappear when the claim that replaced it is released."""
    now_ms = moto_world.clock.now_ms()
    url = samples.target(1).url
    before, early, forced = (
        replace(claimer(pack, now_ms + after_ms), stale_before_ms=now_ms + after_ms)
        for pack, after_ms in (("a", 0), ("b", 1_000), ("c", 2_000))
    )
    others = moto_world.container().frontier
    for one in (before, early) if kept else (early,):
        await others.claim(one, [samples.target(1)])

    async def taken_over(call: Call, parameters: Answer) -> Answer:
        assert await others.claim(forced, [samples.target(1)]) == {url}
        return await call(**parameters)

    meanwhile = {"put_item" if kept else "delete_item": taken_over}
    container, _ = faulty(moto_world, "dynamodb", **meanwhile)
    await container.frontier.release(early, [url])
    await others.release(forced, [url])
    assert await others.last_claim("shop", url) is None


async def test_claim_taken_over_during_release_is_kept(moto_world: AwsWorld) -> None:
    now_ms = moto_world.clock.now_ms()
    url = samples.target(1).url
    early = claimer("a", now_ms)
    second, third = (
        replace(claimer(pack, now_ms + after_ms), stale_before_ms=now_ms + after_ms)
        for pack, after_ms in (("b", 1_000), ("c", 2_000))
    )
    others = moto_world.container().frontier
    await others.claim(early, [samples.target(1)])
    await others.claim(second, [samples.target(1)])

    async def taken_over(call: Call, parameters: Answer) -> Answer:
        assert await others.claim(third, [samples.target(1)]) == {url}
        return await call(**parameters)

    container, client = faulty(moto_world, "dynamodb", update_item=taken_over)
    await container.frontier.release(early, [url])
    assert client.calls["update_item"] == 1
    for pack in ("c", "b"):
        standing = await others.last_claim("shop", url)
        assert standing is not None
        assert standing.pack == pack
        await others.release(third, [url])


async def test_repeatedly_changed_claim_is_transient_error(moto_world: AwsWorld) -> None:
    now_ms = moto_world.clock.now_ms()
    await moto_world.container().frontier.claim(claimer("old", 0), [samples.target(1)])
    script = faults.always(faults.refused("ConditionalCheckFailedException"))
    container, client = faulty(moto_world, "dynamodb", put_item=script)
    with pytest.raises(Transient, match="again and again"):
        await container.frontier.claim(claimer("a", now_ms), [samples.target(1)])
    assert client.calls["put_item"] == TAKE_OVER_TRIES


@pytest.mark.parametrize("method", ["batch_execute_statement", "put_item"])
async def test_failed_claim_keeps_claims_already_won(moto_world: AwsWorld, method: str) -> None:
    now_ms = moto_world.clock.now_ms()
    targets = [samples.target(number) for number in range(40)]
    if method == "put_item":
        await moto_world.container().frontier.claim(claimer("old", 0), targets)
    container, _ = faulty(moto_world, "dynamodb", **{method: faults.failing(THROTTLED)})
    with pytest.raises(Transient):
        await container.frontier.claim(claimer("a", now_ms), targets)
    known = await container.frontier.known(claimer("b", now_ms), [one.url for one in targets])
    assert 15 <= len(known.held) < 40
    assert len(await container.frontier.claim(claimer("a", now_ms), targets)) == 40


async def test_only_throttled_insertions_are_repeated(moto_world: AwsWorld) -> None:
    asked: list[int] = []

    async def script(call: Call, parameters: Answer) -> Answer:
        statements = parameters["Statements"]
        asked.append(len(statements))
        if len(asked) > 2:
            return await call(**parameters)
        answer = await call(Statements=statements[::2])
        throttled = {"Error": {"Code": "ThrottlingError"}}
        responses: list[Answer] = [{}] * len(statements)
        responses[::2] = answer["Responses"]
        responses[1::2] = [throttled] * (len(statements) // 2)
        return {"Responses": responses}

    container, client = faulty(moto_world, "dynamodb", batch_execute_statement=script)
    targets = [samples.target(number) for number in range(20)]
    asks = claimer("a", moto_world.clock.now_ms())
    assert len(await container.frontier.claim(asks, targets)) == 20
    assert asked == [20, 10, 5]
    assert client.calls["put_item"] == 0


@pytest.mark.parametrize(
    ("code", "kind", "calls"),
    [("AccessDenied", Permanent, 1), ("InternalServerError", Transient, 8)],
)
async def test_persistent_insertion_failure_fails_claim(
    moto_world: AwsWorld, code: str, kind: type[Exception], calls: int
) -> None:
    script = faults.answering({"Responses": [{"Error": {"Code": code}}]})
    container, client = faulty(moto_world, "dynamodb", batch_execute_statement=script)
    with pytest.raises(kind):
        await container.frontier.claim(claimer("a", samples.NOW_MS), [samples.target(1)])
    assert client.calls["batch_execute_statement"] == calls
