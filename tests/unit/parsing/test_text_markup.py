"""Elements that change the meaning of a text, in Markdown and in plain text."""

from __future__ import annotations

import pytest

from orbweaver.parsing.main_text import main_text

KATEX = (
    "<span class=katex><span class=katex-mathml><math><semantics><mi>x</mi>"
    "<annotation encoding='application/x-tex'>x^2</annotation></semantics></math></span>"
    "<span class=katex-html aria-hidden=true>x2</span></span>"
)
URL = "https://example.com/"


@pytest.mark.parametrize(
    ("html", "text", "markdown"),
    [
        # Exponents, indices and notes.
        ("10<sup>6</sup> and 10<sup>-6</sup>", "10^6 and 10^-6", "10^6 and 10^-6"),
        ("H<sub>2</sub>O, x<sub>i</sub>", "H_2O, x_i", "H_2O, x_i"),
        ("x<sup>n+1</sup> 2<sup>3</sup>4", "x^(n+1) 2^(3)4", "x^(n+1) 2^(3)4"),
        ("<b>10</b><sup>6</sup>", "10^6", "**10**^6"),
        ("1<sup>st</sup> M<sup>me</sup> Na<sup>+</sup>", "1st Mme Na+", "1st Mme Na+"),
        ("10<sup><a href=#n>1</a></sup>", "10[1]", f"10[[1]({URL}#n)]"),
        # Characters that Markdown reads as markup.
        ("Vec&lt;T&gt; __init__", "Vec<T> __init__", r"Vec\<T> \_\_init\_\_"),
        ("*args, a_b, 2 * 3", "*args, a_b, 2 * 3", r"\*args, a_b, 2 * 3"),
        ("`x` [a](b) ~~z~~", "`x` [a](b) ~~z~~", r"\`x\` [a\](b) \~\~z\~\~"),
        ("&amp;lt; a &amp; b", "&lt; a & b", r"\&lt; a & b"),
        ("<code>*a* __b__ &lt;c&gt;</code> *", "*a* __b__ <c> *", r"`*a* __b__ <c>` \*"),
        # Ruby readings.
        ("<ruby>東<rt>とう</rt>京<rt>きょう</rt></ruby>へ",) + ("東(とう)京(きょう)へ",) * 2,
        ("<ruby>字<rp>(</rp><rt>じ</rt><rp>)</rp></ruby>",) + ("字(じ)",) * 2,
        ("<ruby><rb>東<rb>京<rt>とう<rt>きょう</ruby>",) + ("東(とう)京(きょう)",) * 2,
        # Formulas.
        ("<script type='math/tex'>E=mc^2</script>",) + ("$E=mc^2$",) * 2,
        (r"<script type='math/tex; mode=display'>\frac{a}{b}_x * y</script>",)
        + (r"$$\frac{a}{b}_x * y$$",) * 2,
        ("<math alttext='x_{1}'><mi>x</mi></math>",) + ("$x_{1}$",) * 2,
        ("<math><msup><mn>10</mn><mn>6</mn></msup></math>",) + ("$10^6$",) * 2,
        (
            KATEX,
            *("$x^2$",) * 2,
        ),
        # Drawings and pictures.
        ("Menu <svg><path d='M0'/></svg> here",) + ("Menu here",) * 2,
        ("<svg><title>t</title><text>Sales</text></svg>",) + ("Sales",) * 2,
        ("<a href=/h><svg><title>Home</title></svg></a>", "Home", f"[Home]({URL}h)"),
        ("a <img src='data:image/png;base64,AA' alt=pear>", "a", "a pear"),
    ],
)
def test_inline_markup_keeps_its_meaning(html: str, text: str, markdown: str) -> None:
    found = main_text(f"<main><p>Before.</p><p>{html}</p></main>".encode(), URL)
    assert found.text == f"Before.\n\n{text}"
    assert found.markdown == f"Before.\n\n{markdown}"


@pytest.mark.parametrize(
    ("html", "numbers"),
    [
        ("<ol><li value=4>a<li>b</ol>", ["4. a", "5. b"]),
        ("<ol><li>a<li value=4>b<li>c</ol>", ["1. a", "4. b", "5. c"]),
        ("<ol start=7><li>a<li>b</ol>", ["7. a", "8. b"]),
        ("<ol reversed><li>a<li>b</ol>", ["2. a", "1. b"]),
        ("<ul><li>x<ol><li>a<li value=9>b</ol></ul>", ["- x", "1. a", "9. b"]),
    ],
)
def test_list_with_own_numbers_keeps_them(html: str, numbers: list[str]) -> None:
    """In Markdown a comment separates the lists, because a list continues from its first number."""
    found = main_text(html.encode())
    assert found.text.split("\n") == numbers
    lines = [line.strip() for line in found.markdown.split("\n") if line]
    assert [line for line in lines if line != "<!-- -->"] == numbers


@pytest.mark.parametrize(
    ("attributes", "fence"),
    [
        ("<pre class='sourceCode python'><code class='sourceCode python'>", "python"),
        ("<pre class='brush: js; toolbar: false'>", "js"),
        ("<pre class='brush:php'>", "php"),
        ("<pre class='prettyprint lang-sql linenums'>", "sql"),
        ("<pre><code class='hljs rust'>", "rust"),
        ("<pre data-lang=go>", "go"),
        ("<pre lang=ruby>", "ruby"),
        ("<pre class='lang:php decode:true'>", "php"),
        ("<figure class='highlight yaml'><pre>", "yaml"),
        ("<div class='highlight-python3 x'><div class=highlight><pre>", "python3"),
        ("<div class=lang-en><pre>", ""),
        ("<pre class=programlisting>", ""),
    ],
)
def test_code_with_links_keeps_its_characters_and_language(attributes: str, fence: str) -> None:
    code = "fn f(x: <a href='/o'>Option</a>&lt;<b>u8</b>&gt;)<br>  y<sup>2</sup>"
    found = main_text(f"<main><p>Before.</p>{attributes}{code}".encode(), URL)
    assert found.markdown == f"Before.\n\n```{fence}\nfn f(x: Option<u8>)\n  y^2\n```"


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<details><summary><h3>Q</h3></summary><p>A</p></details>", "### Q\n\nA"),
        ("<details><summary>Q</summary><p>A</p></details>", "**Q**\n\nA"),
        ("<b><h2>Q</h2></b><p>A</p>", "## Q\n\nA"),
    ],
)
def test_heading_within_other_markup_stays_a_heading(html: str, markdown: str) -> None:
    """Markdown has no heading within bold text."""
    assert main_text(f"<main>{html}</main>".encode()).markdown == markdown
