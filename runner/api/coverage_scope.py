"""A spec as a log has it: what of it still stands today, and what its conditions come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runner.api.coverage_items import ASKED, FALSE, TRUE, Item, Json, hook_of
from runner.engine.message import text_of
from runner.error import TemplateError


@dataclass(slots=True, eq=False)
class Scope:
    """A spec as a log's plan has it, and the items of today's spec that are still in it."""

    spec: Json
    items: Mapping[str, Item]
    """By the PATH in the log's spec."""
    agents: list[tuple[str, Scope]] = field(default_factory=list)
    """The specs that it uses, each with the PATH of what uses it."""
    tools: Mapping[str, str] = field(default_factory=dict)
    """By name: the PATH of each tool."""
    names: Mapping[str, Any] = field(default_factory=dict)
    """What its expressions see, as far as the log has it."""

    def hit(self, path: str, part: str) -> None:
        """A part of an item was exercised."""
        item = self.items.get(path)
        if item is not None and part in item.parts:
            item.parts[part] = True


def stop_answers(
    entries: Sequence[Json], turn: int, answer: Json, names: Mapping[str, Any]
) -> list[str]:
    """What each hook that was asked at a turn's end said; empty where it can't be told.

    Args:
        entries: Those of ``stop_after_turn``.
        turn: The turn's number.
        answer: Its answer, as the log has it.
        names: What else conditions see.
    """
    from runner.spec.template import Expression

    about = {
        "turn": turn,
        "text": text_of(answer.get("content", ())),
        "stop_reason": answer.get("stop_reason"),
        "message": answer,
    }
    answers: list[str] = []
    for entry in entries:
        tag, value = hook_of(entry)
        if tag != "when":
            answers.append(ASKED)
            continue
        try:
            holds = Expression(value, "").holds({**names, "turn": about})
        except TemplateError:
            return []
        answers.append(TRUE if holds else FALSE)
        if holds:
            break
    return answers
