"""A scripted model's script as a file that a person reads and edits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from runner.views.yaml_text import WIDTH, yaml_lines


def script_text(name: str, agent: str, entries: Iterable[Mapping[str, Any]]) -> str:
    """A script as YAML.

    Args:
        name: The spec's.
        agent: The path of the agent whose model says this.
        entries: The replies, as in ``model.script``.
    """
    about = _word(name) if agent == "main" else f"{_word(name)}, agent {_word(agent)}"
    lines = [f"# What the model of {about} says: an entry a model call."]
    for entry in entries:
        if "error" in entry and not entry.keys() & {"thinking", "text", "tool_calls"}:
            lines += yaml_lines([entry])
        else:
            first, *rest = yaml_lines(entry, WIDTH - 2)
            lines += [f"- {first}", *(f"  {line}" if line else "" for line in rest)]
    if len(lines) == 1:
        lines.append("[]")
    return "\n".join(lines) + "\n"


def _word(text: str) -> str:
    """A name in a comment: of a hostile log it may be anything."""
    return re.sub(r"[^\w#/.-]", "?", text, flags=re.ASCII)
