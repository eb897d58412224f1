"""Hooks that a spec declares: in YAML, in Python, as commands."""
