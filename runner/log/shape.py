"""Whether a line of a log has the shape of its type, so that readers need not ask at each step.

What `runner.engine.event` requires must be there and of its kind. Other fields, types, roles and
kinds of blocks may come with a newer minor version: they are let be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, NotRequired, TypedDict, get_args, get_origin, is_typeddict

from runner.engine import event as events
from runner.engine.message import Block
from runner.log.described import by_word, fields, options, tag
from runner.log.planned import problem as plan_problem

Check = Callable[[Any], str | None]
"""What is wrong with a value: the rest of a sentence that begins with its path. None: nothing."""

_NAMES = {
    str: "a text",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
    type(None): "null",
}
_WITH_PLAN = frozenset(("run_start", "run_resume"))


class _Begun(TypedDict):
    """What ``message_start`` tells of any message."""

    id: str
    role: str
    content: NotRequired[list[Block]]


def problem(event: Mapping[str, Any]) -> str | None:
    """What is wrong with an event of a known type, with its path; None: nothing."""
    check = _checks().get(event["type"])
    wrong = check(event) if check else None
    if wrong is None and event["type"] in _WITH_PLAN:
        wrong = plan_problem(event)
    return f"{event['type']}{wrong}" if wrong else None


def is_known(event: Mapping[str, Any]) -> bool:
    """Whether an event's type is one that this version knows."""
    return event["type"] in _checks()


@cache
def _checks() -> dict[str, Check]:
    return {w: _object(one) for w, one in by_word(get_args(events.Event), "type").items()}


@cache
def _check_of(hint: Any) -> Check:
    if is_typeddict(hint):
        return _object(hint)
    if len(options(hint)) > 1:
        return _union(options(hint))
    if get_origin(hint) is list:
        return _list(_check_of(get_args(hint)[0]))
    return _kind(_kind_of(hint))


def _kind_of(hint: Any) -> type:
    """The class of a hint's values. Newer versions may have other words than a `Literal`'s."""
    origin = get_origin(hint)
    return type(get_args(hint)[0]) if origin is Literal else origin or hint


def _kind(kind: type) -> Check:
    kinds = (int, float) if kind is float else kind

    def check(value: Any) -> str | None:
        if isinstance(value, kinds) and (kind is bool or not isinstance(value, bool)):
            return None
        return f" is {_name(value)}, where {_NAMES[kind]} is needed"

    return check


def _list(item: Check) -> Check:
    def check(value: Any) -> str | None:
        if not isinstance(value, list):
            return f" is {_name(value)}, where a list is needed"
        for place, one in enumerate(value):
            if wrong := item(one):
                return f"[{place}]{wrong}"
        return None

    return check


def _object(described: Any) -> Check:
    required = frozenset(field.name for field in fields(described) if field.required)
    checks = {
        field.name: _check_of(field.hint) for field in fields(described) if field.hint is not Any
    }
    if described is events.MessageStart:
        checks["message"] = _check_of(_Begun)

    def check(value: Any) -> str | None:
        if not isinstance(value, dict):
            return f" is {_name(value)}, where an object is needed"
        if not value.keys() >= required:
            return f".{min(required - value.keys())} is missing"
        for key, of_field in checks.items():
            if key in value and (wrong := of_field(value[key])):
                return f".{key}{wrong}"
        return None

    return check


def _union(classes: tuple[Any, ...]) -> Check:
    if (key := tag(classes)) is not None:
        return _tagged(key, classes)
    checks = [_check_of(one) for one in classes]
    names = " or ".join(_NAMES[_kind_of(one)] for one in classes)

    def check(value: Any) -> str | None:
        if not all(one(value) for one in checks):
            return None
        return f" is {_name(value)}, where {names} is needed"

    return check


def _tagged(key: str, classes: tuple[Any, ...]) -> Check:
    checks = {word: _object(one) for word, one in by_word(classes, key).items()}

    def check(value: Any) -> str | None:
        if not isinstance(value, dict):
            return f" is {_name(value)}, where an object is needed"
        word = value.get(key)
        if not isinstance(word, str):
            return f".{key} is {_name(word)}, where a text is needed"
        known = checks.get(word)
        return known(value) if known else None

    return check


def _name(value: Any) -> str:
    return _NAMES.get(type(value), "something else")
