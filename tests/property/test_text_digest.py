"""Digests of texts, near for nearly equal ones, and runs, the same of what texts have in common."""

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

# The most that one edit of 200 words changes, and the least that another text does; all but surely.
NEAR_BITS, OTHER_BITS = 16, 8
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SEEDS = st.integers(0, 2**32)


def words_of(random: Random, count: int, letters: str = LETTERS) -> list[str]:
    """Make words of some letters."""
    return ["".join(random.choices(letters, k=random.randint(2, 9))) for _ in range(count)]


@given(st.text(), st.text())
def test_any_text_has_a_digest(text: str, echo: str) -> None:
    """Nothing raises, it has 64 bits, and comes again; a text that echoes all has none."""
    found = text_digest(text, echo)
    assert 0 <= found < 1 << 64
    assert text_digest(text, echo) == found
    assert distance(found, found) == 0
    assert text_digest(text, text) == 0


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_only_words_count(text: str) -> None:
    """Case, space, signs and what holds a digit make no difference, nor does the way of reading."""
    spaced = "  ".join(text.upper().replace("_", " ").replace(".", "!").split())
    assert text_digest(f"x1a2 {spaced} \u2013 2026-11-23") == text_digest(text)


@given(st.text(), st.text())
def test_any_text_has_runs(text: str, echo: str) -> None:
    """Each once, chosen by its hash alone; a text that echoes all has none."""
    runs = text_runs(text, echo)
    assert runs == text_runs(text, echo)
    assert len(runs) == len(set(runs))
    assert all(run % RUNS_EACH == 0 for run in runs)
    assert text_runs(text, text) == ()


@given(SEEDS)
def test_a_part_of_a_text_has_runs_of_it(seed: int) -> None:
    """All but those at its ends, wherever in the other text it stands."""
    random = Random(seed)
    before, part, behind = (words_of(random, 60) for _ in range(3))
    whole = set(text_runs(" ".join([*before, *part, *behind])))
    runs = set(text_runs(" ".join(part)))
    assert len(runs - whole) <= 2
    assert len(whole & set(text_runs(" ".join(words_of(random, 60))))) <= 2


@given(SEEDS)
def test_a_small_edit_makes_a_small_distance(seed: int) -> None:
    """One word of 200 is another one, or gone, or stands elsewhere."""
    random = Random(seed)
    words = words_of(random, 200)
    at = random.randrange(200)
    other = [*words[:at], *words_of(random, 1), *words[at + 1 :]]
    gone = words[:at] + words[at + 1 :]
    for edited in (other, gone, [*gone, words[at]]):
        assert distance(text_digest(" ".join(words)), text_digest(" ".join(edited))) <= NEAR_BITS


@given(SEEDS, st.sampled_from([LETTERS, "абвгдежзиклмн", "漢字仮名交文章語彙例題本文頁"]))
def test_another_text_is_far_away(seed: int, letters: str) -> None:
    """Also in scripts that write no spaces."""
    random = Random(seed)
    one, other = (" ".join(words_of(random, 60, letters)) for _ in range(2))
    between = "" if letters.startswith("漢") else " "
    digests = [text_digest(text.replace(" ", between)) for text in (one, other)]
    assert distance(*digests) > OTHER_BITS


@given(SEEDS)
def test_what_a_page_echoes_of_its_title_is_no_new_text(seed: int) -> None:
    """A form that shows path and title of what it is for is the same form for all of it."""
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


def test_a_digest_is_the_same_everywhere() -> None:
    """It may be stored, and compared by another release."""
    assert text_digest("") == text_digest("1, 2, 3") == 0
    assert text_digest("The quick brown fox jumps over the lazy dog") == 0xB5ACF691E0992864
    assert text_digest("Übung macht den Meister") == 0x7811A12442069713
    assert text_digest("漢字仮名交") == 0x9A6E5456EE8FAC1A


def test_a_digest_takes_bounded_time() -> None:
    """What is beyond the bound is not looked at, whatever the text is made of."""
    whole = "".join(f"{chr(97 + n % 26)}{chr(97 + n // 26 % 26)} " for n in range(CHARS_MAX // 3))
    text = whole + " " * (CHARS_MAX - len(whole))
    assert text_digest(f"{text} and more") == text_digest(text)
    for words in ("é" * 9 + " ", "漢", "a ", "a1", "_", "\ud800 "):
        long = words * (10 * CHARS_MAX)
        assert within(0.2, partial(text_digest, long, long))
