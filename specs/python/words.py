"""Tools for texts."""


def count_words(text: str) -> int:
    """Count how many different words a text has.

    Args:
        text: What to count.
    """
    return len(set(text.lower().split()))
