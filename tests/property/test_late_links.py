"""Late packs (batches of links sent after their page's commit): no link waits without end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from orbweaver.frontier.kind_learner import KindLearner
from orbweaver.frontier.late_links import BANDS_MAX
from orbweaver.model.outcome import Reason
from orbweaver.model.target import PACK_TARGETS_MAX, Target
from tests.unit.frontier.kind_pages import HOST, learned, page

PATHS = st.builds(
    "/{}/{}/{}_a_b{}".format,
    st.sampled_from(("log", "tree")),
    st.sampled_from(("src", "docs")),
    st.integers(0, 9),
    st.sampled_from(("", ".md", ".py", "?id=1", "?id=2", "?id=1&to=2", "?view=raw")),
)
ANSWERS = st.lists(st.tuples(PATHS, st.booleans()), max_size=60)
LINKS = st.lists(PATHS, min_size=1, max_size=PACK_TARGETS_MAX, unique=True)


def learner_of(answers: list[tuple[str, bool]]) -> KindLearner:
    """Learn pages with titles of their own; other pages are noindex."""
    return learned(
        *(
            page(
                path,
                f"Of {'abcdefghij'[place % 10]}{'klmnopqrst'[place // 10]}",
                reason=Reason.OK if new else Reason.NOINDEX,
                sha256=f"{place:064x}",
                referrer=HOST + "/",
            )
            for place, (path, new) in enumerate(answers)
        )
    )


@given(ANSWERS, LINKS, st.integers(0, BANDS_MAX))
def test_late_pack_releases_a_link_or_rises_in_band(
    answers: list[tuple[str, bool]], paths: list[str], taken: int
) -> None:
    links = [Target(url=HOST + path, depth=1) for path in paths]
    prompt, late = learner_of(answers).sorted_out(links, taken)
    bands = [band for band, _ in late]
    assert {*links} == {*prompt, *(link for _, link in late)}
    assert len(links) == len(prompt) + len(late)
    assert all(taken <= band <= BANDS_MAX for band in bands)
    assert prompt or all(band > taken for band in bands)


@given(ANSWERS, LINKS)
def test_repeated_late_pack_ends(answers: list[tuple[str, bool]], paths: list[str]) -> None:
    """A late pack takes at most one turn per link and band, even without answers."""
    learner = learner_of(answers)
    waiting = [(0, Target(url=HOST + path, depth=1)) for path in paths]
    for _ in range(len(paths) + BANDS_MAX):
        if not waiting:
            break
        first = min(band for band, _ in waiting)
        due = [link for band, link in waiting if band == first]
        _, late = learner.sorted_out(due, first)
        waiting = [*(one for one in waiting if one[0] != first), *late]
    assert not waiting
