"""What in a spec a run can exercise: tools, hooks, tasks and so on, each in one part or several.

A spec is looked at in the form that it has in a log's plan, so that the same code finds the items
of a spec as it is now and those of the spec that a log is of. An item has a key, by which it is
known again in another version of its spec, wherever it stands there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

Json = Mapping[str, Any]
Kind = Literal[
    "tool", "fallback", "hook", "permission", "limit", "task", "message", "output", "expectation"
]
KINDS: tuple[Kind, ...] = get_args(Kind)

RAN, ASKED, GAVE, APPLIED, REACHED = "ran", "asked", "gave", "applied", "reached"
TRUE, FALSE, TAKEN, FITTED, HELD = "true", "false", "taken", "fitted", "held"
NO_ITEM, ONE_ITEM, SEVERAL, MET, FULL, FAILED = "none", "one", "several", "met", "full", "failed"

_TAGS = ("deny", "allow", "set", "trim", "redact", "truncate", "when", "python", "command")
_SUPPLIERS = ("steering_messages", "follow_up_messages")
_LIMITS = ("turns", "tool_calls", "repeats", "depth", "seconds", "tokens", "cost_usd")


@dataclass(slots=True)
class Item:
    """A thing of a spec that a run may exercise."""

    kind: Kind
    path: str
    """Where it stands in its spec."""
    name: str
    """What it is, for people."""
    key: tuple[Any, ...]
    """What it is known by in another version of the spec."""
    parts: dict[str, bool]
    """Each part with whether a run exercised it."""
    outcomes: dict[str, bool] = field(default_factory=dict)
    """Of an expectation: whether it was ever met, and ever not. They don't count."""

    @property
    def missing(self) -> list[str]:
        """The parts that no run exercised."""
        return [part for part, seen in self.parts.items() if not seen]


def items_of(spec: Json, is_written: Callable[[str], bool] = lambda path: True) -> list[Item]:
    """The items of a spec.

    Args:
        spec: As JSON, defaulted.
        is_written: Whether what stands at a PATH is written there, and not a default.
    """
    found = [
        *_tools(spec),
        *_fallbacks(spec),
        *_hooks(spec),
        *_permissions(spec),
        *_limits(spec, is_written),
        *_tasks(spec),
        *_messages(spec),
        *_outputs(spec),
        *_expectations("expect", spec.get("expect") or ()),
    ]
    # Of those that are alike, each has its number in its key.
    seen: Counter[tuple[Any, ...]] = Counter()
    for item in found:
        seen[item.key] += 1
        item.key = (*item.key, seen[item.key])
    return found


def _item(kind: Kind, path: str, name: str, *parts: str, key: Any = None) -> Item:
    return Item(kind, path, name, (kind, name if key is None else _frozen(key)), _unseen(parts))


def _unseen(parts: tuple[str, ...]) -> dict[str, bool]:
    return dict.fromkeys(parts, False)


def _frozen(value: Any) -> Any:
    """A JSON value as one that can be in a key."""
    from runner.json_text import canonical

    return canonical(value)


# --- what the model asks and calls ----------------------------------------------------------------


def _tools(spec: Json) -> Iterator[Item]:
    for n, entry in enumerate(spec.get("tools") or ()):
        yield _item("tool", f"tools[{n}]", tool_name(entry), RAN)


def tool_name(entry: Any) -> str:
    """What a tool is called, as far as its entry says."""
    if isinstance(entry, str):
        return entry
    if isinstance(server := entry.get("mcp"), Mapping):
        return f"mcp {server.get('name')}"
    return str(entry.get("name") or entry.get("use") or entry.get("python") or entry.get("agent"))


def _fallbacks(spec: Json) -> Iterator[Item]:
    for n, choice in enumerate((spec.get("model") or {}).get("fallback") or ()):
        name = "/".join(filter(None, (choice.get("provider"), choice.get("id"))))
        yield _item("fallback", f"model.fallback[{n}]", name, ASKED)


