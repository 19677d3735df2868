"""The command `extract`: item rules applied to one page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orbweaver.model.http_exchange import Failure, Response
from orbweaver.model.outcome import Reason
from tests.unit.cli.fakes import SITE, Stage
from tests.unit.stage import answer

DEFINITION = """
seeds = ["https://example.com/"]
[[items]]
name = "books"
match = '/books/'
[items.fields]
title = { css = "h1", required = true }
price = { css = ".price", type = "price" }
[[items]]
name = "links"
match = '/books/'
each = "a"
fields = { link = { attribute = "href", type = "url" } }
"""
PAGE = b"<h1>One</h1><p class=price>5 EUR</p><a href=/a>x</a><a href=mailto:b@c.example>y</a>"
HTML = {"content_type": "text/html; charset=utf-8"}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    (tmp_path / "crawl.toml").write_text(DEFINITION)
    (tmp_path / "page.html").write_bytes(PAGE)
    return Stage(folder=tmp_path)


def test_file_is_extracted_by_rules_of_its_url(stage: Stage) -> None:
    assert stage.output("extract page.html --url https://example.com/books/1/", code=1) == (
        "https://example.com/books/1/\n"
        "\n"
        "books: 1 item, 0 invalid\n"
        "  [0]\n"
        '    title           "One"\n'
        '    price           "5"\n'
        '    price_currency  "EUR"\n'
        "\n"
        "links: 2 items, 1 invalid\n"
        "  [0]\n"
        '    link  "https://example.com/a"\n'
        "  [1]\n"
        "    !     link: not a URL of the web: 'mailto:b@c.example' (not an http or https URL)\n"
        "    link  -\n"
    )


def test_json_output_has_line_per_item(stage: Stage) -> None:
    assert stage.run("extract page.html --url https://example.com/books/1/ --json") == 1
    rows = [json.loads(line) for line in stage.said.splitlines()]
    assert [(row["rule"], row["place"], bool(row["problems"])) for row in rows] == [
        ("books", 0, False),
        ("links", 0, False),
        ("links", 1, True),
    ]
    assert rows[0]["fields"] == {"title": "One", "price": "5", "price_currency": "EUR"}
    assert rows[0]["url"] == "https://example.com/books/1/"


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        (b'{"books": [{"title": "One"}]}', 0, '    title  "One"\n'),
        (b'{"books": [{"title": ', 1, "    !      not JSON: Expecting value (character 21)\n"),
        (b"<h1>", 1, "no rule matches https://example.com/books/1/: the rules are books"),
    ],
)
def test_saved_json_is_extracted_by_rules_for_json(
    stage: Stage, body: bytes, code: int, said: str
) -> None:
    (stage.folder / "page.json").write_bytes(body)
    (stage.folder / "crawl.toml").write_text(
        """seeds = ["https://example.com/"]
[[items]]
name = "books"
match = '/books/'
source = "json"
each = "$.books[*]"
fields = { title = "$.title" }
"""
    )
    assert said in stage.output("extract page.json --url https://example.com/books/1/", code=code)


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("$.next", b'{"next": "/books/2"}', f"next page: {SITE}/books/2"),
        ("$.nxt", b'{"next": "/books/2"}', "next page: none, because $.nxt finds nothing or null"),
        ("$.next", b'{"next": 5}', "next page: $.next finds no URL: 5"),
        ("$.next", b"<h1>", "this page of the API cannot be read: not JSON: Expecting value"),
    ],
)
def test_page_of_api_shows_next_page(stage: Stage, path: str, body: bytes, said: str) -> None:
    (stage.folder / "page.json").write_bytes(body)
    (stage.folder / "crawl.toml").write_text(
        f"""[[api]]
