"""The commands `dlq list`, `show`, `redrive` and `purge`."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from orbweaver.frontier.messages import Pack, SeedsMessage, encode
from orbweaver.model.crawl import default_crawl
from orbweaver.model.target import Target
from tests.memory import Mail
from tests.unit.cli.fakes import NOW_MS, Machine, Stage, Terminal

SECRET = "hunter2"


def buried(number: int, crawl: str = "default") -> Mail:
    """Return a dead letter: a pack that failed too often."""
    target = Target(url=f"https://a.example/{number}?token={SECRET}", depth=1)
    pack = Pack(id=f"p{number}", crawl=crawl, at_ms=NOW_MS, targets=(target,), failures=3)
    return Mail(body=encode(pack), reason="failed 4 times", at_ms=NOW_MS + 2_000, id=f"m-{number}")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(folder=tmp_path, machine=Machine(up_already=True))
    stage.clock.at_ms = NOW_MS + 60_000
    stage.world.crawls["default"] = default_crawl(NOW_MS)
    odd = Mail(body=f'{{"key": "{SECRET}"}}', reason="unknown field 'key'", at_ms=NOW_MS, id="odd")
    stage.world.buried += [buried(1), buried(2), odd]
    return stage


def test_list_has_line_per_cause_with_count_and_example(stage: Stage) -> None:
    head, first, second = stage.output("dlq list").splitlines()
    assert head.split() == ["letters", "cause", "oldest", "newest", "for", "example"]
    assert first.split()[:4] == ["2", "failed", "too", "often"]
    assert first.startswith("2  ".rjust(len("letters  ")))
    assert first.count("2026-11-21T09:00:00Z") == 2
    assert first.endswith("m-2 default https://a.example/2?…")
    assert second.endswith("odd {key: text of 7}")
    assert "3 dead letters: `orbweaver dlq show ID`" in stage.noted
    assert len(stage.world.buried) == 3


def test_list_as_json_has_object_per_cause_and_total(stage: Stage) -> None:
    first, second, result = stage.run_json("dlq list --json")
    assert (first["cause"], first["kinds"]) == ("failed too often", {"pack": 2})
    assert first["sample"] == {
        "id": "m-2",
        "crawl": "default",
        "url": "https://a.example/2?…",
        "body": None,
    }
    assert second["sample"]["body"] == "{key: text of 7}"
    assert result == {"type": "result", "letters": 3, "causes": 2, "cut": False}


def test_list_reports_reached_limit_and_no_matches(stage: Stage) -> None:
    assert stage.run_json("dlq list --host a.example --limit 1 --json")[-1]["cut"] is True
    assert "only 1 were read" in stage.noted
    assert stage.output("dlq list --reason nothing-like-it") == ""
    assert stage.noted == "0 dead letters\n"


@pytest.mark.parametrize("name", ["m-1", "p1"])
def test_show_by_own_or_pack_id_hides_secrets(stage: Stage, name: str) -> None:
    assert stage.run(f"dlq show {name}") == 0
    rows = {line.split()[0]: line.split(maxsplit=1)[1] for line in stage.said.splitlines()}
    assert rows == {
        "id": "m-1",
        "kind": "pack",
        "message": "p1",
        "crawl": "default",
        "cause": "failed too often",
        "reason": "failed 4 times",
        "receives": "1",
        "failures": "3",
        "first_seen": "2026-11-21T09:00:00Z",
        "last_seen": "2026-11-21T09:00:02Z",
        "urls": "https://a.example/1?…",
    }


def test_show_by_prefix_lists_all_matches(stage: Stage) -> None:
    assert [found["id"] for found in stage.run_json("dlq show m- --json")] == ["m-1", "m-2"]
    assert stage.run_json("dlq show odd --json")[0]["body"] == "{key: text of 7}"
    assert SECRET not in stage.said
    assert "\n\n" in stage.output("dlq show m-")
    assert "there is no dead letter 'nobody'" in stage.errors("dlq show nobody", code=11)


def test_show_of_large_message_lists_first_urls(stage: Stage) -> None:
    references = tuple(f"https://a.example/{number}" for number in range(40))
    seeds = SeedsMessage(id="s1", crawl="news", at_ms=2**53 - 1, references=references)
    mail = Mail(body=encode(seeds), reason="unknown crawl 'news'", at_ms=2**52, id="many")
    stage.world.buried.append(mail)
    stage.shows("dlq show s1", "and 15 more", "unknown\n")


def test_redrive_reports_sent_and_skipped_letters(stage: Stage) -> None:
    assert stage.output("dlq redrive --all") == "2 letters sent back\n"
    assert stage.noted == "1 left: can never succeed; --malformed sends them anyway\n"
    assert len(stage.world.sent) == 2
    assert len(stage.world.buried) == 1
    assert stage.run("dlq redrive --reason field --malformed --json") == 0
    assert stage.objects() == [{"type": "result", "sent": 1, "skipped": {}, "cut": False}]
    assert stage.world.buried == []


@pytest.mark.parametrize("option", ["", " --json"])
def test_redrive_reports_progress_every_few_seconds(stage: Stage, option: str) -> None:
    stage.world.buried += [buried(number) for number in range(3, 9)]
    assert stage.run(f"dlq redrive --host a.example --rate 1{option}") == 0
    if option:
        assert [said["sent"] for said in stage.objects() if said["type"] == "progress"] == [4, 7]
    else:
        assert "4 letters sent back so far\n7 letters sent back so far" in stage.noted


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("dlq redrive", "give --reason or --host, or --all"),
        ("dlq redrive --all --host x", "but not both"),
        ("dlq redrive --all --rate 0", "--rate: give 1 or more"),
        ("dlq list --limit 0", "--limit: give 1 or more"),
        ("dlq purge", "give --yes"),
        ("dlq lst", "did you mean `orbweaver dlq list`?"),
        ("dlq show", "missing argument: ID"),
        ("dlq", "missing argument"),
    ],
)
def test_invalid_arguments_are_refused_with_fix(
    stage: Stage, line: str, fix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert fix in stage.errors(line)
    assert len(stage.world.buried) == 3
    assert stage.world.sent == []


@pytest.mark.parametrize(
    ("answer", "code", "left"), [("y\n", 0, 1), ("YES\n", 0, 1), ("n\n", 1, 3), ("", 1, 3)]
)
def test_purge_asks_with_count_and_needs_a_yes(
    stage: Stage, answer: str, code: int, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    assert "delete 2 dead letters? (y/N)" in stage.errors("dlq purge --host a.example", code=code)
    assert len(stage.world.buried) == left
    assert ("2 dead letters deleted" in stage.said) is (code == 0)


def test_purge_with_yes_or_without_letters_does_not_ask(stage: Stage) -> None:
    assert stage.run_json("dlq purge --yes --json") == [{"type": "result", "purged": 3}]
    assert stage.world.buried == []
    assert stage.output("dlq purge") == "0 dead letters deleted\n"
