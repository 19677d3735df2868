"""What kinds of URLs have brought: what counts as new, and the order that follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

import pytest

from orbweaver.frontier import kind_scores, met
from orbweaver.frontier.kind_count import KindCount
from orbweaver.frontier.kind_learner import (
    ALL_UNTRIED_OUT,
    ANSWERED_WITHIN,
    FRUITFUL,
    SAMPLED_FIRST,
    SURE,
    KindLearner,
)
from orbweaver.frontier.kind_scores import (
    CALM_EACH,
    CALM_NOTED,
    KINDS_MAX,
    OPEN_MAX,
    KindScores,
    is_ordered,
    told_of,
)
from orbweaver.frontier.late import BANDS_MAX, DOUBTFUL, SURPLUS, UNKNOWN, UNLIKELY
from orbweaver.frontier.met import COMMON, Met
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
    """The score of the kind of a path."""
    return learner.scores.of(HOST + path).score


def test_a_kind_that_is_not_known_is_tried() -> None:
    """Nothing speaks against it, and one page does not decide."""
    assert score(KindLearner(), "/a") == pytest.approx(2 / 3)
    one = learned(page("/w/index.php?action=edit&title=a", reason=Reason.NOINDEX))
    assert not one.scores.of(HOST + "/w/index.php?action=edit&title=b").count.tried


def test_pages_that_ask_to_be_left_out_of_indexes_make_a_kind_barren() -> None:
    """What is learned of forms is told from what is learned of articles by the parameters."""
    titles = ("Ant colony", "Bee hive", "Cat nap", "Dog star")
    forms = [
        page(f"/w/index.php?title=T_{n}&action=edit", f"Editing {title}", reason=Reason.NOINDEX)
        for n, title in enumerate(titles)
    ]
    articles = [page(f"/w/index.php?title=T_{n}_x", title) for n, title in enumerate(titles)]
    learner = learned(*forms, *articles)
    assert score(learner, "/w/index.php?title=New_one_9&action=edit") < 0.25
    assert score(learner, "/w/index.php?title=New_one_9") > SURE


def test_a_title_that_varies_only_with_its_url_is_not_new() -> None:
    """Histories are named after their files; without a digest the first texts would decide."""
    learner = KindLearner()
    text = text_runs("one commit and then another commit by the same people of this project " * 2)
    for name in ("readme", "setup", "worker", "queue", "table", "claim"):
        learner.learn(page(f"/git/history/{name}.py", f"history - {name}.py"), text)
    for name in ("seeds", "pages"):
        learner.learn(page(f"/git/history/{name}.py", f"history - {name}.py"))
    assert score(learner, "/git/history/more.py") < 0.3


def test_texts_that_vary_make_titles_count_that_repeat_the_url() -> None:
    """A page of a wiki whose title is its address is new where its text is."""
    learner = KindLearner()
    random = Random(5)
    for name in ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"):
        words = " ".join("".join(random.choices("abcdefgh", k=6)) for _ in range(200))
        digest = text_runs(words) if learner.wants_digest(f"{HOST}/doku/{name}") else None
        learner.learn(page(f"/doku/{name}", name), digest)
    assert score(learner, "/doku/kappa") > 0.8


def test_digits_make_no_title_new() -> None:
    """The months of a calendar are one page."""
    learner = learned(*(page(f"/events?month={n}", f"Events of {n}") for n in range(1, 12)))
    assert score(learner, "/events?month=99") < 0.25


def test_an_address_counts_once_however_often_it_is_shown() -> None:
    """A page under tracking parameters is new if its canonical address was not met."""
    first = page("/p/lamp-a?ref=home", "A lamp", canonical=HOST + "/p/lamp-a")
    again = page("/p/lamp-a?colour=red", "A red lamp", canonical=HOST + "/p/lamp-a")
    learner = learned(first, again)
    assert learner.scores.of(HOST + "/p/x?ref=home").count.fruitful == 1
    assert learner.scores.of(HOST + "/p/x?colour=red").count.fruitful == 0


def test_a_canonical_address_of_another_host_does_not_count() -> None:
    """A copy of a manual whose pages all name the original is new all the same."""
    pages = [
        page(f"/3/{name}.html", f"All about {name} things", canonical="https://docs.example/")
        for name in ("ant", "bee", "cat", "dog")
    ]
    assert score(learned(*pages), "/3/elk.html") > 0.8


def test_what_leads_to_new_pages_is_fruitful() -> None:
    """A listing that asks not to be indexed is worth its request, once."""
    listing = HOST + "/Special:All"
    pages = [page(f"/wiki/T_{n}_x", title) for n, title in enumerate(("Ant hill", "Bee hive"))]
    found = (replace(one, referrer=listing) for one in pages)
    learner = learned(page("/Special:All", reason=Reason.NOINDEX), *found)
    count = learner.scores.of(HOST + "/Special:Other").count
    assert (count.asked, count.fruitful) == (1, 1)


UNASKED = {"outcome": Outcome.SKIPPED, "reason": Reason.ROBOTS, "status": None}


def failed(status: int | None) -> dict[str, object]:
    """How a URL ended whose host was in trouble."""
    return {"outcome": Outcome.FAILED, "reason": Reason.HOST_DOWN, "status": status}


@pytest.mark.parametrize(
    ("ended", "rounds"),
    [(UNASKED, [1, 1, 1, 6, 18, 3]), *((failed(one), [1] * 30) for one in (None, 429, 500, 503))],
)
def test_what_is_not_answered_says_nothing_of_a_kind_and_is_not_out(
    ended: dict[str, object], rounds: list[int]
) -> None:
    """Of one that robots.txt forbids more are let out each time: they cost no request."""
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
    assert learner.scores.count(f"{HOST}/d/0_a_b").out == 0


def test_what_another_container_takes_back_is_not_out() -> None:
    """One let them out, another one is told by robots.txt that they are not to be asked for."""
    one, other = (learned(page("/a/1_a_b", reason=Reason.NOINDEX)) for _ in range(2))
    sorted_out(one, "/d/0_a_b", taken=DOUBTFUL)
    total = one.scores.unshared()
    one.scores.share(total, total)
    other.scores.share({}, total)
    assert not sorted_out(other, "/d/1_a_b")[0]
    other.learn(replace(page("/d/0_a_b"), **UNASKED))  # type: ignore[arg-type]
    told = other.scores.unshared()
    total = {key: total.get(key, 0) + told.get(key, 0) for key in total.keys() | told.keys()}
    other.scores.share(told, total)
    one.scores.share({}, total)
    assert one.scores.count(f"{HOST}/d/0_a_b").out == 0


def test_the_same_parameters_elsewhere_are_what_a_new_kind_begins_with() -> None:
    """Sort links of one folder say what those of the next are."""
    learner = learned(*(page(f"/doc/a/?C={c};O=A", "Index of a") for c in "NMSDNMSD"))
    assert score(learner, "/doc/b/?C=N;O=D") < FRUITFUL
    assert score(learner, "/doc/b/") > FRUITFUL


def sorted_out(
    learner: KindLearner, *paths: str, taken: int | None = None
) -> tuple[list[str], list[tuple[int, str]]]:
    """Sort links out: the paths asked for at once, and bands with paths of the others."""
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
    """The band in which the link to a path waits."""
    _, ((found, _),) = learner.sorted_out([Target(url=HOST + path, depth=1)])
    return found


def wiki() -> KindLearner:
    """Learn from five forms and five articles."""
    return learned(
        *(page(f"/e?action=edit&t={n}", reason=Reason.NOINDEX) for n in range(5)),
        *(page(f"/a/T_{n}_x", f"T{'abcde'[n]}") for n in range(5)),
    )


def test_what_its_folders_bring_is_what_a_new_kind_begins_with() -> None:
    """The differences of one sort of files are like those of another; files themselves are not."""
    diffs = [page(f"/git/diff/{n}_a_b.py", reason=Reason.NOINDEX) for n in range(6)]
    files = [page(f"/git/tree/{n}_a_b.py", f"T{'abcdef'[n]}") for n in range(6)]
    learner = learned(*diffs, *files)
    assert score(learner, "/git/diff/1_a_b.md?id=4") < 0.2
    assert score(learner, "/git/tree/1_a_b.md?id=4") > 0.8
    # One folder alone is as the whole host.
    assert score(learner, "/git/1_a_b.md?id=4") == pytest.approx(2 / 3)


def test_links_of_barren_kinds_are_late_and_none_is_lost() -> None:
    """Fruitful links are asked for at once; untried kinds wait, and barren ones behind them."""
    paths = ("/e?action=edit&t=7", "/a/one_1_x", "/d/new?x=1", "/a/two_2_x")
    assert sorted_out(wiki(), *paths) == (
        ["/a/one_1_x", "/a/two_2_x"],
        [(UNKNOWN, "/d/new?x=1"), (5, "/e?action=edit&t=7")],
    )


def test_a_late_pack_is_asked_for_if_its_band_still_is_its_kinds() -> None:
    """What has become worse since waits once more; what is no worse is asked for, always."""
    late = ("/e?action=edit&t=7", "/e?action=edit&t=8")
    assert sorted_out(wiki(), *late, taken=3) == ([], [(5, late[0]), (5, late[1])])
    for band in (5, 6):
        assert sorted_out(wiki(), *late, taken=band) == ([*late], [])


def test_a_kind_that_is_not_known_is_tried_once_until_that_was_answered() -> None:
    """More answers at once would tell no more of it; each answer lets others out."""
    learner = KindLearner()
    paths = [f"/new?x={n}" for n in range(9)]
    prompt, late = sorted_out(learner, *paths[:5])
    # The first of a path is told from the others.
    assert prompt == paths[:2]
    assert late == [(1, path) for path in paths[2:5]]
    assert sorted_out(learner, paths[5]) == ([], [(1, paths[5])])
    learner.learn(page(paths[1], "Ant hill"))
    assert sorted_out(learner, *paths[5:7]) == ([paths[5]], [(1, paths[6])])


def test_of_a_late_pack_one_is_asked_for_at_least() -> None:
    """What was put off comes again without news of it: all of it could wait so for ever."""
    learner = KindLearner()
    paths = [f"/new?x={n}" for n in range(9)]
    sorted_out(learner, *paths[:3])
    left = [(1, path) for path in paths[4:]]
    assert sorted_out(learner, *paths[3:], taken=1) == ([paths[3]], left)
    assert sorted_out(learner, *paths[4:], taken=1) == ([paths[4]], left[1:])


def test_of_kinds_that_are_alike_one_is_tried_until_that_was_answered() -> None:
    """The history of a Markdown file tells of that of a script."""
    learner = KindLearner()
    logs = [f"/git/log/one_1_x.{extension}?h=1" for extension in ("md", "py", "sh")]
    assert sorted_out(learner, *logs) == (logs[:1], [(UNKNOWN, path) for path in logs[1:]])
    learner.learn(page(logs[0], "Ant hill"))
    assert sorted_out(learner, *logs[1:]) == (logs[1:2], [(UNKNOWN, logs[2])])


@pytest.mark.parametrize("taken", [None, UNKNOWN])
def test_kinds_that_are_alike_are_one_though_they_are_met_at_once(taken: int | None) -> None:
    """Whichever of them is looked at first, also in a pack that waited."""
    learner = KindLearner()
    logs = [f"/git/log/one_1_x.{extension}?h=1" for extension in ("md", "py", "sh")]
    for path in logs:
        score(learner, path)
    assert len(sorted_out(learner, *reversed(logs), taken=taken)[0]) == 1


def test_of_all_kinds_that_are_not_known_some_are_tried_at_a_time() -> None:
    """An answer tells of relatives, too. What is not answered for long is not waited for."""
    learner = KindLearner()
    paths = [f"/{word}?{word}=1" for word in WORDS[:20]]
    late = [(UNKNOWN, path) for path in paths[ALL_UNTRIED_OUT:]]
    assert sorted_out(learner, *paths) == (paths[:ALL_UNTRIED_OUT], late)
    assert sorted_out(learner, paths[-1]) == ([], [(UNKNOWN, paths[-1])])
    for n in range(ANSWERED_WITHIN):
        learner.learn(page(f"/d/{n}_a_b", f"T{n}"))
    assert sorted_out(learner, paths[-1]) == ([paths[-1]], [])


def test_of_a_late_pack_what_is_known_to_be_fruitful_goes_first() -> None:
    """What was not known when it was put may be by now; the others of its pack wait for it."""
    learner = learned(
        *(page(f"/d/{n}_a_b", f"T{'abc'[n]}") for n in range(3)),
        *(page(f"/e/{n}_a_b", f"U{'abcd'[n]}", reason=REASONS[n < 1]) for n in range(4)),
    )
    good, doubtful = "/d/7_a_b", "/e/7_a_b"
    assert 0.3 < score(learner, doubtful) < FRUITFUL < score(learner, good)
    assert sorted_out(learner, doubtful, good, taken=3) == ([good], [(3, doubtful)])
    assert sorted_out(learner, doubtful, taken=3) == ([doubtful], [])


def test_what_near_relatives_say_is_believed_sooner() -> None:
    """Where both the parameters and the folders of an untried kind are barren, it is tried last."""
    for folder, late in (("/w/diff", UNLIKELY), ("/diff", DOUBTFUL)):
        forms = [page(f"{folder}/{n}_a_b?id={n}", reason=Reason.NOINDEX) for n in range(20)]
        learner = learned(*forms)
        assert score(learner, f"{folder}/8_a_b?id=9&to=2") < 0.15
        assert band(learner, f"{folder}/8_a_b?id=9&to=2") == late


def test_a_kind_whose_kin_is_barren_is_tried_late() -> None:
    """The differences of files say little of files, where all they have in common is a parameter.

    So it is tried, behind what may be better, and before what is known to be barren.
    """
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


def test_to_have_no_parameters_is_nothing_in_common() -> None:
    """So the differences of files say nothing of files of another folder; what is in it does."""
    learner = learned(*(page(f"/git/diff/{n}_a_b.py", reason=Reason.NOINDEX) for n in range(6)))
    assert score(learner, "/git/tree/0_a_b.py") == pytest.approx(2 / 3)
    assert score(learner, "/git/diff/0_a_b") < FRUITFUL


def test_what_is_done_to_one_namespace_tells_of_others() -> None:
    """The forms of talks are as those of articles: none of them is tried.

    What else the program does to talks is, but behind what may be better.
    """
    forms = [page(f"/w?title=T_{n}_x&action=edit", reason=Reason.NOINDEX) for n in range(4)]
    talks = ["/w?title=Talk:T_8_x&action=edit", "/w?title=Talk:T_9_x&action=view"]
    learner = learned(*forms)
    assert sorted_out(learner, *talks) == ([], [(DOUBTFUL, talks[1]), (5, talks[0])])


def test_what_is_done_to_one_sort_of_files_tells_of_others() -> None:
    """Pictures of the same folder say nothing: that they are no pages is why they bring none."""
    diffs = [page(f"/git/diff/{n}_a_b.py?id={n}", reason=Reason.NOINDEX) for n in range(4)]
    learner = learned(*diffs)
    text = "/git/diff/8_a_b.md?id=9"
    assert learner.scores.of(HOST + text).alike == 4
    assert band(learner, text) == 6
    skipped = {"outcome": Outcome.SKIPPED, "reason": Reason.CONTENT_TYPE}
    pictures = [page(f"/doc/figures/{n}_a_b.png", **skipped) for n in range(4)]
    learner = learned(*pictures)
    assert learner.scores.of(f"{HOST}/doc/figures/8_a_b.html").alike == 0
    assert band(learner, "/doc/figures/8_a_b.html") == DOUBTFUL


def test_some_times_as_many_of_a_kind_are_out_as_are_known() -> None:
    """A page that names a hundred of them, of which three are known, would be asked for in vain.

    And what is known to be fruitful now may be so no more: the first reviews of each product.
    """
    few = learned(*(page(f"/d/{n}_a_b", f"T{'abc'[n]}", reason=REASONS[n < 2]) for n in range(3)))
    paths = [f"/d/{n}_a_b" for n in range(10, 40)]
    assert FRUITFUL < score(few, paths[0]) < SURE
    assert sorted_out(few, *paths) == (paths[:9], [(SURPLUS, path) for path in paths[9:]])
    sure = learned(*(page(f"/d/{n}_a_b", f"T{'abc'[n]}") for n in range(3)))
    assert sorted_out(sure, *paths) == (paths[:21], [(SURPLUS, path) for path in paths[21:]])
    left = [(SURPLUS, path) for path in paths[22:]]
    assert sorted_out(sure, *paths[21:], taken=SURPLUS) == (paths[21:22], left)
    for n in range(3):
        sure.learn(page(paths[n], f"T{'def'[n]}"))
    assert sorted_out(sure, *paths[22:], taken=SURPLUS) == (paths[22:], [])


def test_what_was_not_let_out_after_all_is_not_waited_for() -> None:
    """Another container has claimed it, or the limit is reached: the next of its kind is tried."""
    learner = KindLearner()
    paths = [f"/d/{n}_a_b" for n in range(5)]
    assert sorted_out(learner, *paths) == (paths[:1], [(UNKNOWN, path) for path in paths[1:]])
    assert sorted_out(learner, paths[1]) == ([], [(UNKNOWN, paths[1])])
    learner.take_back([HOST + paths[0]] * 2)
    assert sorted_out(learner, *paths[1:3]) == (paths[1:2], [(UNKNOWN, paths[2])])


def test_what_other_parameters_of_the_same_paths_bring_is_what_a_new_one_is_judged_by() -> None:
    """A wiki's script makes forms, histories and lists: what is new is likely one of these."""
    forms = [
        page(f"/w/index.php?title=T_{n}_x&action={action}", reason=Reason.NOINDEX)
        for n, action in enumerate(("edit", "info", "history", "edit", "info", "history"))
    ]
    learner = learned(*forms)
    assert score(learner, "/w/index.php?title=T_8_x&oldid=77") < FRUITFUL / 2
    assert band(learner, "/w/index.php?title=T_8_x&oldid=77") == DOUBTFUL
    assert score(learner, "/w/other/T_8_x?oldid=77") == pytest.approx(2 / 3)
    assert score(learner, "/w/index.php/T_8_x") == pytest.approx(2 / 3)
    own = [page(f"/w/index.php?title=T_{n}_y&page=b", f"T{WORDS[n]}") for n in range(4)]
    for one in own:
        learner.learn(one)
    assert score(learner, "/w/index.php?title=T_9_y&page=b") > FRUITFUL


