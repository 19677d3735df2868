"""The commands `cost` and `estimate`, and the cost in `status`."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.config import Config
from orbweaver.cli.commands.cost import STACK
from orbweaver.cli.live import lines as words
from orbweaver.control.progress import spending
from tests.unit.cli.fakes import SITE, Machine, Row, Stage
from tests.unit.cli.views import view_of

RUN = "example.com-20261121-090000"
COUNTED = {
    "units.write.claim": 30,
    "units.write.commit": 10,
    "units.read_halves.lookup": 7,
    "units.mb_ms.run": 1024 * 1000 * 60,
}
# 40 x 625 + 7 x 62.5 + 60 x 13,333.4 nanodollars
SPENT = 25_000 + 437.5 + 800_004


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(folder=tmp_path, machine=Machine(up_already=True))
    stage.site = [Row("/"), Row("/b")]
    stage.run(f"crawl {SITE} --out first")
    return stage


def count(stage: Stage) -> None:
    shard = next(item for (crawl, _), item in stage.world.shards.items() if crawl == RUN)
    shard.counts.update(COUNTED)


def test_cost_shows_terms_stages_and_price_per_page(stage: Stage) -> None:
    count(stage)
    lines = [" ".join(line.split()) for line in stage.output("cost example.com").splitlines()]
    assert f"{RUN} · 2 pages fetched" in lines
    assert "write units 40 20 12.5000 $0.000025" in lines
    assert "read units 3.5000 1.7500 0.2188 $0.00000044" in lines
    assert "GB-seconds 60 30 400.0020 $0.00080" in lines
    assert any(line.startswith("in all 412.720") for line in lines)
    assert "claim write units 9.3750 $0.000019" in lines
    # The most expensive term comes first.
    assert lines.index("run GB-seconds 400.0020 $0.00080") < lines.index(
        "claim write units 9.3750 $0.000019"
    )


def test_cost_as_json_has_counters(stage: Stage) -> None:
    count(stage)
    (body,) = stage.run_json("cost example.com --json")
    assert (body["type"], body["crawl"], body["pages"]) == ("cost", RUN, 2)
    assert body["usd"] == pytest.approx(SPENT / 1e9, abs=1e-9)
    assert body["usd_per_million_pages"] == pytest.approx(SPENT / 2 / 1e3, abs=1e-4)
    assert body["terms"]["write"] == {
        "used": 40,
        "per_page": 20.0,
        "usd": 0.000025,
        "usd_per_million_pages": 12.5,
    }
    assert body["stages"]["commit"] == {"write": 10}


def test_cost_of_crawl_without_counters_states_it(stage: Stage) -> None:
    assert "no usage has been recorded" in stage.errors("cost example.com", code=11)
    assert "units" not in stage.output("status")


def test_status_shows_cost_per_page(stage: Stage) -> None:
    count(stage)
    assert stage.run("status") == 0
    assert "$412.72 per million pages · 20.00 writes and 1.75 reads a page" in stage.said
    (body,) = stage.run_json("status --json")
    assert body["units"] == {"write": 40, "read_halves": 7, "mb_ms": 61_440_000}
    assert body["units_dollars"] == pytest.approx(SPENT / 1e9)


def test_cost_before_first_page_has_no_price_per_page() -> None:
    assert spending.per_million({"units.write.claim": 16}) == ""


def test_status_shows_counted_cost_over_estimate() -> None:
    counted = {"fetched": 200, "units.write.claim": 16, "nanodollars": 5_000_000_000}
    assert words.cost(view_of(counted)).startswith("$0.000010 so far (estimate) · ")
    assert words.cost(view_of({"nanodollars": 5_000_000_000})) == "$5.00 so far (estimate)"


def test_price_per_page_is_hidden_until_each_host_has_one() -> None:
    """While thousands of robots.txt files are read, price and duration mean little."""
    seeds = tuple(f"https://h{number}.example/" for number in range(5_000))
    counts = {"claimed": 5_000, "fetched": 300, "units.write.claim": 10_000_000}
    view = view_of(counts, seeds=seeds, hosts_counted=())
    assert words.cost(view) == "$6.25 so far (estimate)"
    assert "units" not in dict(words.rows(view))
    assert view.forecast.left_s is None
    assert view.forecast.words == (
        "not known yet: 5,000 hosts need their robots.txt first; 4,700 known URLs left"
    )
    later = view_of({**counts, "fetched": 1_300}, seeds=seeds, hosts_counted=())
    assert later.forecast.left_s is not None
    ignoring = view_of(counts, seeds=seeds, hosts_counted=(), obey_robots=False)
    assert ignoring.forecast.left_s is not None


# --- before the crawl -----------------------------------------------------------------------------


ONE_SEED = 'seeds = ["https://a.example/"]\n'
LIMITED = (
    'seeds = ["https://a.example/", "https://b.example/"]\n'
    "[limits]\npages = 50000\nduration = '1h'\ndollars = 0.01\n"
)
CONTEXT = '{"context": {"worker_concurrency_max": "5", "worker_memory_mb": 2048}}'
MANY = "--hosts 100 --pages 100000"


@pytest.mark.parametrize(
    ("definition", "context", "options", "texts"),
    [
        (LIMITED, "", "", ("50,000 pages on 2 hosts", "a delay of 1 s", "GB-seconds")),
        (LIMITED, "", "", ("it takes at least 7 h, due to the delay per host",)),
        (LIMITED, "", "", ("exceeds its time limit (1 hour)", "exceeds its cost limit ($0.010)")),
        (ONE_SEED, "", "--hosts 5", ("10,000 pages on 5 hosts",)),
        (ONE_SEED, "", MANY, ("50 workers at once (--workers), up to 40 messages each",)),
        (
            ONE_SEED,
            CONTEXT,
            MANY,
            ("5 workers at once (--workers), up to 40 messages each", "2,048 MB"),
        ),
        (
            *(ONE_SEED, CONTEXT, f"{MANY} --workers 1 --batch-size 20 --memory 512"),
            ("1 worker at once (--workers), up to 20 messages each", "512 MB"),
        ),
        (
            *(ONE_SEED, '{"context": {"worker_memory_mb": 500}}', "--deployed"),
            ("7 workers at once (--workers), up to 40 messages each", "500 MB"),
        ),
        # A context that cannot be read has no effect.
        (ONE_SEED, "[]", "", ("40 messages each",)),
        (ONE_SEED, '{"context": {"worker_memory_mb": "many"}}', "", ("40 messages each",)),
    ],
)
def test_estimate_uses_options_then_context_of_stack(
    stage: Stage, definition: str, context: str, options: str, texts: tuple[str, ...]
) -> None:
    (stage.folder / "crawl.toml").write_text(definition)
    (stage.folder / "cdk.json").write_text(context)
    stage.machine.deployed_with = {"worker_concurrency_max": "7", "alarm_email": "me@example.org"}
    stage.shows(f"estimate {options}", *texts)
    assert definition == LIMITED or "it ends before" not in stage.said


def test_estimate_as_json_uses_options_about_site(stage: Stage) -> None:
    (stage.folder / "my.toml").write_text(
        'seeds = ["https://a.example/"]\n[scope]\nlinks = "any"\n[politeness]\ndelay = 0\n'
    )
    line = "estimate my.toml --pages 1000 --links 9 --body-bytes 9kB --answer 1s --memory 2048"
    (body,) = stage.run_json(f"{line} --json")
    assert (body["type"], body["pages"]) == ("estimate", 1_000)
    assert body["terms"]["write"]["used"] >= 2_000
    said = "\n".join(body["assumed"])
    for word in ("9 links", "9.0 kB", "1 s until", "2,048 MB", "give their number", "no delay"):
        assert word in said


def test_estimate_defaults_equal_defaults_of_deployment() -> None:
    usual = Config()
    for key, value in STACK.items():
        assert getattr(usual, key) == value
