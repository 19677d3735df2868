"""A crawl behind a login: one session for all workers, and secrets only where they belong."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orbweaver.adapters.dynamodb.table import from_item
from orbweaver.model.auth import login_prefix
from orbweaver.model.compression import decompress, known
from tests.e2e.stand import TABLES, names, until
from tests.e2e.test_runs_under_roles import ended
from tests.sites.members import PASSWORD, USER, Members
from tests.sites.server import Answer, Asked, background

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.stand import Stand

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

NAME = f"{login_prefix('Orbweaver')}members"
PAGES, HALF, AT_ONCE, SLOW_S = 40, 20, 2, 1.0
SESSION = b"sid-of-member"


class SlowMembers(Members):
    """Answers slowly until two workers request at once, so that the second one has time to start.

    A worker sends up to `AT_ONCE` requests at once.
    """

    @property
    def is_shared(self) -> bool:
        return any(record.in_flight > AT_ONCE for record in self.log.records())

    def answer(self, asked: Asked) -> Answer:
        answer = super().answer(asked)
        slow = asked.target.startswith("/p/") and not self.is_shared
        return replace(answer, delay_s=SLOW_S) if slow else answer


def write(folder: Path, site: Members) -> Path:
    login = {
        "url": "/login",
        "form": "#login",
        "fields": {"user": f"ssm:/{NAME}", "pass": f"secret:{NAME}"},
        "check": {"text": "For members"},
    }
    document = {
        "name": "members",
        "seeds": [f"{site.url}/p/{number}" for number in range(HALF)],
        "records": {"text": True},
        "politeness": {"delay": "0s", "concurrency": AT_ONCE},
        "auth": {site.url: {"login": login}},
    }
    (file := folder / "crawl.json").write_text(json.dumps(document))
    return file


def stored_in(stand: Stand) -> Iterator[tuple[str, bytes]]:
    """Yield all items of tables, files, and logs, decompressed. Items contain sent messages."""
    for output in TABLES:
        for item in map(from_item, stand.scan(output)):
            blobs = [one for one in item.values() if isinstance(one, bytes)]
            plain = b"".join(decompress(one)[0] for one in blobs if known(one))
            yield f"{output} {item.get('host', '')}", plain + repr(item).encode()
    for key, body in stand.files():
        yield key, gzip.decompress(body) if body.startswith(b"\x1f\x8b") else body
    with stand.client("logs") as logs:
        for group in logs.describe_log_groups()["logGroups"]:
            name = group["logGroupName"]
            for page in logs.get_paginator("filter_log_events").paginate(logGroupName=name):
                yield name, json.dumps(page["events"]).encode()


def test_workers_share_session_and_keep_secrets(stand: Stand, tmp_path: Path) -> None:
    site = SlowMembers(pages=PAGES, lasts=10_000, closes_at=HALF)
    with stand.client("secretsmanager") as secrets, stand.client("ssm") as ssm:
        secrets.create_secret(Name=NAME, SecretString=PASSWORD)
        ssm.put_parameter(Name=f"/{NAME}", Value=USER, Type="SecureString")
    with background(site, 0):
        file = str(write(tmp_path, site))
        assert "logged in" in stand.orbweaver("check", "--login", file).out
        site.reset()
        crawl = stand.orbweaver("start", "--config", file, "--json").result["crawl"]
        until(lambda: site.served, "a worker has logged in", log=stand.log)
        later = [f"{site.url}/p/{number}" for number in range(HALF, PAGES)]
        stand.send(json.dumps({"crawl": crawl, "urls": later}))
        found = ended(stand, crawl)
        listed = stand.orbweaver("pages", crawl, "--limit", "100", "--json").out
        shown = [*stored_in(stand)]

    assert site.is_shared, "two workers have requested pages at once"
    pages = sorted(f"/p/{number}" for number in range(PAGES))
    records = [json.loads(line) for line in listed.splitlines()]
    assert names([one["url"] for one in records], site.url) == pages
    assert {one["reason"] for one in records} == {"ok"}
    assert (site.logins, site.refused, site.logouts) == (2, 0, 0)
    assert found["logins"] == 2
    assert found["session_lost"] > 0
    assert not [name for name, body in shown if PASSWORD.encode() in body]
    sessions = {name for name, body in shown if SESSION in body}
    assert sessions == {f"HostsTable cookies#{crawl}#127.0.0.1"}
    archived = b"".join(body for name, body in shown if name.startswith("bodies/"))
    assert archived.count(b"<title>Members' page") == PAGES
    assert b'id="login"' not in archived
