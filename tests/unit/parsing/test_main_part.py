"""The main part of a page: its content decides, and class names only propose candidates."""

from __future__ import annotations

import pytest

from orbweaver.parsing.main_text import TAGS_MAX, main_text, plain_words

PROSE = "<p>A paragraph with words enough to be the text that a reader came for.</p>"
LINKS = "<ul><li><a href=/1>GONE one</a></li><li><a href=/2>GONE two</a></li></ul>"


@pytest.mark.parametrize(
    "page",
    [
        "<form id=aspnetForm><h1>T</h1>KEPT {}</form><p>Copyright</p>",
        "<form><input type=hidden name=state><input name=q><h1>T</h1>{0}{0}{0} KEPT</form>",
        "<main>{}<aside class=note><p>KEPT</p></aside></main>",
        "<div role=main>{}<aside>KEPT</aside></div>",
        "<article>{}<aside class=sidebar><p>KEPT</p></aside></article>",
        "<main>{}<section class=related-work><h2>KEPT</h2><p>Others.</p></section></main>",
        "<main>{}<div class=cookie-policy><p>KEPT</p></div></main>",
        "<main>{}<div id=consent-form><p>KEPT</p></div><div class=social-contract><p>x</div>",
        "<main>{}<div class=menu><h2>Lunch</h2><p>KEPT</p></div></main>",
        "{}<section class=related-work><h2>KEPT</h2><p>Others measured it.</p></section>",
        "<div class=cookie-policy>{} KEPT</div>",
        "<!-- <main> was here --><div>{} KEPT</div>",
        "<script>var a = '<main>';</script>{} KEPT",
        "<template><main>x</main></template><p title='<main'>KEPT</p>{}",
        "<main></main><div>{} KEPT</div>",
        "<body style='display: none'>{} KEPT</body>",
        "{}<blockquote><p>Said.</p><footer>KEPT</footer></blockquote>",
        "<h1>T</h1><p>Few words.</p><div class=toc><a href=/1>KEPT chapter</a></div>{0:.0}",
        "<div id=header><h1>KEPT</h1></div><div>{}</div>",
        "<main>{}<h2><button>KEPT</button></h2></main>",
    ],
)
def test_main_text_of_own_content_keeps_it(page: str) -> None:
    html = page.format(PROSE).encode()
    found = main_text(html)
    assert "KEPT" in found.text
    assert "KEPT" in found.markdown
    assert "was here" not in found.text
    assert "KEPT" in plain_words(html)


@pytest.mark.parametrize(
    ("around", "reason"),
    [
        ("<nav>{}</nav>", "navigation"),
        ("<div class=topNav>{}</div>", "navigation"),
        ("<div class=breadcrumbs>{}</div>", "navigation"),
        ("<aside>{}</aside>", "asides"),
        ("<div class=related-posts>{}</div>", "adverts"),
        ("<div class=cookie-banner><p>GONE GONE</p><button>Accept</button></div>", "adverts"),
        ("<form><label>GONE <input></label><textarea></textarea><p>GONE</p></form>", "forms"),
        ("<button>GONE GONE</button>", "forms"),
        ("<div hidden>{}</div>", "hidden"),
        ("<div style='display:none'><p>GONE GONE</p></div>", "hidden"),
        ("<dialog open>GONE GONE</dialog>", "hidden"),
        ("<span class=mw-editsection>GONE GONE</span>", "controls"),
    ],
)
def test_main_text_counts_omitted_content_by_reason(around: str, reason: str) -> None:
    html = f"<main><h1>T</h1>{PROSE}{around.format(LINKS)}</main>".encode()
    found = main_text(html)
    assert "GONE" not in found.text + found.markdown
    counts = dict(found.cut)
    assert counts.get(f"omitted_{reason}", 0) >= len("GONE") * 2 - 2
    assert set(counts) <= {f"omitted_{reason}", "omitted_forms"}


def test_main_text_counts_text_outside_main_element() -> None:
    found = main_text(f"<p>be fore</p><main>{PROSE}</main><footer>end</footer>".encode())
    assert found.cut == (("omitted_around", len("beforeend")),)


def test_main_text_large_page_with_main_role_counts_omitted_content() -> None:
    html = f"<p>before</p><div role=main>{PROSE}</div>".encode() + b"<br>" * (TAGS_MAX + 1)
    assert main_text(html).cut == (("omitted_around", len("before")),)


def test_main_text_of_nested_candidates_takes_linear_time() -> None:
    html = b"<div class=menu><p>word</p>" * 1_500
    assert "word" in main_text(html).text
