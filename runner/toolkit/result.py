"""What a tool gave back, as a result for the model and as JSON."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import PurePath
from typing import Any
from uuid import UUID

from runner.engine.contract import ToolResult
from runner.json_text import line, parse

_BLOCK_FIELDS = {"text": ("text",), "image": ("mime_type", "data")}
"""The blocks that a result may have, with the texts in each."""


def to_result(value: Any) -> ToolResult:
    """A result of what a tool returned: a text as it is, nothing as an empty one, else JSON.

    Raises:
        TypeError: for what is not JSON.
        ValueError: for what JSON can't carry: NaN, the infinities, a value that holds itself.
    """
    if isinstance(value, ToolResult):
        _check_blocks(value.content)
        details = None if value.details is None else parse(json_of(value.details))
        return ToolResult(value.content, details, value.is_error, value.terminate)
    if value is None or isinstance(value, str):
        # A subclass of str, such as an enum's member, is the text that it holds.
        return ToolResult(str.__str__(value) if value is not None else "")
    return ToolResult(json_of(value))


def json_of(value: Any) -> str:
    """The JSON text of a value; a model or a dataclass is the object of its fields."""
    try:
        return line(value)
    except TypeError:
        pass  # it holds something that becomes JSON first
    except RecursionError:
        raise ValueError("what it returned is nested too deeply for JSON") from None
    except ValueError as error:
        raise _no_json(error) from None
    try:
        return line(_plain(value))
    except RecursionError:
        raise ValueError("what it returned is nested too deeply, or holds itself") from None
    except ValueError as error:
        raise _no_json(error) from None


def _no_json(error: ValueError) -> ValueError:
    if "Circular" in str(error):
        return ValueError("what it returned holds itself, which JSON can't")
    if "Out of range" in str(error):
        return ValueError("what it returned has a NaN or an infinity, which JSON has not")
    return error


def _plain(value: Any) -> Any:
    """A value with all that JSON does not know replaced by what stands for it."""
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, enum.Enum):
        return _plain(value.value)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {_key(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return _sorted(_plain(item) for item in value)
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, (PurePath, UUID, Decimal)):
        return str(value)
    if isinstance(value, (str, int, float)):
        return value
    raise TypeError(f"what it returned has a {type(value).__name__}, which is not JSON")


def _key(key: Any) -> Any:
    if isinstance(key, enum.Enum):
        key = key.value
    if isinstance(key, (PurePath, UUID, datetime, date)):
        return str(key)
    if key is None or isinstance(key, (str, int, float, bool)):
        return key
    raise TypeError(f"what it returned has a {type(key).__name__} for a key, which JSON can't")


def _sorted(items: Iterable[Any]) -> list[Any]:
    """A set has no order, and a result is to be the same each time."""
    return sorted(items, key=line)


def _check_blocks(content: Any) -> None:
    """Hold a result that was made by hand against the form that a message has."""
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise TypeError(f"a result's content is a text or a list of blocks, not {content!r:.80}")
    for block in content:
        fields = _BLOCK_FIELDS.get(str(block.get("type"))) if isinstance(block, dict) else None
        if fields is None or not all(isinstance(block.get(field), str) for field in fields):
            raise TypeError(
                "a block of a result is {type: text, text} or {type: image, mime_type, data}, "
                f"not {block!r:.80}"
            )
