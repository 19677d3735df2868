"""`check-links` on a local site and on files, with hosts that refuse, limit or delay requests."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from orbweaver.cli import exit_codes
from tests.sites import graph
from tests.sites.server import Answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.sites.graph import Graph, Script
    from tests.sites.server import Asked

pytestmark = pytest.mark.thorough

FUNCTIONS = Path(__file__).parents[2] / "functions"
COMMAND = "import sys; from orbweaver.cli.main import main; sys.exit(main())"
DELAY_MS = 300
WAIT_S = 300
HTML = graph.HTML
OK = Answer(headers=HTML, body=b"<title>x</title><p id=x>x")
FINE, BROKEN, FRAGMENT, UNVERIFIED = "fine", "broken-link", "missing-fragment", "unverified-link"


def by_method(head: Answer, get: Answer) -> Callable[[Asked], Answer]:
    return lambda asked: head if asked.method == "HEAD" else get


def status(code: int, **headers: str) -> Answer:
    return Answer(status=code, headers=tuple(headers.items()))


HOUR = Answer(status=429, headers=(("Retry-After", "3600"),))
LIMITED = Answer(status=429, headers=(("Retry-After", "2"),))


@dataclass(frozen=True)
class Case:
    """A link: the host of its target, the answer there, and the check that reports it."""

    host: str
    path: str
    script: Script | None
    result: str
    detail: str | None = None


CASES = [
    Case("usual", "/ok", OK, FINE),
    Case("usual", "/image.png", status(200), FINE),
    Case("usual", "/empty", status(204), FINE),
    Case("usual", "/missing", status(404), BROKEN, "HTTP 404"),
    Case("usual", "/gone", status(410), BROKEN, "HTTP 410"),
    Case("usual", "/head-refused", by_method(status(405), OK), FINE),
    Case("usual", "/head-missing", by_method(status(404), OK), FINE),
    Case("usual", "/head-fails", by_method(status(500), OK), FINE),
    Case("usual", "/form-only", status(405), UNVERIFIED, "HTTP 405"),
    Case("usual", "/forbidden", status(403), UNVERIFIED, "HTTP 403"),
    Case("usual", "/login", status(401), UNVERIFIED, "HTTP 401"),
    Case("usual", "/fails", status(500), UNVERIFIED, "HTTP 500"),
    Case("usual", "/moved", graph.redirect("/ok"), FINE),
    Case("usual", "/moved-away", graph.redirect("/missing"), BROKEN, "redirects to {}/missing"),
    Case("usual", "/loop", graph.redirect("/loop"), BROKEN, "endless redirect"),
    Case("usual", "/private/x", OK, UNVERIFIED, "robots.txt forbids it"),
    Case("usual", "/ok#part", None, FINE),
    Case("limited", "/later", [LIMITED, OK], FINE),
    Case("limited", "/other", OK, FINE),
    Case("stubborn", "/never", LIMITED, UNVERIFIED, "HTTP 429"),
    Case("busy", "/hour", HOUR, UNVERIFIED),
    *(Case("busy", f"/hour/{number}", HOUR, UNVERIFIED) for number in range(4)),
    Case("slow", "/slow", Answer(delay_s=30), UNVERIFIED, "2 s"),
    Case("site", "/two", Answer(headers=HTML, body=b"<title>2</title><p id=there>"), FINE),
    Case("site", "/two#there", None, FINE),
    Case("site", "/two#nowhere", None, FRAGMENT),
    Case("site", "/to-two#nowhere", None, FRAGMENT),
    Case("site", "/to-two", graph.redirect("/two"), FINE),
    Case("site", "/nothing", status(404), BROKEN, "HTTP 404"),
    Case("site", "/picture.png", status(404), BROKEN, "HTTP 404"),
]
ROBOTS = {"/robots.txt": graph.robots("User-agent: *\nDisallow: /private/\n")}


def target(case: Case, hosts: dict[str, Graph]) -> str:
    return f"{hosts[case.host].url}{case.path}"


@pytest.fixture
def hosts() -> Iterator[dict[str, Graph]]:
    with contextlib.ExitStack() as stack:
        found = {
            name: stack.enter_context(graph.serve_in_background(ROBOTS))
            for name in dict.fromkeys(case.host for case in CASES)
        }
        for case in CASES:
            if case.script is not None:
                found[case.host].scripts[case.path] = case.script
        links = "".join(f'<a href="{target(case, found)}">x</a>\n' for case in CASES)
        body = f"<!doctype html><title>Start</title>\n{links}"
        found["site"].scripts["/"] = Answer(headers=HTML, body=body.encode())
        yield found


def checked(
    folder: Path, *words: str, allowed: str | None = None
) -> tuple[int, dict[str, Any], str]:
    """Run the command with JSON. Return its exit code, the report, and the standard error."""
    environment = {name: value for name, value in os.environ.items() if "AWS" not in name}
    environment |= {"PYTHONPATH": str(FUNCTIONS), "ORBWEAVER_FETCH_TOTAL_S": "2"}
    if allowed is not None:
        environment["ORBWEAVER_ALLOW_ADDRESSES"] = allowed
    line = ("check-links", *words, "--delay", f"{DELAY_MS}ms", "--format", "json")
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *line],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode != 2, done.stderr
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr


def findings(report: dict[str, Any]) -> dict[str, tuple[str, str | None]]:
    return {
        finding["target"]: (check["check"], finding["detail"])
        for check in report["checks"]
        for finding in check["findings"]
    }


def expected(hosts: dict[str, Graph]) -> dict[str, str]:
    return {target(case, hosts): case.result for case in CASES if case.result != FINE}


def test_links_of_site_are_judged_by_answers_of_their_hosts(
    hosts: dict[str, Graph], tmp_path: Path
) -> None:
    code, report, _ = checked(tmp_path, f"{hosts['site'].url}/")
    found = findings(report)
    assert code == 1
    assert {url: check for url, (check, _) in found.items()} == expected(hosts)
    for case in CASES:
        if case.detail is not None:
            detail = found[target(case, hosts)][1]
            assert case.detail.format(hosts[case.host].url) in (detail or ""), case
    asked = Counter(
        (host.url + record.path, record.method)
        for host in hosts.values()
        for record in host.log.records()
    )
    # One HEAD for a URL, and one GET if that was refused.
    for case in CASES:
        url = target(case, hosts).partition("#")[0]
        assert asked[url, "GET"] <= 1, url
        assert asked[url, "HEAD"] <= 1, url
        if case.host == "usual" and case.result == FINE and callable(case.script):
            assert asked[url, "GET"] == asked[url, "HEAD"] == 1, url
    # No request is sent while another one is open, or before the delay.
    for name, host in hosts.items():
        records = host.log.records()
        # The slow server still works on a request that the command has given up.
        assert name == "slow" or {record.in_flight for record in records} <= {1}, name
        times = [record.at_ms for record in records]
        gaps = [later - earlier for earlier, later in pairwise(times)]
        assert min(gaps, default=DELAY_MS) >= DELAY_MS / 2, name
    # A host that demands an hour gets no further request.
    assert len(hosts["busy"].log.records()) == len(["robots.txt", "the first URL"])
    [first, second] = [one for one in hosts["limited"].log.records() if one.path == "/later"]
    assert second.at_ms - first.at_ms >= 2_000


def test_second_check_within_day_requests_only_unverified_links(
    hosts: dict[str, Graph], tmp_path: Path
) -> None:
    first = checked(tmp_path, f"{hosts['site'].url}/")
    before = {name: len(host.log.records()) for name, host in hosts.items()}
    second = checked(tmp_path, f"{hosts['site'].url}/")
    for report in (first[1], second[1]):
        assert {url: check for url, (check, _) in findings(report).items()} == expected(hosts)
    again = {
        hosts[name].url + one.path
        for name in hosts.keys() - {"site"}
        for one in hosts[name].log.records()[before[name] :]
        if one.path != "/robots.txt"
    }
    unverified = {url for url, result in expected(hosts).items() if result == UNVERIFIED}
    assert again
    assert again <= unverified
    settled = {
        target(case, hosts).partition("#")[0]
        for case in CASES
        if case.host != "site" and case.result != UNVERIFIED
    }
    assert (first[1]["earlier"], second[1]["earlier"]) == (0, len(settled))
    assert f"{len(settled)} results of earlier checks: --cache 0s" in second[2]
    middle = {name: len(host.log.records()) for name, host in hosts.items()}
    checked(tmp_path, f"{hosts['site'].url}/", "--cache", "0s", "--exclude", "slow|never")
    assert len(hosts["usual"].log.records()) > middle["usual"]
    assert len(hosts["stubborn"].log.records()) == middle["stubborn"]


def test_links_of_files_to_other_hosts_are_checked(hosts: dict[str, Graph], tmp_path: Path) -> None:
    usual = hosts["usual"].url
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text(f"[x]({usual}/ok)\n\n<{usual}/missing>\n")
    (tmp_path / "docs/b.html").write_text(f'<img src="{usual}/missing">')
    port = usual.rpartition(":")[2]
    code, report, _ = checked(tmp_path, "docs", allowed=f"127.0.0.1:{port}")
    [broken] = [check for check in report["checks"] if check["check"] == BROKEN]
    places = [(one["url"], one["line"], one["target"]) for one in broken["findings"]]
    assert places == [("docs/a.md", 3, f"{usual}/missing"), ("docs/b.html", 1, f"{usual}/missing")]
    assert (code, report["outcomes"]) == (1, {"fine": 1, "broken": 1})


def test_servers_of_this_machine_get_no_request_because_of_a_file(
    hosts: dict[str, Graph], tmp_path: Path
) -> None:
    usual = hosts["usual"].url
    local = usual.replace("127.0.0.1", "localhost")
    (tmp_path / "a.md").write_text(f"[x]({usual}/ok) [y]({local}/ok)\n")
    code, report, noted = checked(tmp_path, "a.md")
    assert [one["reason"] for one in report["unjudged"]] == ["address"]
    assert (code, report["outcomes"]) == (exit_codes.NETWORK, {"not verified": 2})
    assert "nothing could be checked" in noted
    assert not hosts["usual"].log.records()


@pytest.mark.parametrize(
    ("path", "said", "expected_code"),
    [
        ("/nothing", "HTTP 404", exit_codes.ERROR_STATUS),
        ("/private/x", "robots.txt forbids it", exit_codes.REFUSED),
        ("/fails", "HTTP 500", exit_codes.ERROR_STATUS),
        ("/file", "it is no HTML page", exit_codes.NO_PAGE),
    ],
)
def test_site_without_first_page_cannot_be_checked(
    hosts: dict[str, Graph], tmp_path: Path, path: str, said: str, expected_code: int
) -> None:
    hosts["site"].scripts["/fails"] = Answer(status=500)
    hosts["site"].scripts["/file"] = Answer(headers=(("Content-Type", "image/png"),))
    code, _, noted = checked(tmp_path, f"{hosts['site'].url}{path}")
    assert code == expected_code
    assert f"nothing could be checked: {hosts['site'].url}{path}: {said}" in noted


@pytest.mark.parametrize(
    ("path", "outcomes", "reported"),
    [
        ("/nothing", {"broken": 1}, {"/nothing": (BROKEN, "HTTP 404")}),
        (
            "/private/x",
            {"not verified": 1},
            {"/private/x": (UNVERIFIED, "robots.txt forbids it")},
        ),
        ("/picture.pdf", {}, {}),
    ],
)
def test_start_url_without_page_is_reported_beside_pages_of_sitemap(
    tmp_path: Path,
    path: str,
    outcomes: dict[str, int],
    reported: dict[str, tuple[str, str]],
) -> None:
    with graph.serve_in_background({"/two": OK}) as site:
        rules = f"User-agent: *\nDisallow: /private/\nSitemap: {site.url}/map.xml\n"
        site.scripts["/robots.txt"] = graph.robots(rules)
        site.scripts["/map.xml"] = Answer(
            headers=(("Content-Type", "application/xml"),),
            body=f"<urlset><url><loc>{site.url}/two</loc></url></urlset>".encode(),
        )
        site.scripts["/picture.pdf"] = Answer(
            headers=(("Content-Type", "application/pdf"),), body=b"%PDF-1.7"
        )
        _, report, _ = checked(tmp_path, f"{site.url}{path}")
        assert (report["pages"], report["outcomes"]) == (1, outcomes)
        assert findings(report) == {f"{site.url}{one}": found for one, found in reported.items()}
        reasons = ["robots"] * ("private" in path) + ["start_url_is_no_page"] * ("pdf" in path)
        assert [one["reason"] for one in report["unjudged"]] == reasons


def test_header_of_user_goes_only_to_checked_site(hosts: dict[str, Graph], tmp_path: Path) -> None:
    seen: dict[str, set[str | None]] = {"site": set(), "usual": set()}

    def noting(name: str, answer: Answer) -> Callable[[Asked], Answer]:
        def script(asked: Asked) -> Answer:
            seen[name].add(asked.headers.get("X-Key"))
            return answer

        return script

    link = f'<a href="{hosts["usual"].url}/ok">x</a>'
    page = Answer(headers=HTML, body=f"<title>x</title>{link}".encode())
    hosts["site"].scripts["/"] = noting("site", page)
    hosts["usual"].scripts["/ok"] = noting("usual", OK)
    code, _, _ = checked(tmp_path, f"{hosts['site'].url}/", "--header", "X-Key: secret")
    assert (code, seen) == (0, {"site": {"secret"}, "usual": {None}})
