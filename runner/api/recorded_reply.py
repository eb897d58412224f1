"""One recorded answer as a reply of a script, and what of it a script can't say."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from typing import Any, get_args

from runner import json_text
from runner.error import ErrorKind, ProviderError

Entry = dict[str, Any]
Note = Callable[[str], None]
"""Is told what a script can't say of the answer at hand."""

MOST_LEVELS = 50
"""How deeply arguments may be nested; deeper ones stand as their text."""
LONGEST_KEY = 500
"""Characters; YAML has a bound for keys, beyond which arguments stand as their text."""
MOST_TOKENS = 10**15
"""The largest number that a spec may have."""
RETRYABLE_STATUS = 503
"""A status after which a request is made again, whatever the error says."""

_KINDS: tuple[ErrorKind, ...] = get_args(ErrorKind)
_USUAL = {False: "stop", True: "tool_use"}


@dataclass(slots=True)
class Pieces:
    """The deltas of an answer, as far as it has come."""

    seen: list[tuple[int, str, int]] = field(default_factory=list)
    """Of each: its block's index, its kind and its length; of a call's first, -1."""
    arguments: dict[int, list[str]] = field(default_factory=dict)
    """By index: the pieces of a call's arguments."""

    def add(self, delta: Mapping[str, Any]) -> None:
        """Take a delta."""
        kind, index = delta["kind"], delta["index"]
        if kind != "tool_call":
            self.seen.append((index, kind, len(delta.get("text", ""))))
            return
        text = delta.get("arguments", "")
        if "name" in delta:
            self.arguments[index] = []
            self.seen.append((index, kind, -1))
        if text:
            self.arguments.setdefault(index, []).append(text)
            self.seen.append((index, kind, len(text)))


class CallIds:
    """The ids that an agent's calls get where the model gives none.

    Args:
        messages: The history that the agent began with.
    """

    def __init__(self, messages: Sequence[Mapping[str, Any]]) -> None:
        self._taken = {
            block["id"]
            for message in messages
            if isinstance(content := message.get("content"), list)
            for block in content
            if isinstance(block, Mapping) and isinstance(block.get("id"), str)
        }
        self._made = 0

    def usual(self, ids: Sequence[str]) -> list[bool]:
        """Of the calls of one answer: whether each has the id that it would get by itself."""
        own: set[str] = set()
        usual = []
        for id_ in ids:
            numbers = count(self._made + len(own) + 1)
            free = (name for n in numbers if (name := f"call_{n}") not in self._taken | own)
            usual.append(next(free) == id_)
            own.add(id_)
        return usual

    def keep(self, ids: Sequence[str]) -> None:
        """The calls of an answer joined the history."""
        self._taken.update(ids)
        self._made += len(ids)


def reply(message: Mapping[str, Any], pieces: Pieces, ids: CallIds, note: Note) -> Entry:
    """What a script says for an answer; of its error nothing."""
    _tell_unsaid(message, note)
    blocks = message["content"]
    entry: Entry = {}
    for kind in ("thinking", "text"):
        if text := "".join(block["text"] for block in blocks if block["type"] == kind):
            entry[kind] = literal(text) if kind == "text" else text
    texts = sum(kind == "text" for _, kind, _ in pieces.seen)
    if texts > 1:
        entry["deltas"] = texts
    calls = [block for block in blocks if block["type"] == "tool_call"]
    if calls:
        entry["tool_calls"] = list(_calls(calls, pieces, ids))
    if usage := _usage(message["usage"], note):
        entry["usage"] = usage
    stop = message["stop_reason"]
    if stop != _USUAL[bool(calls)] and stop != "error":
        entry["stop"] = stop
    if pieces.seen and pieces.seen != list(_pieces_of(message, entry)):
        note("the pieces that an answer came in")
    return entry


def _tell_unsaid(message: Mapping[str, Any], note: Note) -> None:
    """Tell what is in an answer and can be in no script."""
    blocks = message["content"]
    kinds = [block["type"] for block in blocks]
    if any(block.get("signature") for block in blocks):
        note("signatures")
    for kind, name in (("image", "images"), ("provider", "blocks of the provider's own")):
        if kind in kinds:
            note(name)
    said = [kind for kind in kinds if kind in ("thinking", "text", "tool_call")]
    order = sorted(said, key=("thinking", "text", "tool_call").index)
    if said != order or said.count("text") > 1 or said.count("thinking") > 1:
        note("the order of blocks")
    if message.get("paused"):
        note("pauses")


def _usage(usage: Mapping[str, int], note: Note) -> dict[str, int]:
    given = {name: number for name, number in usage.items() if number}
    if all(0 < number <= MOST_TOKENS for number in given.values()):
        return given
    note("such a usage")
    return {}


# --- calls ----------------------------------------------------------------------------------------


def _calls(blocks: Sequence[Mapping[str, Any]], pieces: Pieces, ids: CallIds) -> Iterator[Entry]:
    usual = ids.usual([block["id"] for block in blocks])
    sent = [parts for _, parts in sorted(pieces.arguments.items())]
    for place, block in enumerate(blocks):
        call: Entry = {"name": block["name"]}
        arguments = _arguments(block["arguments"], sent[place] if place < len(sent) else None)
        if arguments != {}:
            call["arguments"] = arguments
        if not usual[place]:
            call["id"] = block["id"]
        yield call