def test_nothing_waits_where_nearly_all_kinds_are_fruitful() -> None:
    """A manual has chapters of all kinds: the order would gain nothing, and cost time and texts."""
    names = ["".join(Random(n).choices("abcdefgh", k=6)) for n in range(60)]
    learner = learned(*(page(f"/k{'abcde'[n % 5]}/{n}_a_b", names[n]) for n in range(60)))
    assert learner.scores.calm
    paths = [f"/new/{n}_a_b" for n in range(9)]
    assert sorted_out(learner, *paths) == (paths, [])
    assert sorted_out(learner, *paths, taken=1) == (paths, [])
    texts = [f"{HOST}/ka/{n}_x_y" for n in range(200)]
    assert learner.wants_digest(texts[0])
    for n in range(2):
        learner.learn(page(f"/ka/{n}_x_y", f"X {names[n]}"), text_runs(" ".join(names[n:])))
    assert not any(map(learner.wants_digest, texts))
    barren = [page(f"/b{'abcde'[n % 5]}?x={n}", reason=Reason.NOINDEX) for n in range(40)]
    assert not learned(*barren).scores.calm


def test_one_kind_that_has_always_been_fruitful_is_enough_to_wait_for_nothing() -> None:
    """A site of one kind; until one is known that brings little."""
    learner = KindLearner()
    for n in range(CALM_NOTED + CALM_EACH):
        assert not (n < CALM_NOTED and learner.scores.calm)
        learner.learn(page(f"/d/{n}_a_b", f"T{WORDS[n]}"))
    assert learner.scores.calm
    for n in range(CALM_EACH):
        learner.learn(page(f"/form?x={n}", reason=Reason.NOINDEX))
    assert not learner.scores.calm


