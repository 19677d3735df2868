"""docs/api.md: its table matches the operations, and its commands work."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from orbweaver.api.app import BODY_BYTES_MAX
from orbweaver.api.crawls import FILE_BYTES_MAX, LINES_MAX, URLS_MAX
from orbweaver.api.routes import OPERATIONS
from tests.unit.api.stage import SITE, Stage

GUIDE = Path(__file__).parents[3] / "docs" / "api.md"
HEAD = "| operation | what it does | answers | refusals of its own |\n| --- | --- | --- | --- |\n"


def table() -> str:
    rows = []
    for one in OPERATIONS:
        does = (one.act.__doc__ or "").rstrip(".") if one.act is not None else "Describe this API"
        answers = ", ".join(map(str, one.answers))
        refusals = ", ".join(map(str, one.refusals)) or "none"
        rows.append(f"| `{one.method} {one.path}` | {does} | {answers} | {refusals} |\n")
    return HEAD + "".join(rows)


def commands() -> list[list[str]]:
    blocks = re.findall(r"```sh\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", "").splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("api ")]


def request_of(words: list[str], crawl_id: str) -> dict[str, Any]:
    found: dict[str, Any] = {"method": "GET", "body": None, "headers": {}}
    queries = []
    given = iter(words)
    for word in given:
        match word:
            case "--request":
                found["method"] = next(given)
            case "--header":
                name, _, value = next(given).partition(": ")
                found["headers"][name] = value
            case "--json":
                found["body"] = json.loads(next(given))
                found["headers"]["Content-Type"] = "application/json"
                found["method"] = "POST" if found["method"] == "GET" else found["method"]
            case "--data-urlencode":
                name, _, value = next(given).partition("=")
                queries.append(f"{name}={quote(value.replace('$ID', crawl_id), safe='')}")
            case "--get":
                pass
            case _:
                assert word.startswith("${ApiUrl}")
                found["target"] = "/" + word.removeprefix("${ApiUrl}").replace("$ID", crawl_id)
    if queries:
        found["target"] += f"?{'&'.join(queries)}"
    return found


def test_guide_table_has_all_operations_and_answers() -> None:
    assert table() in GUIDE.read_text()


async def test_guide_commands_have_described_effect() -> None:
    stage = Stage()
    stage.world.files["seeds/shops.txt"] = f"# shops\n{SITE}/shop\n".encode()
    crawl_id, asked = "", set()
    for words in commands():
        request = request_of(words, crawl_id)
        reply = await stage.ask(
            request["method"], request["target"], request["body"], request["headers"]
        )
        assert reply.status < 300, (words, reply)
        crawl_id = crawl_id or reply.body["id"]
        path = request["target"].partition("?")[0].replace(crawl_id, "{id}")
        asked.add((request["method"], path))
    assert asked == {(one.method, one.path) for one in OPERATIONS if one.act is not None}


@pytest.mark.parametrize(
    "words",
    [
        f"{URLS_MAX:,} URLs",
        f"{BODY_BYTES_MAX // 1_000_000} MB;",
        f"{LINES_MAX:,} lines",
        f"{FILE_BYTES_MAX // 1_000_000} MB.",
    ],
)
def test_guide_names_real_bounds(words: str) -> None:
    assert words in " ".join(GUIDE.read_text().split())


async def test_guide_example_of_problem_is_real_answer() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    reply = await Stage().post("/crawls", {"seeds": [SITE], "limits": {"page": 5}})
    assert reply.body == json.loads(example)
