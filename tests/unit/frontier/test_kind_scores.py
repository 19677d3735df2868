"""Scores of URL kinds (groups of similar URLs): new pages, and the order of links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

import pytest

from orbweaver.frontier import kind_scores, seen_content
from orbweaver.frontier.kind_count import MOST, TRIED_MIN, KindCount
from orbweaver.frontier.kind_learner import (
    FRUITFUL,
    KindLearner,
)
from orbweaver.frontier.kind_scores import (
    KINDS_MAX,
    OPEN_MAX,
    KindScores,
    is_ordered,
    shared_counts_of,
)
from orbweaver.frontier.late_links import (
    BANDS_MAX,
    DOUBTFUL,
    FEW_OUT,
    SURPLUS,
    UNKNOWN,
    UNLIKELY,
)
from orbweaver.frontier.seen_content import COMMON, SeenContent
from orbweaver.model.crawl import Crawl, default_crawl
from orbweaver.model.outcome import Outcome, Reason
from orbweaver.model.target import Target, TargetKind
from orbweaver.model.url_kind import ANY_QUERY, SIBLINGS_MAX, Shape
from orbweaver.parsing.text_digest import RUNS_EACH, text_runs
from tests.unit.frontier.kind_pages import HOST, learned, page

WORDS = [a + b + c for a in "bdfgk" for b in "aeiou" for c in "lmnrst"]
REASONS = (Reason.NOINDEX, Reason.OK)
CRAWL = Crawl(id="c-1", name="c", started_at_ms=0, pages_max=500)


def score(learner: KindLearner, path: str) -> float:
    return learner.scores.score_of(HOST + path).score


def test_unknown_kind_is_tried() -> None:
    assert score(KindLearner(), "/a") == pytest.approx(MOST)
    one = learned(page("/w/index.php?action=edit&title=a", reason=Reason.NOINDEX))
    assert not one.scores.score_of(HOST + "/w/index.php?action=edit&title=b").count.is_tried


def test_noindex_pages_make_kind_barren() -> None:
    titles = ("Ant colony", "Bee hive", "Cat nap", "Dog star")
    forms = [
        page(f"/w/index.php?title=T_{n}&action=edit", f"Editing {title}", reason=Reason.NOINDEX)
        for n, title in enumerate(titles)
    ]
    articles = [page(f"/w/index.php?title=T_{n}_x", title) for n, title in enumerate(titles)]
    learner = learned(*forms, *articles)
    assert score(learner, "/w/index.php?title=New_one_9&action=edit") < 0.25
    assert score(learner, "/w/index.php?title=New_one_9") > MOST


def test_title_repeating_url_is_not_new() -> None:
    """Titles of file histories repeat the file name of the URL."""
    learner = KindLearner()
    text = text_runs("one commit and then another commit by the same people of this project " * 2)
    for name in ("readme", "setup", "worker", "queue", "table", "claim"):
        learner.learn(page(f"/git/history/{name}.py", f"history - {name}.py"), text)
    for name in ("seeds", "pages"):
        learner.learn(page(f"/git/history/{name}.py", f"history - {name}.py"))
    assert score(learner, "/git/history/more.py") < 0.3


def test_title_repeating_url_is_new_with_new_text() -> None:
    """In some wikis the title of a page is its address."""
    learner = KindLearner()
    random = Random(5)
    for name in ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"):
        words = " ".join("".join(random.choices("abcdefgh", k=6)) for _ in range(200))
        digest = text_runs(words) if learner.wants_digest(f"{HOST}/doku/{name}") else None
        learner.learn(page(f"/doku/{name}", name), digest)
    assert score(learner, "/doku/kappa") > 0.8


def test_title_with_other_digits_is_not_new() -> None:
    learner = learned(*(page(f"/events?month={n}", f"Events of {n}") for n in range(1, 12)))
    assert score(learner, "/events?month=99") < 0.25


def test_page_with_known_canonical_address_is_not_new() -> None:
    first = page("/p/lamp-a?ref=home", "A lamp", canonical=HOST + "/p/lamp-a")
    again = page("/p/lamp-a?colour=red", "A red lamp", canonical=HOST + "/p/lamp-a")
    learner = learned(first, again)
    assert learner.scores.score_of(HOST + "/p/x?ref=home").count.fruitful == 1
    assert learner.scores.score_of(HOST + "/p/x?colour=red").count.fruitful == 0


def test_canonical_address_of_other_host_is_ignored() -> None:
    """Every page of a mirrored manual may name the original."""
    pages = [
        page(f"/3/{name}.html", f"All about {name} things", canonical="https://docs.example/")
        for name in ("ant", "bee", "cat", "dog")
    ]
    assert score(learned(*pages), "/3/elk.html") > 0.8


def test_page_leading_to_new_pages_is_fruitful_once() -> None:
    listing = HOST + "/Special:All"
    pages = [page(f"/wiki/T_{n}_x", title) for n, title in enumerate(("Ant hill", "Bee hive"))]
    found = (replace(one, referrer=listing) for one in pages)
    learner = learned(page("/Special:All", reason=Reason.NOINDEX), *found)
    count = learner.scores.score_of(HOST + "/Special:Other").count
    assert (count.requested, count.fruitful) == (1, 1)


UNASKED = {"outcome": Outcome.SKIPPED, "reason": Reason.ROBOTS, "status": None}


def failed(status: int | None) -> dict[str, object]:
    """Return fields of a record for a URL whose host failed."""
    return {"outcome": Outcome.FAILED, "reason": Reason.HOST_DOWN, "status": status}


@pytest.mark.parametrize(
    ("ended", "rounds"),
    [(UNASKED, [1, 1, 1, 6, 18, 3]), *((failed(one), [1] * 30) for one in (None, 429, 500, 503))],
)
def test_unanswered_url_leaves_score_and_is_not_pending(
    ended: dict[str, object], rounds: list[int]
) -> None:
    """URLs that robots.txt forbids cost no request, so they release more links."""
    learner = learned(page("/a/1_a_b", reason=Reason.NOINDEX), page("/b/1_a_b", "T"))
    paths, before = [f"/d/{n}_a_b" for n in range(30)], score(learner, "/d/0_a_b")
    found = []
    while paths:
        asked, _ = sorted_out(learner, *paths, taken=DOUBTFUL)
        found.append(len(asked))
        paths = [path for path in paths if path not in asked]
        for path in asked:
            learner.learn(replace(page(path), **ended))  # type: ignore[arg-type]
    assert found == rounds
    assert (learner.asked, score(learner, "/d/0_a_b")) == (2, before)
    assert learner.scores.count(f"{HOST}/d/0_a_b").scheduled == 0


def test_url_taken_back_elsewhere_is_not_scheduled() -> None:
    one, other = (learned(page("/a/1_a_b", reason=Reason.NOINDEX)) for _ in range(2))
    sorted_out(one, "/d/0_a_b", taken=DOUBTFUL)
    total = one.scores.unshared()
    one.scores.adopt_shared(total, total)
    other.scores.adopt_shared({}, total)
    assert not sorted_out(other, "/d/1_a_b")[0]
    other.learn(replace(page("/d/0_a_b"), **UNASKED))  # type: ignore[arg-type]
    told = other.scores.unshared()
    total = {key: total.get(key, 0) + told.get(key, 0) for key in total.keys() | told.keys()}
    other.scores.adopt_shared(told, total)
    one.scores.adopt_shared({}, total)
    assert one.scores.count(f"{HOST}/d/0_a_b").scheduled == 0


def test_new_kind_starts_from_same_parameters_elsewhere() -> None:
    learner = learned(*(page(f"/doc/a/?C={c};O=A", "Index of a") for c in "NMSDNMSD"))
    assert score(learner, "/doc/b/?C=N;O=D") < FRUITFUL
    assert score(learner, "/doc/b/") > FRUITFUL


def sorted_out(
    learner: KindLearner, *paths: str, taken: int | None = None
) -> tuple[list[str], list[tuple[int, str]]]:
    """Sort links.

    Return the paths to request at once, and the late ones with their band (priority).
    """
    links = [Target(url=HOST + path, depth=1) for path in paths]
    prompt, late = learner.sorted_out(links, taken)
    assert sorted([*prompt, *(one for _, one in late)], key=lambda one: one.url) == sorted(
        links, key=lambda one: one.url
    )
    return (
        [link.url.removeprefix(HOST) for link in prompt],
        [(band, link.url.removeprefix(HOST)) for band, link in late],
    )


def band(learner: KindLearner, path: str) -> int:
    """Return the band (priority) of the late link to a path."""
    _, ((found, _),) = learner.sorted_out([Target(url=HOST + path, depth=1)])
    return found


def wiki() -> KindLearner:
    """Return a learner that has read five forms and five articles."""
    return learned(
        *(page(f"/e?action=edit&t={n}", reason=Reason.NOINDEX) for n in range(5)),
        *(page(f"/a/T_{n}_x", f"T{'abcde'[n]}") for n in range(5)),
    )


def test_new_kind_starts_from_score_of_its_folders() -> None:
    diffs = [page(f"/git/diff/{n}_a_b.py", reason=Reason.NOINDEX) for n in range(6)]
    files = [page(f"/git/tree/{n}_a_b.py", f"T{'abcdef'[n]}") for n in range(6)]
    learner = learned(*diffs, *files)
    assert score(learner, "/git/diff/1_a_b.md?id=4") < 0.2
    assert score(learner, "/git/tree/1_a_b.md?id=4") > 0.8
    # A single folder counts like the whole host.
    assert score(learner, "/git/1_a_b.md?id=4") == pytest.approx(MOST)


def test_barren_links_are_late_behind_unknown_links() -> None:
    paths = ("/e?action=edit&t=7", "/a/one_1_x", "/d/new?x=1", "/a/two_2_x")
    assert sorted_out(wiki(), *paths) == (
        ["/a/one_1_x", "/a/two_2_x"],
        [(UNKNOWN, "/d/new?x=1"), (5, "/e?action=edit&t=7")],
    )


def test_late_pack_is_released_if_band_is_not_worse() -> None:
    late = ("/e?action=edit&t=7", "/e?action=edit&t=8")
    assert sorted_out(wiki(), *late, taken=3) == ([], [(5, late[0]), (5, late[1])])
    for band in (5, 6):
        assert sorted_out(wiki(), *late, taken=band) == ([*late], [])


def test_unknown_kind_is_tried_once_until_answered() -> None:
    learner = KindLearner()
    paths = [f"/new?x={n}" for n in range(9)]
    prompt, late = sorted_out(learner, *paths[:5])
    # The first link of a path differs from the others.
    assert prompt == paths[:2]
    assert late == [(1, path) for path in paths[2:5]]
    assert sorted_out(learner, paths[5]) == ([], [(1, paths[5])])
    learner.learn(page(paths[1], "Ant hill"))
    assert sorted_out(learner, *paths[5:7]) == ([paths[5]], [(1, paths[6])])


def test_late_pack_releases_at_least_one_link() -> None:
    """Otherwise a pack without new results could be deferred forever."""
    learner = KindLearner()
    paths = [f"/new?x={n}" for n in range(9)]
    sorted_out(learner, *paths[:3])
    left = [(1, path) for path in paths[4:]]
    assert sorted_out(learner, *paths[3:], taken=1) == ([paths[3]], left)
    assert sorted_out(learner, *paths[4:], taken=1) == ([paths[4]], left[1:])


def test_one_of_similar_kinds_is_tried_until_answered() -> None:
    learner = KindLearner()
    logs = [f"/git/log/one_1_x.{extension}?h=1" for extension in ("md", "py", "sh")]
    assert sorted_out(learner, *logs) == (logs[:1], [(UNKNOWN, path) for path in logs[1:]])
    learner.learn(page(logs[0], "Ant hill"))
    assert sorted_out(learner, *logs[1:]) == (logs[1:2], [(UNKNOWN, logs[2])])


@pytest.mark.parametrize("taken", [None, UNKNOWN])
def test_similar_kinds_found_together_count_as_one(taken: int | None) -> None:
    learner = KindLearner()
    logs = [f"/git/log/one_1_x.{extension}?h=1" for extension in ("md", "py", "sh")]
    for path in logs:
        score(learner, path)
    assert len(sorted_out(learner, *reversed(logs), taken=taken)[0]) == 1


def test_pending_urls_of_unknown_kinds_are_limited() -> None:
    learner = KindLearner()
    paths = [f"/{word}?{word}=1" for word in WORDS[:20]]
    late = [(UNKNOWN, path) for path in paths[FEW_OUT:]]
    assert sorted_out(learner, *paths) == (paths[:FEW_OUT], late)
    assert sorted_out(learner, paths[-1]) == ([], [(UNKNOWN, paths[-1])])
    learner.learn(page(paths[0], "Ant hill"))
    assert sorted_out(learner, paths[-1]) == ([paths[-1]], [])


def test_late_pack_releases_fruitful_links_first() -> None:
    learner = learned(
        *(page(f"/d/{n}_a_b", f"T{'abc'[n]}") for n in range(3)),
        *(page(f"/e/{n}_a_b", f"U{'abcd'[n]}", reason=REASONS[n < 1]) for n in range(4)),
    )
    good, doubtful = "/d/7_a_b", "/e/7_a_b"
    assert 0.3 < score(learner, doubtful) < FRUITFUL < score(learner, good)
    assert sorted_out(learner, doubtful, good, taken=3) == ([good], [(3, doubtful)])
    assert sorted_out(learner, doubtful, taken=3) == ([doubtful], [])


def test_barren_parameters_and_folders_make_kind_unlikely() -> None:
    for folder, late in (("/w/diff", UNLIKELY), ("/diff", DOUBTFUL)):
        forms = [page(f"{folder}/{n}_a_b?id={n}", reason=Reason.NOINDEX) for n in range(20)]
        learner = learned(*forms)
        assert score(learner, f"{folder}/8_a_b?id=9&to=2") < 0.15
        assert band(learner, f"{folder}/8_a_b?id=9&to=2") == late


def test_kind_related_only_by_parameter_is_tried_after_better_kinds() -> None:
    diffs = [page(f"/git/diff/{n}_a_b.py?id={n}", reason=Reason.NOINDEX) for n in range(3)]
    learner = learned(*diffs)
    paths = [f"/git/tree/{n}_a_b.py?id={n}" for n in range(6, 10)]
    assert score(learner, paths[0]) < FRUITFUL
    assert sorted_out(learner, *paths) == ([], [(DOUBTFUL, path) for path in paths])
    left = [(DOUBTFUL, path) for path in paths[1:]]
    assert sorted_out(learner, *paths, taken=1) == (paths[:1], left)
    learner.learn(page(paths[0], "All of a file"))
    learner.learn(page(paths[1], "And of another"))
    assert score(learner, paths[2]) > FRUITFUL


def test_absence_of_parameters_is_no_relation() -> None:
    learner = learned(*(page(f"/git/diff/{n}_a_b.py", reason=Reason.NOINDEX) for n in range(6)))
    assert score(learner, "/git/tree/0_a_b.py") == pytest.approx(MOST)
    assert score(learner, "/git/diff/0_a_b") < FRUITFUL


def test_barren_forms_of_one_namespace_predict_others() -> None:
    forms = [page(f"/w?title=T_{n}_x&action=edit", reason=Reason.NOINDEX) for n in range(4)]
    talks = ["/w?title=Talk:T_8_x&action=edit", "/w?title=Talk:T_9_x&action=view"]
    learner = learned(*forms)
    assert sorted_out(learner, *talks) == ([], [(DOUBTFUL, talks[1]), (5, talks[0])])


def test_barren_views_of_one_file_type_predict_others() -> None:
    diffs = [page(f"/git/diff/{n}_a_b.py?id={n}", reason=Reason.NOINDEX) for n in range(4)]
    learner = learned(*diffs)
    text = "/git/diff/8_a_b.md?id=9"
    assert learner.scores.score_of(HOST + text).alike == 4
    assert band(learner, text) == 6
    skipped = {"outcome": Outcome.SKIPPED, "reason": Reason.CONTENT_TYPE}
    pictures = [page(f"/doc/figures/{n}_a_b.png", **skipped) for n in range(4)]
    learner = learned(*pictures)
    assert learner.scores.score_of(f"{HOST}/doc/figures/8_a_b.html").alike == 0
    assert band(learner, "/doc/figures/8_a_b.html") == DOUBTFUL


def test_pending_links_are_limited_by_known_pages() -> None:
    few = learned(*(page(f"/d/{n}_a_b", f"T{'abc'[n]}", reason=REASONS[n < 2]) for n in range(3)))
    paths = [f"/d/{n}_a_b" for n in range(10, 40)]
    assert FRUITFUL < score(few, paths[0]) < MOST
    sure = learned(*(page(f"/d/{n}_a_b", f"T{'abc'[n]}") for n in range(3)))
    assert score(sure, paths[0]) > MOST
    for learner in (few, sure):
        assert sorted_out(learner, *paths) == (paths[:9], [(SURPLUS, path) for path in paths[9:]])
    left = [(SURPLUS, path) for path in paths[10:]]
    assert sorted_out(sure, *paths[9:], taken=SURPLUS) == (paths[9:10], left)
    for n in range(3):
        sure.learn(page(paths[n], f"T{'def'[n]}"))
    left = [(SURPLUS, path) for path in paths[18:]]
    assert sorted_out(sure, *paths[10:], taken=SURPLUS) == (paths[10:18], left)


def test_link_taken_back_is_replaced_by_next_of_kind() -> None:
    learner = KindLearner()
    paths = [f"/d/{n}_a_b" for n in range(5)]
    assert sorted_out(learner, *paths) == (paths[:1], [(UNKNOWN, path) for path in paths[1:]])
    assert sorted_out(learner, paths[1]) == ([], [(UNKNOWN, paths[1])])
    learner.note_unscheduled([HOST + paths[0]] * 2)
    assert sorted_out(learner, *paths[1:3]) == (paths[1:2], [(UNKNOWN, paths[2])])


def test_new_parameter_starts_from_others_of_same_path() -> None:
    forms = [
        page(f"/w/index.php?title=T_{n}_x&action={action}", reason=Reason.NOINDEX)
        for n, action in enumerate(("edit", "info", "history", "edit", "info", "history"))
    ]
    learner = learned(*forms)
    assert score(learner, "/w/index.php?title=T_8_x&oldid=77") < FRUITFUL / 2
    assert band(learner, "/w/index.php?title=T_8_x&oldid=77") == DOUBTFUL
    assert score(learner, "/w/other/T_8_x?oldid=77") == pytest.approx(MOST)
    assert score(learner, "/w/index.php/T_8_x") == pytest.approx(MOST)
    own = [page(f"/w/index.php?title=T_{n}_y&page=b", f"T{WORDS[n]}") for n in range(4)]
    for one in own:
        learner.learn(one)
    assert score(learner, "/w/index.php?title=T_9_y&page=b") > FRUITFUL


def test_calm_site_defers_no_links() -> None:
    """If almost all kinds have new pages, the order of links gains nothing."""
    names = ["".join(Random(n).choices("abcdefgh", k=6)) for n in range(60)]
    learner = learned(*(page(f"/k{'abcde'[n % 5]}/{n}_a_b", names[n]) for n in range(60)))
    assert learner.scores.is_mostly_fruitful
    paths = [f"/new/{n}_a_b" for n in range(9)]
    assert sorted_out(learner, *paths) == (paths, [])
    assert sorted_out(learner, *paths, taken=1) == (paths, [])
    texts = [f"{HOST}/ka/{n}_x_y" for n in range(200)]
    assert learner.wants_digest(texts[0])
    for n in range(TRIED_MIN):
        learner.learn(page(f"/ka/{n}_x_y", f"X {names[n]}"), text_runs(" ".join(names[n:])))
    assert not any(map(learner.wants_digest, texts))
    barren = [page(f"/b{'abcde'[n % 5]}?x={n}", reason=Reason.NOINDEX) for n in range(40)]
    assert not learned(*barren).scores.is_mostly_fruitful


def test_four_fruitful_kinds_make_site_calm() -> None:
    learner = KindLearner()
    for n in range(40):
        assert not learner.scores.is_mostly_fruitful
        learner.learn(page(f"/{'abc'[n % 3]}/{n}_a_b", f"T{WORDS[n]}"))
    learner.learn(page("/d/1_a_b", f"T{WORDS[40]}"))
    assert learner.scores.is_mostly_fruitful
    for n in range(8):
        learner.learn(page(f"/form?x={n}", reason=Reason.NOINDEX))
    assert not learner.scores.is_mostly_fruitful


def test_site_is_calm_only_if_all_containers_agree() -> None:
    one, other = KindLearner(), KindLearner()
    for n in range(64):
        one.learn(page(f"/{'abcd'[n % 4]}/{n}_a_b", f"T{WORDS[n]}"))
        other.learn(page(f"/form/{'abcdefgh'[n % 8]}?x={n}", reason=Reason.NOINDEX))
    before = one.scores.is_mostly_fruitful
    one.scores.adopt_shared({}, other.scores.unshared())
    assert (before, one.scores.is_mostly_fruitful, one.scores.has_relevant_barren) == (
        True,
        False,
        True,
    )


COMMITS = [" ".join(Random(n).choices(WORDS, k=12)) for n in range(40)]


def test_text_of_known_lines_is_not_new() -> None:
    learner = KindLearner()
    learner.learn(page("/git?a=log", "Log"), text_runs(" ".join(COMMITS)))
    for n in range(6):
        lines = " ".join(Random(n).sample(COMMITS, k=8))
        learner.learn(page(f"/git?a=history&f={n}_a_b", f"history {'abcdef'[n]}"), text_runs(lines))
    assert score(learner, "/git?a=history&f=7_a_b") < 0.3
    assert not SeenContent().add_runs(text_runs("one two"), HOST)


def test_text_common_to_all_pages_is_ignored() -> None:
    """Every product page here has its own line below a menu of 200 words."""
    learner = KindLearner()
    menu = " ".join(Random(0).choices(WORDS, k=200))
    for n in range(COMMON + 10):
        own = " ".join(Random(n + 1).choices(WORDS, k=30))
        learner.learn(page(f"/p/{n}_a_b", "A shop"), text_runs(f"{menu} {own}"))
    runs = text_runs(f"{menu} {' '.join(Random(99).choices(WORDS, k=30))}")
    assert learner.scores.met.add_runs(runs, HOST)
    assert learner.scores.met.add_runs(runs, HOST) is False
    assert learner.scores.met.add_runs(runs, "https://other.example")


def test_oldest_text_runs_are_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_content, "RUN_SLOTS", 64)
    known = SeenContent()
    runs = [RUNS_EACH * n for n in range(20)]
    assert known.add_runs(runs, HOST)
    assert known.add_runs(runs, HOST)


def test_unknown_kinds_wait_behind_fruitful_kind() -> None:
    learner = learned(*(page(f"/a/T_{n}_x", f"T{'abcdefghij'[n]}") for n in range(10)))
    assert sorted_out(learner, "/new?x=1", "/a/x_1_y") == (["/a/x_1_y"], [(1, "/new?x=1")])
    assert sorted_out(learner, "/new?x=1", taken=1) == (["/new?x=1"], [])


def test_repeated_path_with_other_parameters_is_other_kind() -> None:
    """The same file at another commit is no new page."""
    learner = KindLearner()
    for n, title in enumerate(("Ant", "Bee", "Cat", "Dog", "Elk")):
        for commit in range(3, 7):
            learner.learn(page(f"/git/tree/{n}_a_b?id={commit}", f"{title} file"))
    assert score(learner, "/git/tree/9_a_b?id=4") > 0.7
    assert score(learner, "/git/tree/2_a_b?id=9") < 0.15


def test_repeated_path_with_other_id_is_other_kind() -> None:
    """The same file at another revision is no new page."""
    learner = KindLearner()
    revisions = ("0b940c251a8e", "3f00d1e7c4b2", "77aa01bcdef9", "c0ffee123456")
    for n, title in enumerate(("Ant", "Bee", "Cat", "Dog", "Elk")):
        for revision in revisions:
            learner.learn(page(f"/file/{revision}/a/{n}_x_y.py", f"{title} file@{revision}"))
    assert score(learner, f"/file/{revisions[0]}/a/9_x_y.py") > MOST
    assert score(learner, "/file/999aaa000bbb/a/2_x_y.py") < 0.15
    members = learned(*(page(f"/user/{n}/posts", f"T{'abcdef'[n]}") for n in range(6)))
    assert score(members, "/user/77/posts") > MOST


def test_view_of_known_page_needs_more_new_text() -> None:
    """An annotated file contains all lines of the file."""
    learner = KindLearner()
    words = [" ".join(Random(n).choices(WORDS, k=200)).split() for n in range(8)]
    for n, lines in enumerate(words):
        learner.learn(page(f"/file/tip/{n}_x_y", f"T{WORDS[n]}"), text_runs(" ".join(lines)))
    for n, lines in enumerate(words):
        blamed = [word if at % 9 else f"{word} {WORDS[at % 90]}" for at, word in enumerate(lines)]
        own = text_runs(" ".join(blamed))
        learner.learn(page(f"/annotate/tip/{n}_x_y", f"T{WORDS[n]} {WORDS[-n - 1]}"), own)
    assert score(learner, "/file/tip/9_x_y") > MOST
    assert score(learner, "/annotate/tip/9_x_y") < FRUITFUL


def test_digests_are_wanted_if_some_kinds_are_barren() -> None:
    plain = learned(*(page(f"/a/{n}_x_y", f"T{WORDS[n]}") for n in range(60)))
    urls = [f"{HOST}/a/{n}_x_y" for n in range(200)]
    for n in range(TRIED_MIN):
        plain.learn(page(f"/a/{n}_z_z", f"X{WORDS[n]}"), text_runs(" ".join(WORDS[n:])))
    assert not any(map(plain.wants_digest, urls))
    for n in range(8):
        plain.learn(page(f"/{'bc'[n % 2]}/{n}_x_y", reason=Reason.NOINDEX))
    assert plain.scores.has_many_barren
    assert all(map(plain.wants_digest, urls))


def test_path_with_and_without_parameters_is_repeated() -> None:
    learner = KindLearner()
    for n, title in enumerate(("Ant", "Bee", "Cat", "Dog", "Elk")):
        bare, with_commit = f"/git/tree/{n}_a_b", f"/git/tree/{n}_a_b?id=3"
        first, second = (bare, with_commit) if n % 2 else (with_commit, bare)
        learner.learn(page(first, f"{title} file"))
        learner.learn(page(second, f"{title} file"))
    for new, again in (("9_a_b", "2_a_b"), ("9_a_b?id=3", "1_a_b?id=3")):
        assert score(learner, f"/git/tree/{new}") > FRUITFUL + 0.1
        assert score(learner, f"/git/tree/{again}") < FRUITFUL - 0.1


def test_repeated_parameter_value_is_other_kind() -> None:
    learner = KindLearner()
    for n, title in enumerate(("Ant", "Bee", "Cat", "Dog", "Elk")):
        for revision in range(100, 105):
            url = f"/?p=web.git;a=blob;f=src/{n}_a_b;h={n}{revision}"
            learner.learn(page(url, f"{title} file"))
    assert score(learner, "/?p=web.git;a=blob;f=src/9_a_b;h=91") > 0.7
    assert score(learner, "/?p=web.git;a=blob;f=src/2_a_b;h=91") < 0.15
    known = shared_counts_of(
        f"{HOST}/?p=web.git;a=blob;f=src/7_a_b;h=91", learner.scores.unshared()
    )
    assert known is not None
    assert known[0] >= 5


def test_first_url_of_value_keeps_its_shape() -> None:
    learner = KindLearner()
    url = f"{HOST}/item?id=7&sid=a1_b_c"
    before = learner.scores.score_of(url).shape
    learner.learn(page("/item?id=7&sid=a1_b_c", "A lamp"))
    learner.learn(page("/item?id=7&sid=a2_b_c", "A lamp"))
    assert learner.scores.score_of(url).shape == before
    assert learner.scores.score_of(f"{HOST}/item?id=7&sid=a3_b_c").shape != before


def test_redirect_to_new_page_is_fruitful() -> None:
    learner = KindLearner()
    for n in range(9):
        redirect = page(f"/go/{n}_a_b", outcome=Outcome.REDIRECTED, reason=Reason.REDIRECT)
        learner.learn(replace(redirect, status=302))
        learner.learn(page(f"/a/{n}_x_y", f"T{WORDS[n]}", referrer=redirect.url))
    assert score(learner, "/go/99_a_b") > MOST


def test_doubtful_kind_releases_part_of_known_count() -> None:
    known = [f"/d/{n}_a_b" for n in range(16)]
    learner = KindLearner()
    for n, path in enumerate(known):
        sorted_out(learner, path, taken=BANDS_MAX)
        learner.learn(page(path, f"T{WORDS[n]}", reason=REASONS[n < 6]))
    paths = [f"/d/{n}_a_b" for n in range(20, 60)]
    assert sorted_out(learner, *paths) == ([], [(3, path) for path in paths])
    asked, left = paths[:2], paths[2:]
    assert sorted_out(learner, *paths, taken=3) == (asked, [(3, path) for path in left])
    for path in asked:
        learner.learn(page(path, reason=Reason.NOINDEX))
    while left:
        prompt, late = sorted_out(learner, *left, taken=BANDS_MAX)
        assert len(prompt) == min(len(left), (56 - len(left)) // 8)
        left = [path for _, path in late]
        for path in prompt:
            learner.learn(page(path, reason=Reason.NOINDEX))


def test_express_links_and_sitemaps_are_never_late() -> None:
    url = HOST + "/e?action=edit&t=7"
    links = [
        Target(url=url, depth=1, express=True),
        Target(url=f"{url}7", depth=1, kind=TargetKind.SITEMAP),
    ]
    assert wiki().sorted_out(links) == (links, [])


def test_query_known_as_fruitful_to_others_is_recognized() -> None:
    """One container has too many queries to remember them all."""
    many = [page(f"/w/x_{n}_y.php?f{'abcdefghijklmnopqrstuvwxyz'[n]}=1") for n in range(26)]
    barren = [replace(one, reason=Reason.NOINDEX) for one in many]
    late = learned(*barren)
    url = f"{HOST}/w/z_9_y.php?t=77"
    assert late.scores.score_of(url).shape[7] == ANY_QUERY
    others = learned(*(page(f"/w/x_{n}_y.php?t={n}", f"T{'abcdef'[n]}") for n in range(6)))
    told = others.scores.unshared()
    late.scores.adopt_shared({}, told)
    assert late.scores.score_of(url).shape[7] == "?t="
    assert score(late, "/w/z_9_y.php?t=77") > 0.7
    assert late.scores.score_of(f"{HOST}/w/z_9_y.php?u=7").shape[7] == ANY_QUERY
    again = learned(*barren)
    again.scores.adopt_shared({}, {key: count for key, count in told.items() if key[0] == "a"})
    assert again.scores.score_of(url).shape[7] == ANY_QUERY


def test_shared_counts_are_searched_for_few_queries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A page may link to thousands of queries, and each lookup computes several digests."""
    looked: list[Shape] = []
    with_marks = kind_scores._with_marks

    def look(shape: Shape, total: Mapping[str, int]) -> KindCount:
        looked.append(shape)
        return with_marks(shape, total)

    monkeypatch.setattr(kind_scores, "_with_marks", look)
    late = learned(*(page(f"/w/x_{n}_y.php?f{WORDS[n]}=1") for n in range(SIBLINGS_MAX + 2)))
    late.scores.adopt_shared({}, {"a0": 1})
    for _ in range(2):
        for n in range(OPEN_MAX + 100):
            late.scores.score_of(f"{HOST}/w/z_9_y.php?g{WORDS[n % 150]}{WORDS[n // 150]}=1")
    assert len(looked) == OPEN_MAX