def alone() -> KindLearner:
    """Make the learner of a container that has read the shared counts, and found none."""
    learner = KindLearner()
    learner.scores.share({}, {})
    return learner


DOC = [f"/doc/{n}_a_b" for n in range(300)]


def test_where_there_is_nothing_to_choose_from_nothing_waits() -> None:
    """A manual's first page names all chapters; until links of other kinds are met, or barren."""
    learner = alone()
    assert sorted_out(learner, *DOC) == (DOC, [])
    assert learner.scores.count(HOST + DOC[0]).out == 300
    assert len(sorted_out(learner, *DOC, "/edit?page=x_y_z", "/log/x_y_z")[1]) == 300
    other = alone()
    sorted_out(other, *DOC[:3])
    other.learn(page(DOC[0], reason=Reason.NOINDEX))
    assert len(sorted_out(other, *DOC)[1]) > 200
    assert len(sorted_out(alone(), *DOC, "/doc/300_a_b")[1]) == 300


@pytest.mark.parametrize("case", ["not read", "late", "merged", "others"])
def test_kinds_are_few_only_as_far_as_is_known(case: str) -> None:
    """Not where others have met more, where many were put together, or for a pack that waited."""
    learner = alone() if case != "not read" else KindLearner()
    if case == "merged":
        assert len(sorted_out(learner, *(f"/{word}/1_a_b" for word in WORDS[:30]))[0]) <= 16
    if case == "others":
        others = learned(*(page(f"/{one}/", one) for one in WORDS[:5]))
        learner.scores.share({}, others.scores.unshared())
    prompt, late = sorted_out(learner, *DOC, taken=UNKNOWN if case == "late" else None)
    assert len(prompt) <= 1
    assert len(late) >= 299