# --- what looks at the run ------------------------------------------------------------------------


def _hooks(spec: Json) -> Iterator[Item]:
    for point, entries in (spec.get("hooks") or {}).items():
        for n, entry in enumerate(entries):
            tag, value = hook_of(entry)
            parts: tuple[str, ...] = (ASKED,)
            if tag == "when" or (tag in ("deny", "set") and value.get("when") is not None):
                parts = TRUE, FALSE
            elif point in _SUPPLIERS:
                parts = ASKED, GAVE
            name = f"{tag} {_shown(value)}".strip()
            yield _item("hook", f"hooks.{point}[{n}]", name, *parts, key=[point, entry])


def hook_of(entry: Json) -> tuple[str, Any]:
    """What stands at an extension point: its kind, and what it says."""
    return next(((tag, entry[tag]) for tag in _TAGS if entry.get(tag) is not None), ("", {}))


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    if isinstance(value, Mapping):
        return str(value.get("tool", ""))
    return str(value)


def _permissions(spec: Json) -> Iterator[Item]:
    rules = spec.get("permissions") or {}
    for verdict in ("allow", "ask", "deny"):
        for n, text in enumerate(rules.get(verdict) or ()):
            yield _item("permission", f"permissions.{verdict}[{n}]", f"{verdict} {text}", APPLIED)


def _limits(spec: Json, is_written: Callable[[str], bool]) -> Iterator[Item]:
    limits = spec.get("limits") or {}
    for name in _LIMITS:
        path = f"limits.{name}"
        if limits.get(name) is not None and is_written(path):
            yield _item("limit", path, f"{name}: {limits[name]:g}", REACHED, key=name)


# --- what is done ---------------------------------------------------------------------------------


def tasks_of(spec: Json) -> list[Json]:
    """The tasks of a spec."""
    return list((spec.get("follow_ups") or {}).get("tasks") or ())


def _tasks(spec: Json) -> Iterator[Item]:
    for n, task in enumerate(tasks_of(spec)):
        parts: list[str] = []
        if task.get("when") is not None:
            parts += TRUE, FALSE
        if task.get("for_each") is not None:
            parts += NO_ITEM, ONE_ITEM, SEVERAL
        if task.get("repeat") is not None:
            parts += MET, FULL
        parts = parts or [RAN]
        if task.get("on_error") == "continue":
            parts.append(FAILED)
        path = f"follow_ups.tasks[{n}]"
        yield _item("task", path, str(task["id"]), *parts)
        for item in _expectations(f"{path}.expect", task.get("expect") or ()):
            item.key = (task["id"], *item.key)
            yield item


def _messages(spec: Json) -> Iterator[Item]:
    for queue in ("steering", "follow_ups"):
        for n, message in enumerate((spec.get(queue) or {}).get("messages") or ()):
            path, text = f"{queue}.messages[{n}]", str(message["text"])
            yield _item("message", path, text, TAKEN, key=[queue, message])


# --- what is to hold ------------------------------------------------------------------------------


def _outputs(spec: Json) -> Iterator[Item]:
    if spec.get("output") is not None:
        yield _item("output", "output", "", FITTED)


def _expectations(path: str, entries: Any) -> Iterator[Item]:
    for n, entry in enumerate(entries):
        kind, value = expectation_of(entry)
        name = f"{kind} {_wanted(value)}"
        item = _item("expectation", f"{path}[{n}]", name, HELD, key=[kind, value])
        item.outcomes = {"passed": False, "failed": False}
        yield item


def expectation_of(entry: Json) -> tuple[str, Any]:
    """The kind of an expectation, and what it says."""
    return next(((kind, value) for kind, value in entry.items() if value is not None), ("", None))


def _wanted(value: Any) -> str:
    return str(value["name"]) if isinstance(value, Mapping) and "name" in value else _shown(value)
