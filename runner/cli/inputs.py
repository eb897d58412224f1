"""What is given on the command line or in files beside it: specs, inputs, variables, the prompt."""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from runner import json_text
from runner.cli.given_file import MAX_BYTES, read_stdin, read_whole
from runner.error import Fault, SpecError, UsageError

MAX_VARIABLES = 1 << 20
"""Bytes of a file of variables: no process has room for more of them."""
_VARIABLE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")


def read_text(path: str, limit: int = MAX_BYTES) -> str:
    """A file's text. Bytes that are no UTF-8 are kept as lone surrogates.

    Raises:
        UsageError: where it can't be read, or has more than ``limit`` bytes.
    """
    return read_whole(path, limit=limit).decode("utf-8", "surrogateescape")


def find_specs(given: Sequence[str]) -> list[str]:
    """The specs that are named, those that a quoted pattern fits among them.

    Raises:
        UsageError: where a pattern fits no file.
    """
    found: list[str] = []
    for name in given:
        if not any(sign in name for sign in "*?[") or os.path.exists(name):
            found.append(name)
        elif matches := sorted(glob.glob(name, recursive=True)):
            found += matches
        else:
            raise UsageError(f"{name}: no file fits this pattern; name a spec that is there")
    return found


def given_inputs(given: Iterable[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """What stands after each ``-i``.

    Returns:
        The values of ``name:=JSON``, and the texts of ``name=text`` and ``name=@file``. Of several
        for one name the last one counts.

    Raises:
        UsageError: where one is none of the three.
    """
    values: dict[str, Any] = {}
    texts: dict[str, str] = {}
    for word in given:
        name, equals, text = word.partition("=")
        if not equals or name in ("", ":"):
            raise UsageError(f"-i {word}: no NAME=; write NAME=text, NAME=@FILE or NAME:=JSON")
        if name.endswith(":"):
            name = name[:-1]
            texts.pop(name, None)
            values[name] = _json(f"-i {name}", text)
        else:
            values.pop(name, None)
            texts[name] = read_text(text[1:]) if text.startswith("@") else text
    return values, texts


def _json(where: str, text: str) -> Any:
    try:
        return json_text.parse(text)
    except ValueError as error:
        raise UsageError(f"{where}: not JSON: {error}; quote a text, as in :='\"text\"'") from None


def inputs_file(path: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The inputs of a file, which has one map, in JSON (``.json``) or YAML.

    Returns:
        As for `given_inputs`; the texts are YAML's plain scalars, which are read by the type that
        the spec gives to the input.

    Raises:
        UsageError: where it can't be read or has no map.
    """
    text = read_text(path).removeprefix("\ufeff")
    values, texts = _json_map(path, text) if path.endswith(".json") else _yaml_map(path, text)
    if values is None:
        raise UsageError(f"{path}: no map; it must have a name and a value for each input")
    return values, texts


def _json_map(path: str, text: str) -> tuple[dict[str, Any] | None, dict[str, str]]:
    try:
        value = json_text.parse(text)
    except ValueError as error:
        raise UsageError(f"{path}: not JSON: {error}; it must have one map") from None
    return (value if isinstance(value, dict) else None), {}


def _yaml_map(path: str, text: str) -> tuple[dict[str, Any] | None, dict[str, str]]:
    from runner.spec import node, yaml

    faults: list[Fault] = []
    tree = yaml.parse(text.encode("utf-8", "surrogateescape"), node.Source(path), faults)
    if faults:
        raise SpecError(faults)
    if not isinstance(tree, node.MapNode):
        return None, {}
    values, texts = {}, {}
    for name, value in tree.entries.items():
        if isinstance(value, node.ScalarNode) and value.plain:
            texts[name] = value.text
        else:
            values[name] = node.to_value(value)
    return values, texts


def set_paths(given: Iterable[str]) -> list[tuple[str, str]]:
    """What stands after each ``--set``: a path in the spec, and the YAML text of its value.

    Raises:
        UsageError: where there is no ``=``.
    """
    pairs = []
    for word in given:
        path, equals, text = word.partition("=")
        if not equals or not path:
            raise UsageError(f"--set {word}: no PATH=; write it like --set limits.turns=5")
        pairs.append((path.strip(), text))
    return pairs


def take_variables(env_file: str | None) -> None:
    """Take the variables of an ``--env-file`` into the environment, if there is one.

    A real variable beats one of the same name.

    Raises:
        UsageError: as `variables_of` says.
    """
    if env_file is not None:
        for name, value in variables_of(env_file).items():
            os.environ.setdefault(name, value)


def variables_of(env_file: str) -> dict[str, str]:
    """The variables of a file with a ``NAME=value`` a line.

    Raises:
        UsageError: where the file can't be read, or a line of it is something else.
    """
    variables: dict[str, str] = {}
    text = read_text(env_file, MAX_VARIABLES).removeprefix("\ufeff")
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        match = _VARIABLE.fullmatch(line)
        if match is None or "\0" in line:
            raise UsageError(f"{env_file}:{number}: no variable; write NAME=value")
        variables[match[1]] = _unquoted(match[2], f"{env_file}:{number}")
    return variables


def _unquoted(text: str, where: str) -> str:
    """A value: between quotes as it is, but for escapes in double ones; else up to a `` #``."""
    if text[:1] not in ('"', "'"):
        return re.split(r"(?:^|\s)#", text, maxsplit=1)[0].rstrip()
    pattern = r"'([^']*)'\s*(#.*)?" if text[0] == "'" else r'"((?:[^"\\]|\\.)*)"\s*(#.*)?'
    match = re.fullmatch(pattern, text)
    if match is None:
        raise UsageError(f"{where}: the quote is not closed; end the value with {text[0]}")
    if text[0] == "'":
        return match[1]
    escapes = {"n": "\n", "r": "\r", "t": "\t"}
    return re.sub(r"\\(.)", lambda m: escapes.get(m[1], m[1]), match[1])


def prompt_text(prompt: str | None) -> str | None:
    """The prompt: as it was given, or for ``-`` all of stdin.

    Raises:
        UsageError: where that can't be read, or never ends.
    """
    if prompt != "-":
        return prompt
    if sys.stdin is None:
        return ""
    return read_stdin(sys.stdin.fileno()).decode("utf-8", "surrogateescape")
