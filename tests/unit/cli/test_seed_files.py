"""Lists of seeds, in files and on the standard input."""

from __future__ import annotations

import gzip
import io
from itertools import islice

import pytest

from orbweaver.cli import seed_files
from orbweaver.control import spec_checks
from tests.unit.cli.fakes import Stage

A, B = "https://shop.test/a", "https://shop.test/b"
PLAIN = f"# mine\n\n  {A}  \r\n{B}\n{A}\n"
CSV = f'id,URL,title\n# old\n1,{A},"two\nlines"\n\n2,,none\n3,{B},last\n'


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("urls.txt", PLAIN, "--seeds urls.txt"),
        ("urls.txt", f"\ufeff{PLAIN}", "--seeds urls.txt"),
        ("urls.csv", CSV, "--seeds urls.csv"),
        ("urls.csv", CSV, "--seeds urls.csv --column url"),
        ("urls.csv", CSV.replace(",", ";"), "--seeds urls.csv --column URL"),
        ("urls.tsv", CSV.replace(",", "\t"), "--seeds urls.tsv"),
        ("table", CSV, "--seeds table --column url"),
        ("table", f"1,{A}\n2,{B}\n", "--seeds table --column 2"),
        ("link.csv", f"link\n{A}\n{B}\n", "--seeds link.csv --column link"),
        ("one.csv", f"{A}\n{B}\n", "--seeds one.csv"),
        ("a.txt", f"{A}\n", f"--seeds a.txt {B}"),
        ("-", PLAIN, "--seeds -"),
        ("-", PLAIN, "-"),
        ("-", PLAIN, "- --seeds -"),
        ("-", CSV, "- --column url"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_crawl_begins_at_urls_of_list(
    stage: Stage, name: str, content: str, words: str, *, packed: bool
) -> None:
    data = content.encode()
    if name == "-":
        stage.stdin = io.StringIO(content)
    else:
        (stage.folder / name).write_bytes(gzip.compress(data) if packed else data)
    assert stage.run(f"crawl {words} --name one") == 0
    (crawl,) = stage.world.crawls.values()
    assert sorted(crawl.seeds) == [A, B]


@pytest.mark.parametrize(
    ("name", "content", "words", "said"),
    [
        ("a.txt", f"{A}\n\nfoo bar\n{B}\nhttp://me@x.test/", "", ["line 3: 'foo bar'", "line 5:"]),
        ("a.csv", f'url,n\n{A},"1\n2"\nnot,3\n', "", ["line 4: 'not' cannot be crawled"]),
        ("a.csv", f"1,{A}\n2,x\n", "--column 2", ["line 2: 'x' cannot be crawled"]),
        ("a.csv", f"id,link\n1,{A}\n", "", ["a.csv has no column 'url'", "one of id, link"]),
        ("a.txt", f"id,link\n1,{A}\n", "--column x", ["a.txt has no column 'x'"]),
        ("a.txt", f'{{"url": "{A}", "metod": "POST"}}', "", ["unknown key 'metod': give url, "]),
        ("a.txt", '{"url"', "", ["cannot be crawled: it is not JSON"]),
        ("a.txt", "x\n" * 25, "", ["line 20: 'x'", "5 more lines cannot be crawled"]),
        ("a.txt", "", "", ["a.txt has no URL", "there is no seed: give at least one URL"]),
        ("a.txt", "\x1f\udc8bx", "", ["a.txt is not a whole gzip file"]),
        ("a.txt", f"{A}\n\udcff\n", "", ["a.txt, line 2 is not UTF-8"]),
        ("a.txt", f"{A}\n" * 9, "", ["a.txt has more than 5 URLs", "split the list"]),
        ("a.txt", "x" * 2_000, "", ["a.txt, line 1: a list has up to 30 lines of 1,000"]),
        ("a.txt", "\n" * 40, "", ["a.txt, line 31: a list has up to 30 lines"]),
        ("b.txt", "", "", ["a.txt cannot be read: No such file or directory"]),
    ],
)
def test_list_with_problems_is_refused_with_line_numbers(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    content: str,
    words: str,
    said: list[str],
) -> None:
    monkeypatch.setattr(seed_files, "LINE_CHARS_MAX", 1_000)
    monkeypatch.setattr(seed_files, "LINES_MAX", 30)
    monkeypatch.setattr(spec_checks, "SEEDS_MAX", 5 if "more than" in said[0] else 100)
    (stage.folder / name).write_bytes(content.encode("utf-8", "surrogateescape"))
    given = name if name != "b.txt" else "a.txt"
    assert stage.run(f"crawl --seeds {given} {words}") == 2
    assert [one for one in said if one not in stage.noted] == []
    assert stage.world.crawls == {}


def test_column_without_list_is_refused(stage: Stage) -> None:
    assert "give --seeds FILE, too" in stage.errors(f"crawl {A} --column url")


def test_list_is_read_a_line_at_a_time() -> None:
    stream = io.StringIO(f"{A}\n" * 9)
    lines = seed_files.SeedLines("the input", stream)
    assert list(islice(lines.bounded(lines.plain()), 3)) == [(1, A), (2, A), (3, A)]
    assert stream.tell() == 3 * (len(A) + 1)
