from hypothesis import given
from hypothesis import strategies as st

from runner.toolkit.docstring import read_docstring

GOOGLE = """Search the web.

    Finds pages.

    Args:
        query (str): What to look for;
            words or a "phrase".
        limit: How many: at most 50.
        **more: Passed on.
        bare

    Returns:
        Pages: many.

    Raises:
        ValueError: never.

    Example:
        search("x")
    """

NUMPY = """Search the web.

    Parameters
    ----------
    query : str, optional
        What to look for;
        words.
    first, last : int
        Bounds.

    Returns
    -------
    list
        Pages.

    Notes
    -----
    Slow.
    """

SPHINX = """Search the web.

    :param query: What to look for;
        words.
    :param int limit: How many.
    :type query: str
    :returns: pages
    :rtype: list
    """


def test_google() -> None:
    said = read_docstring(GOOGLE)
    assert said.text == 'Search the web.\n\nFinds pages.\n\nExample:\n    search("x")'
    assert said.parameters == {
        "query": 'What to look for; words or a "phrase".',
        "limit": "How many: at most 50.",
        "more": "Passed on.",
    }


def test_numpy() -> None:
    said = read_docstring(NUMPY)
    assert said.text == "Search the web.\n\nNotes\n-----\nSlow."
    assert said.parameters == {
        "query": "What to look for; words.",
        "first": "Bounds.",
        "last": "Bounds.",
    }


def test_sphinx() -> None:
    said = read_docstring(SPHINX)
    assert said.text == "Search the web."
    assert said.parameters == {"query": "What to look for; words.", "limit": "How many."}


def test_what_has_no_form_is_text() -> None:
    assert read_docstring(None).text == ""
    assert read_docstring("Arguments are taken: all.\n\nSee :ref:`x`.").parameters == {}
    assert read_docstring("Arguments are taken: all.").text == "Arguments are taken: all."


LINES = (
    *("", "Args:", "Returns:", "Parameters", "-----", ":param x: y", ":param", "    x: y"),
    *("  deep", "x : int", "text", "    ", "  Args:", ":raises", "Returns"),
)


@given(st.lists(st.sampled_from(LINES)).map("\n".join))
def test_any_text_is_read(doc: str) -> None:
    said = read_docstring(doc)
    assert all(name.isidentifier() for name in said.parameters)
