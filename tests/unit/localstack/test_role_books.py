"""Comparison of used and granted permissions after end-to-end tests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.iam.__main__ import main
from tests.iam.book import Book, covers, read_uses, save, together

GRANTED = frozenset({"worker s3:PutObject bucket/bodies/*", "worker dynamodb:GetItem table/crawls"})
USED = frozenset({"worker s3:PutObject bucket/bodies/", "worker dynamodb:GetItem table/crawls"})


@pytest.mark.parametrize(
    ("use", "covered"),
    [
        ("worker s3:PutObject bucket/bodies/", True),
        ("worker s3:PutObject bucket/exports/", False),
        ("worker s3:GetObject bucket/bodies/", False),
        ("api s3:PutObject bucket/bodies/", False),
        ("", False),
    ],
)
def test_grant_covers_one_action_of_one_role(use: str, *, covered: bool) -> None:
    assert covers("worker s3:PutObject bucket/bodies/*", use) is covered


def test_book_lists_denied_and_spare_permissions() -> None:
    book = Book(
        used=USED | {"api sqs:SendMessage crawl"}, granted=GRANTED | {"api glue:GetTable x"}
    )
    assert book.denied == ["api sqs:SendMessage crawl"]
    assert book.spare == ["api glue:GetTable x"]


def test_uses_are_read_with_role_from_function_name(tmp_path: Path) -> None:
    file = tmp_path / "permissions.jsonl"
    assert read_uses(file, str) == frozenset()
    use = {"function": "Orbweaver-api", "action": "dynamodb:Scan", "resource": "table/Orb-Crawls-1"}
    file.write_text(json.dumps(use) + "\n")
    uses = read_uses(file, lambda resource: resource.replace("Orb-Crawls-1", "crawls"))
    assert uses == {"api dynamodb:Scan table/crawls"}


def test_books_are_compared_in_any_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = [
        Book(used=frozenset(sorted(USED)[:1]), granted=GRANTED),
        Book(used=frozenset(sorted(USED)[1:]), granted=GRANTED),
    ]
    for place, book in enumerate(both):
        save(book, tmp_path / f"{place}.json")
    files = [*tmp_path.glob("*.json")]
    assert together(files) == together(files[::-1]) == Book(used=USED, granted=GRANTED)
    assert main([str(tmp_path), "--all"]) == 0
    (tmp_path / "1.json").unlink()
    assert main([str(tmp_path)]) == 0
    assert main([str(tmp_path), "--all"]) == 1
    assert "granted, and not used: worker s3:PutObject bucket/bodies/*" in capsys.readouterr().err


def test_denied_use_or_missing_book_fails(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 1
    save(Book(used=USED, granted=frozenset()), tmp_path / "book.json")
    assert main([str(tmp_path)]) == 1