def test_texts_are_compared_where_kinds_are_few() -> None:
    """One kind may bring the same text again and again."""
    learner = alone()
    sorted_out(learner, *DOC)
    assert all(learner.wants_digest(HOST + path) for path in DOC)


def test_a_crawl_is_calm_only_as_far_as_all_know() -> None:
    """A container that has met fruitful kinds alone lets nothing out that waits elsewhere."""
    one, other = learned(page("/a/1_a_b", "T")), KindLearner()
    for n in range(CALM_NOTED + CALM_EACH):
        one.learn(page(f"/d/{n}_a_b", f"T{WORDS[n]}"))
        other.learn(page(f"/form/{'abcdefgh'[n % 8]}?x={n}", reason=Reason.NOINDEX))
    before = one.scores.calm
    one.scores.share({}, other.scores.unshared())
    assert (before, one.scores.calm, one.scores.doubtful) == (True, False, True)


COMMITS = [" ".join(Random(n).choices(WORDS, k=12)) for n in range(40)]


def test_a_text_of_what_was_met_before_is_not_new() -> None:
    """The history of a file is like no other, but its lines stand in the log, too."""
    learner = KindLearner()
    learner.learn(page("/git?a=log", "Log"), text_runs(" ".join(COMMITS)))
    for n in range(6):
        lines = " ".join(Random(n).sample(COMMITS, k=8))
        learner.learn(page(f"/git?a=history&f={n}_a_b", f"history {'abcdef'[n]}"), text_runs(lines))
    assert score(learner, "/git?a=history&f=7_a_b") < 0.3
    assert not Met().take_text(text_runs("one two"), HOST)