def _arguments(arguments: Any, sent: Sequence[str] | None) -> Any:
    """What a script says: an object, or the text that was sent where that says more."""
    if isinstance(arguments, str):
        return arguments
    plain = json_text.line(arguments)
    if sent is not None and len(sent) <= 1 and "".join(sent) != _sent_for(arguments):
        return "".join(sent)
    return arguments if _is_writable(arguments) else plain


def _sent_for(arguments: Any) -> str:
    """The text that the scripted model sends for an object."""
    import json

    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))


def _is_writable(value: Any, levels: int = MOST_LEVELS) -> bool:
    """Whether a value can stand in a YAML file as it is."""
    if levels == 0:
        return False
    if isinstance(value, dict):
        return all(len(key) <= LONGEST_KEY for key in value) and all(
            _is_writable(item, levels - 1) for item in value.values()
        )
    return not isinstance(value, list) or all(_is_writable(item, levels - 1) for item in value)


# --- pieces ---------------------------------------------------------------------------------------


def _pieces_of(message: Mapping[str, Any], entry: Entry) -> Iterator[tuple[int, str, int]]:
    """The deltas that a script's reply comes in."""
    index = 0
    blocks = message["content"]
    for kind, wanted in (("thinking", 1), ("text", entry.get("deltas", 1))):
        length = sum(len(block["text"]) for block in blocks if block["type"] == kind)
        if not length:
            continue
        for number in range(wanted):
            size = (number + 1) * length // wanted - number * length // wanted
            yield index, kind, size
        index += 1
    for call in entry.get("tool_calls", ()):
        yield index, "tool_call", -1
        arguments = call.get("arguments", {})
        text = arguments if isinstance(arguments, str) else _sent_for(arguments)
        if text:
            yield index, "tool_call", len(text)
        index += 1


# --- texts ----------------------------------------------------------------------------------------

_MARKS = ("{{", "{%", "{#")


def literal(text: str) -> str:
    """A template that comes out as a text, whatever stands in that."""
    if not any(mark in text for mark in _MARKS):
        return text
    # Jinja2 makes an LF of each CR, and what ends a raw block can't stand in one.
    if "\r" not in text and "endraw" not in text and sum(map(text.count, _MARKS)) > 1:
        return f"{{% raw %}}{text}{{% endraw %}}"
    import re

    return re.sub(r"\{[{%#]|\{(?=\r)|\r", _quoted, text)


def _quoted(match: Any) -> str:
    return '{{ "\\r" }}' if match[0] == "\r" else f"{{{{ '{match[0]}' }}}}"


# --- errors ---------------------------------------------------------------------------------------


def unanswered(text: str, *, again: bool) -> Entry:
    """What a script says for a request that failed before its answer began.

    Args:
        text: What its ``model_retry`` says.
        again: Whether the same model was asked again after it; else another one.
    """
    if not again:
        return _final({"error": text})
    for more in ({}, {"status": RETRYABLE_STATUS}):
        entry: Entry = {"error": text, **more}
        if _error_of(text, entry.get("status")).retryable:
            return entry
    return {"error": "overloaded"}


def failed(error: Mapping[str, Any], note: Note, *, again: bool, last: bool) -> Entry:
    """What a script says for the error of an answer.

    Args:
        error: ``{message, kind, status?}``.
        note: Is told what can't be said.
        again: Whether the model was asked again after it.
        last: Whether all attempts were used up, so that it counts for nothing whether it may be
            tried again.
    """
    entry: Entry = {"error": error["message"]}
    if isinstance(status := error.get("status"), int) and 100 <= status <= MOST_TOKENS:
        entry["status"] = status
    made = _error_of(entry["error"], entry.get("status"))
    if again and not made.retryable:
        entry = {"error": error["kind"]}
        made = _error_of(entry["error"], None)
        if not made.retryable:
            entry = {"error": "overloaded"}
            made = _error_of(entry["error"], None)
    if str(made) != error["message"]:
        note("the words of such an error")
    if (made.kind, made.status) != (error["kind"], error.get("status")):
        note("the kind of such an error")
    return entry if again or last else _final(entry)


def _final(entry: Entry) -> Entry:
    """An error after which the model is not asked again."""
    if _error_of(entry["error"], entry.get("status")).retryable:
        return {**entry, "stop": "error"}
    return entry


@lru_cache
def _error_of(text: str, status: int | None) -> ProviderError:
    """The error that the scripted model makes of an entry."""
    from runner.engine.contract import ModelRequest
    from runner.providers.scripted import ScriptedProvider
    from runner.providers.settings import ModelSettings

    entry = {"error": text, **({} if status is None else {"status": status})}
    provider = ScriptedProvider(ModelSettings("scripted", "scripted", script=[entry]))

    async def ask() -> ProviderError:
        try:
            async for _ in provider.stream(ModelRequest([], "", [], "scripted", None, 0)):
                pass
        except ProviderError as error:
            return error
        raise AssertionError("an entry with an error raises it")

    return asyncio.run(ask())
