"""Text digests are close for similar texts, and overlapping texts share runs (word sequences)."""

from __future__ import annotations

from functools import partial
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from orbweaver.parsing.text_digest import (
    CHARS_MAX,
    RUNS_EACH,
    distance,
    text_digest,
    text_runs,
)
from tests.costs import within

# Maximum distance of one edit in 200 words, and minimum distance of another text; almost certain.
NEAR_BITS, OTHER_BITS = 16, 8
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SEEDS = st.integers(0, 2**32)


def words_of(random: Random, count: int, letters: str = LETTERS) -> list[str]:
    return ["".join(random.choices(letters, k=random.randint(2, 9))) for _ in range(count)]


@given(st.text(), st.text())
def test_any_text_has_stable_digest(text: str, echo: str) -> None:
    """A text that only repeats the page's title or path has digest 0."""
    found = text_digest(text, echo)
    assert 0 <= found < 1 << 64
    assert text_digest(text, echo) == found
    assert distance(found, found) == 0
    assert text_digest(text, text) == 0


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_digest_depends_on_words_only(text: str) -> None:
    spaced = "  ".join(text.upper().replace("_", " ").replace(".", "!").split())
    assert text_digest(f"x1a2 {spaced} \u2013 2026-11-23") == text_digest(text)


@given(st.text(), st.text())
def test_any_text_has_stable_runs(text: str, echo: str) -> None:
    """A text that only repeats the page's title or path has no runs."""
    runs = text_runs(text, echo)
    assert runs == text_runs(text, echo)
    assert len(runs) == len(set(runs))
    assert all(run % RUNS_EACH == 0 for run in runs)
    assert text_runs(text, text) == ()


@given(SEEDS)
def test_part_of_text_shares_its_runs(seed: int) -> None:
    random = Random(seed)
    before, part, behind = (words_of(random, 60) for _ in range(3))
    whole = set(text_runs(" ".join([*before, *part, *behind])))
    runs = set(text_runs(" ".join(part)))
    assert len(runs - whole) <= 2
    assert len(whole & set(text_runs(" ".join(words_of(random, 60))))) <= 2


@given(SEEDS)
def test_small_edit_makes_small_distance(seed: int) -> None:
    random = Random(seed)
    words = words_of(random, 200)
    at = random.randrange(200)
    other = [*words[:at], *words_of(random, 1), *words[at + 1 :]]
    gone = words[:at] + words[at + 1 :]
    for edited in (other, gone, [*gone, words[at]]):
        assert distance(text_digest(" ".join(words)), text_digest(" ".join(edited))) <= NEAR_BITS


@given(SEEDS, st.sampled_from([LETTERS, "абвгдежзиклмн", "漢字仮名交文章語彙例題本文頁"]))
def test_other_text_is_far_away(seed: int, letters: str) -> None:
    random = Random(seed)
    one, other = (" ".join(words_of(random, 60, letters)) for _ in range(2))
    between = "" if letters.startswith("漢") else " "
    digests = [text_digest(text.replace(" ", between)) for text in (one, other)]
    assert distance(*digests) > OTHER_BITS


@given(SEEDS)
def test_echoed_title_and_path_are_ignored(seed: int) -> None:
    """A form with the title of its page is the same form everywhere."""
    random = Random(seed)
    form = words_of(random, 60, "aeiounst")

    def page() -> tuple[str, str]:
        title, path = (words_of(random, 4, "bcdfghklm") for _ in range(2))
        name = "/".join(path)
        shown = [*form[:20], *title, *form[20:40], f"/{name}#7f3a", *form[40:], *title, name]
        return " ".join(shown), f"{' '.join(title).title()} - /{name}?id=7f3a"

    (one, its), (other, others) = page(), page()
    assert text_digest(one, its) == text_digest(other, others) == text_digest(" ".join(form))
    assert distance(text_digest(one), text_digest(other)) > 0
    told = " ".join([one, *words_of(random, 300)])
    assert distance(text_digest(told, its), text_digest(other, others)) > OTHER_BITS


def test_digests_have_fixed_values() -> None:
    """Digests are stored and compared across releases."""
    assert text_digest("") == text_digest("1, 2, 3") == 0
    assert text_digest("The quick brown fox jumps over the lazy dog") == 0xB5ACF691E0992864
    assert text_digest("Übung macht den Meister") == 0x7811A12442069713
    assert text_digest("漢字仮名交") == 0x9A6E5456EE8FAC1A


def test_digest_takes_bounded_time() -> None:
    whole = "".join(f"{chr(97 + n % 26)}{chr(97 + n // 26 % 26)} " for n in range(CHARS_MAX // 3))
    text = whole + " " * (CHARS_MAX - len(whole))
    assert text_digest(f"{text} and more") == text_digest(text)
    for words in ("é" * 9 + " ", "漢", "a ", "a1", "_", "\ud800 "):
        long = words * (10 * CHARS_MAX)
        assert within(0.2, partial(text_digest, long, long))
