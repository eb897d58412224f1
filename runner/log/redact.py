"""Takes out of events what no one is to read, before they are logged or shown.

Three passes, one after the other: known secrets (``[secret:NAME]``), the user's own patterns
(``[redacted]``), and what looks like a key of a well-known service (``[redacted:KIND]``). Each can
do a whole text or one that comes in pieces, and gives the same for both.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol, get_args

from runner.engine import event as events
from runner.engine import message as messages
from runner.engine.hook import Hooks
from runner.engine.limit import Limits
from runner.error import ErrorKind, Status
from runner.json_text import line, parse
from runner.log.redact_key import PLACEHOLDERS, KeyRedactor
from runner.log.redact_pattern import PLACEHOLDER, PatternRedactor
from runner.log.redact_secret import SecretRedactor

SHORTEST = 3
"""Characters of a secret; a shorter one is taken out only where it is all of a text: it stands in
so many words that nothing would be left to read."""
_DEEP = 100
"""Levels of a value that are walked through; what lies deeper is redacted as JSON text."""


def _type_of(event: type) -> str:
    """The ``type`` of the events of a class: its name, in lower case."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", event.__name__).lower()


_TYPES = frozenset(map(_type_of, get_args(events.Event)))
_ROLES = frozenset(("user", "assistant", "tool_result", "custom"))
_BLOCKS = frozenset(("text", "thinking", "image", "tool_call", "provider"))
_OWN_WORDS = frozenset(
    (
        *(*_TYPES, *_ROLES, *_BLOCKS, events.FORMAT),
        *("steering", "follow_up", "block", "rewrite", "replace", "fail", "skipped"),
        *("api", "hook", "spec", *Hooks.__slots__, *Limits.__slots__),
        *(*get_args(ErrorKind), *get_args(Status), *get_args(messages.StopReason)),
    )
)
"""The format's own words, which hide nothing at these keys."""
_WORD_KEYS = frozenset(
    (
        *("action", "format", "hook", "kind", "limit", "on_error", "queue", "role", "source"),
        *("status", "stop_reason", "type"),
    )
)
_ID_KEYS = frozenset(
    (
        *("id", "message_id", "message_ids", "task_id", "tool_call_id", "tool_result_ids"),
        *("added", "dropped", "kept", "rerun", "unknown", "not_started", "overrides"),
        *("name", "tool_name", "model", "provider", "run_id", "signature"),
        *("sha256", "context_digest", "system_digest", "tools_digest"),
    )
)
"""What is here holds a log together, or goes back to a provider as it is: only secrets leave it."""
_OWN_ID = re.compile(r"(?:m|call_)[0-9]+")
"""An id that only counts."""
_FREE_KEYS = frozenset(("arguments", "data", "details", "inputs", "item", "output", "update"))
"""What is below these is someone else's JSON."""
_PLAN_NAMES = frozenset(
    (
        *("after_tool", "agent", "cache", "concurrency", "execution", "id", "method", "mode"),
        *("model", "name", "on_error", "provider", "reasoning", "repeat", "role"),
        *("sandbox", "stop", "stop_reason", "tool", "tool_execution", "type", "unattended", "use"),
    )
)
"""Keys of a plan whose values are names, as its spec writes them: they are rendered from nothing
that is secret, and a log without them can't be replayed."""
_PLAN_FREE = frozenset(
    ("args", "const", "default", "enum", "env", "examples", "flags", "headers", "options")
)
"""Keys of a plan below which is someone else's JSON."""
_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,64}")


class _Pass(Protocol):
    def whole(self, text: str) -> str: ...
    def stream(self) -> _Stream: ...


class _Stream(Protocol):
    def feed(self, text: str) -> str: ...
    def finish(self) -> str: ...


