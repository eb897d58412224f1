"""The tools of words.yaml: functions with type hints, from which their schemas are made."""


def count_words(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())