def test_what_all_pages_have_makes_no_text_old() -> None:
    """A product has a line of its own, below a menu of two hundred words."""
    learner = KindLearner()
    menu = " ".join(Random(0).choices(WORDS, k=200))
    for n in range(COMMON + 10):
        own = " ".join(Random(n + 1).choices(WORDS, k=30))
        learner.learn(page(f"/p/{n}_a_b", "A shop"), text_runs(f"{menu} {own}"))
    runs = text_runs(f"{menu} {' '.join(Random(99).choices(WORDS, k=30))}")
    assert learner.scores.met.take_text(runs, HOST)
    assert learner.scores.met.take_text(runs, HOST) is False
    assert learner.scores.met.take_text(runs, "https://other.example")


def test_runs_are_forgotten_when_they_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """As all that is remembered of pages."""
    monkeypatch.setattr(met, "RUN_SLOTS", 64)
    known = Met()
    runs = [RUNS_EACH * n for n in range(20)]
    assert known.take_text(runs, HOST)
    assert known.take_text(runs, HOST)


def test_kinds_that_are_not_known_wait_where_there_is_one_worth_its_requests() -> None:
    """They are tried when they are due."""
    learner = learned(*(page(f"/a/T_{n}_x", f"T{'abcdefghij'[n]}") for n in range(10)))
    assert sorted_out(learner, "/new?x=1", "/a/x_1_y") == (["/a/x_1_y"], [(1, "/new?x=1")])
    assert sorted_out(learner, "/new?x=1", taken=1) == (["/new?x=1"], [])