def test_order_of_links_is_deterministic() -> None:
    records = [page(f"/k{n % 7}/T_{n}_x?a={n % 3}", f"Word{'abcdefg'[n % 7]}") for n in range(90)]
    paths = [f"/k{n % 9}/z_{n}_x?a=1" for n in range(40)]
    assert sorted_out(learned(*records), *paths) == sorted_out(learned(*records), *paths)


def test_digests_are_wanted_for_first_pages_only() -> None:
    learner = KindLearner()
    wanted = 0
    for n in range(1_000):
        url = f"/d/T_{n}_x"
        digest = None
        if learner.wants_digest(HOST + url):
            wanted += 1
            digest = text_runs(f"word{n} and what is said of it, which no other page says")
        learner.learn(page(url, f"word{n}"), digest)
    assert wanted == TRIED_MIN


def test_counts_of_all_containers_are_added_once() -> None:
    one, other = KindScores(), KindScores()
    for number in range(4):
        one.note(f"{HOST}/e?action=edit&t={number}")
        other.note(f"{HOST}/e?action=edit&t={number + 10}")
    total: dict[str, int] = {}
    for scores in (one, other, one, other):
        told = scores.unshared()
        for key, count in told.items():
            total[key] = total.get(key, 0) + count
        scores.adopt_shared(told, dict(total))
    url = f"{HOST}/e?action=edit&t=9"
    assert one.score_of(url).count.requested == other.score_of(url).count.requested == 6
    assert one.unshared() == other.unshared() == {}
    begun = KindScores()
    begun.adopt_shared({}, total)
    assert begun.score_of(url).score < 0.1
    assert one.score_of(url).score < 0.1
    assert all(len(key) <= 16 and key.isascii() for key in total)