url = "{SITE}/books/1"
paging = {{ by = "next", path = "{path}" }}
[[items]]
name = "books"
match = '/books/'
source = "json"
fields = {{ title = "$.next" }}
"""
    )
    stage.run(f"extract page.json --url {SITE}/books/1")
    assert said in stage.said


def test_url_is_requested_after_robots_txt_with_redirects(stage: Stage) -> None:
    stage.answers[f"{SITE}/robots.txt"] = answer(404, None)
    stage.answers[f"{SITE}/old"] = answer(301, None, location="/books/1")
    body = PAGE.replace(b"mailto:b@c.example", b"/b")
    stage.answers[f"{SITE}/books/1"] = answer(200, body, **HTML)
    assert stage.run(f"extract {SITE}/old") == 0
    assert stage.said.startswith(f"{SITE}/books/1\n\nbooks: 1 item, 0 invalid\n")
    assert f"redirected to {SITE}/books/1" in stage.noted


@pytest.mark.parametrize(
    ("given", "code", "said"),
    [
        (answer(404, None), 8, "cannot be read: http_client_error: HTTP 404"),
        (Failure(reason=Reason.DNS, detail="no such name"), 4, "cannot be read: dns: no such name"),
        (answer(301, None, location="/books/1"), 7, "redirects more than 5 times"),
    ],
)
def test_url_without_page_names_reason_of_crawl(
    stage: Stage, given: Response | Failure, code: int, said: str
) -> None:
    stage.answers[f"{SITE}/robots.txt"] = answer(404, None)
    stage.answers[f"{SITE}/books/1"] = given
    assert said in stage.errors(f"extract {SITE}/books/1", code=code)


def test_robots_txt_is_obeyed_unless_definition_disables_it(stage: Stage) -> None:
    robots = answer(200, b"User-agent: *\nDisallow: /books/\n")
    stage.answers[f"{SITE}/robots.txt"] = robots
    assert stage.run(f"extract {SITE}/books/1") == 6
    assert f"robots.txt forbids {SITE}/books/1: save the page" in stage.noted
    stage.answers[f"{SITE}/robots.txt"] = Failure(reason=Reason.CONNECT, detail="refused")
    assert stage.run(f"extract {SITE}/books/1") == 4
    own = DEFINITION.replace("[[items]]", "[politeness]\nrobots=false\n[[items]]", 1)
    (stage.folder / "crawl.toml").write_text(own)
    stage.answers[f"{SITE}/books/1"] = answer(200, PAGE, **HTML)
    assert stage.run(f"extract {SITE}/books/1") == 1


def test_page_without_matching_rule_lists_patterns(stage: Stage) -> None:
    assert stage.run("extract page.html --url https://example.com/b/1/") == 1
    url = "https://example.com/b/1/"
    assert stage.said == f"no rule matches {url}: the rules are books (/books/), links (/books/)\n"


BARE = 'seeds = ["https://example.com/"]\n'
LOGIN = f'{DEFINITION}\n[auth."https://example.com"]\nbearer = "env:TOKEN"\n'
NO_LOGIN = "does not log in at https://example.com: crawl, or save the page"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("extract https://x/ --config bare.toml", "bare.toml has no item rules: add [[items]]"),
        ("extract https://example.com/a --config login.toml", NO_LOGIN),
        ("scrape https://example.com/a --items login.toml", NO_LOGIN),
        ("extract", "missing argument: URL|FILE"),
        ("extract none.html", "there is no file none.html; a URL begins with http:// or https://"),
        (
            "extract page.html",
            "--url is missing: rules match URLs, so give the address of page.html",
        ),
        ("extract https://x/ --url https://y/", "--url is the address of a file: omit it"),
        ("extract page.html --config no.toml", "there is no no.toml: `orbweaver init no.toml`"),
        ("extract ftp://x/", "'ftp://x/': not an http or https URL"),
    ],
)
def test_errors_name_fix_and_request_nothing(stage: Stage, line: str, said: str) -> None:
    (stage.folder / "bare.toml").write_text(BARE)
    (stage.folder / "login.toml").write_text(LOGIN)
    assert said in stage.errors(line)


def test_page_over_budget_has_invalid_item_with_reason(stage: Stage) -> None:
    """The command reads a page with the limits of a crawl."""
    formats = "".join(f"<p><font x={at}>" for at in range(1_000))
    (stage.folder / "page.html").write_text(formats)
    assert stage.run("extract page.html --url https://example.com/books/1/") == 1
    assert stage.said.count(" reading its items: more than 160 MB\n") == 2


CUSTOM = """
seeds = ["https://example.com/"]
[[items]]
name = "x"
match = '.'
extractor = "mine"
fields = { n = { type = "integer" } }
"""


def test_custom_functions_come_from_option_or_cdk_json(stage: Stage) -> None:
    (stage.folder / "crawl.toml").write_text(CUSTOM)
    (stage.folder / "own.py").write_text(
        "import json\ndef mine(page, url):\n    yield {'n': len(page.tree.css('a'))}\n"
    )
    line = "extract page.html --url https://example.com/ --json"
    assert json.loads(stage.output(f"{line} --extractor own.py"))["fields"] == {"n": 2}
    assert stage.run(line) == 1
    assert "extractor mine: there is no such function (none is deployed)" in stage.said
    (stage.folder / "cdk.json").write_text('{"context": {"extractor": "own.py"}}')
    assert stage.run(line) == 0
    for text, said in (
        ("def other(page, url): ...", "own.py has no function mine (it has other)"),
        ("x = 1", "own.py has no function mine (it has none)"),
        ("import nothing_like_it", "own.py cannot be imported: ModuleNotFoundError"),
        ("def (", "own.py cannot be imported: SyntaxError"),
    ):
        (stage.folder / "own.py").write_text(text)
        assert said in stage.errors(line)
    (stage.folder / "own.py").unlink()
    assert stage.run(line) == 2


TABLES = "items/example.com/books, items/example.com/links"


def test_check_lists_rules_with_fields_and_tables(stage: Stage) -> None:
    assert stage.run("check crawl.toml") == 0
    rows = [line.strip() for line in stage.said.splitlines() if "books" in line or "links:" in line]
    assert rows == [
        "items     books: URLs that match /books/, one per page: title!, price (price)",
        "links: URLs that match /books/, one per a: link (url)",
        f"exports   {TABLES}: 4 columns in total; ! marks a required field",
    ]