def test_other_parameters_of_a_path_are_of_another_kind() -> None:
    """The same file at another commit is no new page, though most files are."""
    learner = KindLearner()
    for n, title in enumerate(("Ant", "Bee", "Cat", "Dog", "Elk")):
        for commit in range(3, 7):
            learner.learn(page(f"/git/tree/{n}_a_b?id={commit}", f"{title} file"))
    assert score(learner, "/git/tree/9_a_b?id=4") > 0.7
    assert score(learner, "/git/tree/2_a_b?id=9") < 0.15


def test_the_same_behind_another_id_of_a_path_is_of_another_kind() -> None:
    """A file at another revision is no new page, though most files are; a title may name it."""
    learner = KindLearner()
    revisions = ("0b940c251a8e", "3f00d1e7c4b2", "77aa01bcdef9", "c0ffee123456")
    for n, title in enumerate(("Ant", "Bee", "Cat", "Dog", "Elk")):
        for revision in revisions:
            learner.learn(page(f"/file/{revision}/a/{n}_x_y.py", f"{title} file@{revision}"))
    assert score(learner, f"/file/{revisions[0]}/a/9_x_y.py") > SURE
    assert score(learner, "/file/999aaa000bbb/a/2_x_y.py") < 0.15
    members = learned(*(page(f"/user/{n}/posts", f"T{'abcdef'[n]}") for n in range(6)))
    assert score(members, "/user/77/posts") > SURE


def test_a_view_of_what_was_met_must_say_more_to_be_new() -> None:
    """Who wrote each line stands beside the lines that a file's own page has."""
    learner = KindLearner()
    words = [" ".join(Random(n).choices(WORDS, k=200)).split() for n in range(8)]
    for n, lines in enumerate(words):
        learner.learn(page(f"/file/tip/{n}_x_y", f"T{WORDS[n]}"), text_runs(" ".join(lines)))
    for n, lines in enumerate(words):
        blamed = [word if at % 9 else f"{word} {WORDS[at % 90]}" for at, word in enumerate(lines)]
        own = text_runs(" ".join(blamed))
        learner.learn(page(f"/annotate/tip/{n}_x_y", f"T{WORDS[n]} {WORDS[-n - 1]}"), own)
    assert score(learner, "/file/tip/9_x_y") > SURE
    assert score(learner, "/annotate/tip/9_x_y") < FRUITFUL


def test_all_texts_are_compared_where_kinds_are_known_that_bring_little() -> None:
    """What a page says is known then when another says it once more."""
    plain = learned(*(page(f"/a/{n}_x_y", f"T{WORDS[n]}") for n in range(60)))
    urls = [f"{HOST}/a/{n}_x_y" for n in range(200)]
    for n in range(SAMPLED_FIRST):
        plain.learn(page(f"/a/{n}_z_z", f"X{WORDS[n]}"), text_runs(" ".join(WORDS[n:])))
    assert sum(map(plain.wants_digest, urls)) < 10
    for n in range(8):
        plain.learn(page(f"/{'bc'[n % 2]}/{n}_x_y", reason=Reason.NOINDEX))
    assert plain.scores.mixed
    assert all(map(plain.wants_digest, urls))