def test_fruitful_query_is_separated_from_other_queries() -> None:
    learner = KindLearner()
    for number in range(10):
        learner.learn(page(f"/viewforum.php?board=7{number}&sid=a_b_{number}", WORDS[number]))
    for at, word in enumerate(WORDS[: SIBLINGS_MAX + 6]):
        path = f"/viewforum.php?board=7&{word}=1"
        learner.learn(page(path, WORDS[at % 10], reason=REASONS[at % 2]))
    assert score(learner, "/viewforum.php?board=99&sid=x_y_z") > FRUITFUL
    assert score(learner, "/viewforum.php?board=7&never_seen=1") < FRUITFUL / 2
    known = shared_counts_of(
        f"{HOST}/viewforum.php?board=7&never_seen=1", learner.scores.unshared()
    )
    assert known is not None
    assert known[0] >= SIBLINGS_MAX - 1


def test_number_of_kinds_is_bounded() -> None:
    learner = KindLearner()
    for number in range(3_000):
        word = "".join("abcdefghij"[int(digit)] for digit in str(number))
        learner.learn(page(f"/{word}/x?{word}=1", "T"))
    assert len(learner.scores.unshared()) <= 4 * KINDS_MAX


def test_crawls_with_own_page_limit_are_ordered() -> None:
    assert is_ordered(CRAWL)
    assert not is_ordered(replace(CRAWL, pages_max=1_000_000, shards=16))
    assert not is_ordered(replace(CRAWL, pages_max=1_000_000))
    assert not is_ordered(default_crawl(0))
