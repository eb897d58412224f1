"""Pages as text."""

from hypothesis import given
from hypothesis import strategies as st

from runner.toolkit.html_text import html_text

PAGE = """<!doctype html><html><head><title> A
page </title><style>p {}</style><body>
<h1>One &amp; two</h1><p>A <b>bold</b> <a href="https://a.example/x">link</a>, <a href="#y">none</a>
<ul><li>first<li>second</ul><table><tr><th>a<td>b</table>
<script>if (a < b) { "</p>" }</script><img alt="a cat" src="x"><pre>if x:
    y</pre>end"""


def test_a_page_is_what_a_person_reads() -> None:
    assert html_text(PAGE) == (
        "A page\n\n# One & two\n\nA bold link (https://a.example/x), none\n\n- first\n- second\n\n"
        "| a | b\n[a cat]\nif x:\n    y\nend"
    )


@given(st.text(alphabet="<>/!-ab \n\"'&;=pre", max_size=200))
def test_anything_is_a_page(html: str) -> None:
    assert isinstance(html_text(html), str)