def test_a_path_with_parameters_is_the_same_path_as_one_without() -> None:
    """Whichever of them is asked for first, the other one shows the same once more."""
    learner = KindLearner()
    for n, title in enumerate(("Ant", "Bee", "Cat", "Dog", "Elk")):
        bare, with_commit = f"/git/tree/{n}_a_b", f"/git/tree/{n}_a_b?id=3"
        first, second = (bare, with_commit) if n % 2 else (with_commit, bare)
        learner.learn(page(first, f"{title} file"))
        learner.learn(page(second, f"{title} file"))
    for new, again in (("9_a_b", "2_a_b"), ("9_a_b?id=3", "1_a_b?id=3")):
        assert score(learner, f"/git/tree/{new}") > FRUITFUL + 0.1
        assert score(learner, f"/git/tree/{again}") < FRUITFUL - 0.1


def test_a_value_that_was_asked_for_before_makes_another_kind() -> None:
    """Where the path is the program's, parameters name the file; its revisions are no new pages."""
    learner = KindLearner()
    for n, title in enumerate(("Ant", "Bee", "Cat", "Dog", "Elk")):
        for revision in range(100, 105):
            url = f"/?p=web.git;a=blob;f=src/{n}_a_b;h={n}{revision}"
            learner.learn(page(url, f"{title} file"))
    assert score(learner, "/?p=web.git;a=blob;f=src/9_a_b;h=91") > 0.7
    assert score(learner, "/?p=web.git;a=blob;f=src/2_a_b;h=91") < 0.15
    known = told_of(f"{HOST}/?p=web.git;a=blob;f=src/7_a_b;h=91", learner.scores.unshared())
    assert known is not None
    assert known[0] >= 5


def test_the_first_url_of_a_value_stays_the_first() -> None:
    """However often it is looked at, before and after it was asked for."""
    learner = KindLearner()
    url = f"{HOST}/item?id=7&sid=a1_b_c"
    before = learner.scores.of(url).shape
    learner.learn(page("/item?id=7&sid=a1_b_c", "A lamp"))
    learner.learn(page("/item?id=7&sid=a2_b_c", "A lamp"))
    assert learner.scores.of(url).shape == before
    assert learner.scores.of(f"{HOST}/item?id=7&sid=a3_b_c").shape != before