class LogRedactor:
    """The `runner.engine.contract.Redactor` of a run."""

    def __init__(
        self,
        secrets: Mapping[str, str] | None = None,
        *,
        patterns: Iterable[str] = (),
        known: bool = True,
    ) -> None:
        """Know what is to be taken out.

        Args:
            secrets: Values by the names that stand for them.
            patterns: Regular expressions, as of ``log.redact``.
            known: Whether what looks like a key of a well-known service is taken out.

        Raises:
            UsageError: where a pattern is no regular expression.
        """
        self.count = 0
        """How many values were taken out so far."""
        self._secrets = SecretRedactor(self._found)
        self._patterns = [PatternRedactor(pattern, self._found) for pattern in patterns]
        self._short: dict[str, str] = {}
        self._numbers: dict[float, str] = {}
        self._names = {"main"}
        """Of the plan: what its tools, tasks and agents are called."""
        keys = [KeyRedactor(self._found)] if known else []
        self._passes: list[_Pass] = [self._secrets, *self._patterns, *keys]
        self._streams: dict[tuple[str, int], list[_Stream]] = {}
        self._clear: Any = None
        """The last plan in which there was nothing to take out."""
        for name, value in (secrets or {}).items():
            self._add(name, value)
        self._keep()

    def add(self, name: str, value: str) -> None:
        """Know one more secret from now on."""
        self._add(name, value)
        self._keep()

    def text(self, text: str) -> str:
        """A text, redacted; the same object where nothing is found."""
        if self._short and text in self._short:
            return self._short[text]
        shown = text
        for each in self._passes:
            shown = each.whole(shown)
        return text if shown == text else shown

    def value(self, value: Any) -> Any:
        """A JSON value with every text of it redacted; the same object where nothing is found.

        Keys are texts too, and a number that is a secret is one. But in an event or a message what
        is the format's own stays: its keys, its words (``type: text``), its counts; and what holds
        a log together, such as ids, is free of secrets and otherwise let be. So do a plan's keys,
        names and numbers, which its spec has in the clear.
        """
        own = isinstance(value, dict) and (
            _is_one(value.get("type"), _OWN_WORDS) or _is_one(value.get("role"), _ROLES)
        )
        if not own or "plan" not in value:
            return self._walk(value, 0, not own)
        # First, since its names stand beside it too. Each request tells the same one again.
        given = value["plan"]
        plan = given if given == self._clear else self._plan(given, 1)
        if plan is given:
            self._clear = plan
        rest = {**value, "plan": None}
        shown = self._walk(rest, 0, False)
        return value if shown is rest and plan is given else {**shown, "plan": plan}

    def delta(self, key: tuple[str, int], text: str) -> str:
        """What may be shown of a stream of text, now that this piece of it came."""
        streams = self._streams.get(key)
        if streams is None:
            streams = self._streams[key] = [each.stream() for each in self._passes]
        for stream in streams:
            if not text:
                break
            text = stream.feed(text)
        return text

    def rest(self, key: tuple[str, int]) -> str:
        """What was held back of a stream that ended."""
        text = ""
        for stream in self._streams.pop(key, ()):
            text = (stream.feed(text) if text else "") + stream.finish()
        return text

    def _found(self) -> None:
        self.count += 1

    def _add(self, name: str, value: str) -> None:
        if 0 < len(value.strip()) < SHORTEST:
            self._short[value.strip()] = f"[secret:{name}]"
            return
        self._secrets.add(name, value)
        if re.fullmatch(r"\s*-?[0-9]+(\.[0-9]+)?\s*", value):
            self._numbers[float(value)] = self.text(value.strip())

    def _keep(self) -> None:
        self._clear = None
        shown = self._secrets.placeholders | PLACEHOLDERS | {PLACEHOLDER}
        for pattern in self._patterns:
            pattern.keep(shown)

    def _walk(self, value: Any, depth: int, free: bool) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict | list):
            if depth >= _DEEP:
                return self._deep(value)
            if isinstance(value, list):
                return self._walk_list(value, depth + 1, free)
            return self._walk_dict(value, depth + 1, free)
        if free and self._numbers and isinstance(value, int | float):
            return value if isinstance(value, bool) else self._numbers.get(value, value)
        return value

    def _walk_list(self, values: list[Any], depth: int, free: bool) -> list[Any]:
        new: list[Any] | None = None
        for place, value in enumerate(values):
            shown = self._walk(value, depth, free)
            if shown is not value:
                if new is None:
                    new = list(values)
                new[place] = shown
        return values if new is None else new

    def _walk_dict(self, values: dict[str, Any], depth: int, free: bool) -> dict[str, Any]:
        new: dict[str, Any] = {}
        changed = False
        for key, value in values.items():
            shown_key = self.text(key) if free else key
            while shown_key is not key and (shown_key in new or shown_key in values):
                shown_key += "'"
            if isinstance(value, str) and _is_opaque(values, key):
                shown = self._secrets.whole(value)
            elif free:
                shown = self._walk(value, depth, True)
            else:
                shown = self._walk_own(key, value, depth)
            changed = changed or shown is not value or shown_key is not key
            new[shown_key] = shown
        return new if changed else values

    def _walk_own(self, key: str, value: Any, depth: int) -> Any:
        """A field of an event or a message."""
        if key in _ID_KEYS:
            return self._ids(value) if isinstance(value, list) else self._id(value)
        if key == "plan":
            return self._plan(value, depth)
        if key == "usage" or (
            key in _WORD_KEYS and (_is_one(value, _OWN_WORDS) or _is_one(value, self._names))
        ):
            return value
        return self._walk(value, depth, key in _FREE_KEYS)

    def _ids(self, ids: list[Any]) -> list[Any]:
        shown = list(map(self._id, ids))
        return ids if shown == ids else shown

    def _id(self, value: Any) -> Any:
        if not isinstance(value, str) or value in self._names or _OWN_ID.fullmatch(value):
            return value
        return self._secrets.whole(value)

    def _plan(self, value: Any, depth: int) -> Any:
        """A part of a plan, whose names are learnt: they are those of the log."""
        if isinstance(value, str):
            return self.text(value)
        if not isinstance(value, dict | list) or depth >= _DEEP:
            return value if isinstance(value, int | float) else self._walk(value, depth, True)
        if isinstance(value, list):
            items = [self._plan(item, depth + 1) for item in value]
            same = all(new is old for new, old in zip(items, value, strict=True))
            return value if same else items
        new = {key: self._of_plan(key, item, depth + 1) for key, item in value.items()}
        return value if all(new[key] is value[key] for key in new) else new

    def _of_plan(self, key: str, value: Any, depth: int) -> Any:
        self._names.add(key)
        if key in _PLAN_FREE or (key == "inputs" and not _are_objects(value)):
            return self._walk(value, depth, True)
        if key == "messages" and isinstance(value, list) and all(map(_is_message, value)):
            return self._walk(value, depth, False)
        if key in _PLAN_NAMES and isinstance(value, str) and _NAME.fullmatch(value):
            self._names.add(value)
            return value
        return self._plan(value, depth)

    def _deep(self, value: Any) -> Any:
        try:
            text = line(value)
            shown = self.text(text)
            return value if shown == text else parse(shown)
        except (ValueError, RecursionError):
            return PLACEHOLDER


def _is_one(value: Any, words: Collection[str]) -> bool:
    return isinstance(value, str) and value in words


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and "role" in value


def _are_objects(value: Any) -> bool:
    """Whether inputs are declared here, and not given."""
    return isinstance(value, dict) and all(isinstance(one, dict) for one in value.values())


def _is_opaque(values: Mapping[str, Any], key: str) -> bool:
    """Whether a text is long data, in which a pattern would at best find something by accident."""
    return key == "data" and values.get("type") == "image"