def test_redirects_to_new_pages_count_for_a_part() -> None:
    """Links to their targets are better; one container fetched the redirects, another the rest."""
    one, other = KindLearner(), KindLearner()
    for n in range(30):
        redirect = page(f"/go/{n}_a_b", outcome=Outcome.REDIRECTED, reason=Reason.REDIRECT)
        one.learn(replace(redirect, status=302))
        found = page(f"/a/{n}_x_y", "Word" + "abcdefghij"[n % 10] + "klm"[n // 10])
        other.learn(replace(found, referrer=redirect.url), redirected=True)
    told = one.scores.unshared()
    for key, urls in other.scores.unshared().items():
        told[key] = told.get(key, 0) + urls
    one.scores.share(one.scores.unshared(), told)
    assert 0.15 < score(one, "/go/99_a_b") < FRUITFUL


def test_of_a_doubtful_kind_a_part_of_what_is_known_is_out() -> None:
    """All that wait are no test: the others are judged once more when these have been answered."""
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


def test_links_with_priority_and_sitemaps_are_never_late() -> None:
    """A rule asked for them, or they list what there is."""
    url = HOST + "/e?action=edit&t=7"
    links = [
        Target(url=url, depth=1, express=True),
        Target(url=f"{url}7", depth=1, kind=TargetKind.SITEMAP),
    ]
    assert wiki().sorted_out(links) == (links, [])


def test_a_query_stands_later_if_others_know_that_it_is_fruitful() -> None:
    """A container that met too many of them before it knew of any takes that from what all know."""
    many = [page(f"/w/x_{n}_y.php?f{'abcdefghijklmnopqrstuvwxyz'[n]}=1") for n in range(26)]
    barren = [replace(one, reason=Reason.NOINDEX) for one in many]
    late = learned(*barren)
    url = f"{HOST}/w/z_9_y.php?t=77"
    assert late.scores.of(url).shape[7] == ANY_QUERY
    others = learned(*(page(f"/w/x_{n}_y.php?t={n}", f"T{'abcdef'[n]}") for n in range(6)))
    told = others.scores.unshared()
    late.scores.share({}, told)
    assert late.scores.of(url).shape[7] == "?t="
    assert score(late, "/w/z_9_y.php?t=77") > 0.7
    assert late.scores.of(f"{HOST}/w/z_9_y.php?u=7").shape[7] == ANY_QUERY
    again = learned(*barren)
    again.scores.share({}, {key: count for key, count in told.items() if key[0] == "a"})
    assert again.scores.of(url).shape[7] == ANY_QUERY


def test_queries_are_looked_for_in_what_others_counted_so_often_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A page may name thousands, each of which takes some digests."""
    looked: list[Shape] = []
    with_marks = kind_scores._with_marks

    def look(shape: Shape, total: Mapping[str, int]) -> KindCount:
        looked.append(shape)
        return with_marks(shape, total)

    monkeypatch.setattr(kind_scores, "_with_marks", look)
    late = learned(*(page(f"/w/x_{n}_y.php?f{WORDS[n]}=1") for n in range(SIBLINGS_MAX + 2)))
    late.scores.share({}, {"a0": 1})
    for _ in range(2):
        for n in range(OPEN_MAX + 100):
            late.scores.of(f"{HOST}/w/z_9_y.php?g{WORDS[n % 150]}{WORDS[n // 150]}=1")
    assert len(looked) == OPEN_MAX


def test_the_order_is_the_same_for_equal_pages() -> None:
    """Nothing but pages and their order decides."""
    records = [page(f"/k{n % 7}/T_{n}_x?a={n % 3}", f"Word{'abcdefg'[n % 7]}") for n in range(90)]
    paths = [f"/k{n % 9}/z_{n}_x?a=1" for n in range(40)]
    assert sorted_out(learned(*records), *paths) == sorted_out(learned(*records), *paths)


def test_first_pages_of_a_kind_have_digests_then_a_few() -> None:
    """Digests are what learning costs."""
    learner = KindLearner()
    wanted = 0
    for n in range(1_000):
        url = f"/d/T_{n}_x"
        digest = None
        if learner.wants_digest(HOST + url):
            wanted += 1
            digest = text_runs(f"word{n} and what is said of it, which no other page says")
        learner.learn(page(url, f"word{n}"), digest)
    assert SAMPLED_FIRST < wanted < 40


def test_counts_of_all_containers_are_added_up() -> None:
    """Each learns what the others have found, and tells no count twice."""
    one, other = KindScores(), KindScores()
    for number in range(4):
        one.note(f"{HOST}/e?action=edit&t={number}")
        other.note(f"{HOST}/e?action=edit&t={number + 10}")
    total: dict[str, int] = {}
    for scores in (one, other, one, other):
        told = scores.unshared()
        for key, count in told.items():
            total[key] = total.get(key, 0) + count
        scores.share(told, dict(total))
    url = f"{HOST}/e?action=edit&t=9"
    assert one.of(url).count.asked == other.of(url).count.asked == 6
    assert one.unshared() == other.unshared() == {}
    begun = KindScores()
    begun.share({}, total)
    assert begun.of(url).score < 0.1
    assert one.of(url).score < 0.1
    assert all(len(key) <= 16 and key.isascii() for key in total)


def test_what_brings_something_is_told_from_the_many_other_queries_of_a_script() -> None:
    """A forum's boards, beside its sorts, filters, printable pages and forms to log in."""
    learner = KindLearner()
    for number in range(10):
        learner.learn(page(f"/viewforum.php?board=7{number}&sid=a_b_{number}", WORDS[number]))
    for at, word in enumerate(WORDS[: SIBLINGS_MAX + 6]):
        path = f"/viewforum.php?board=7&{word}=1"
        learner.learn(page(path, WORDS[at % 10], reason=REASONS[at % 2]))
    assert score(learner, "/viewforum.php?board=99&sid=x_y_z") > FRUITFUL
    assert score(learner, "/viewforum.php?board=7&never_seen=1") < FRUITFUL / 2
    known = told_of(f"{HOST}/viewforum.php?board=7&never_seen=1", learner.scores.unshared())
    assert known is not None
    assert known[0] >= SIBLINGS_MAX - 1


def test_kinds_are_bounded() -> None:
    """A site of a thousand folders does not fill the memory, nor the item."""
    learner = KindLearner()
    for number in range(3_000):
        word = "".join("abcdefghij"[int(digit)] for digit in str(number))
        learner.learn(page(f"/{word}/x?{word}=1", "T"))
    assert len(learner.scores.unshared()) <= 4 * KINDS_MAX


def test_crawls_with_a_page_limit_of_their_own_are_ordered() -> None:
    """Where the order decides what is found."""
    assert is_ordered(CRAWL)
    assert not is_ordered(replace(CRAWL, pages_max=1_000_000, shards=16))
    assert not is_ordered(replace(CRAWL, pages_max=1_000_000))
    assert not is_ordered(default_crawl(0))
