"""From the words of a command line to the options of a run."""

from __future__ import annotations

import os
import sys
from typing import Any

from runner.api import RunOptions
from runner.cli.inputs import given_inputs, inputs_file, prompt_text, set_paths, take_variables


def run_options(
    *,
    given: tuple[str, ...] = (),
    inputs: str | None = None,
    sets: tuple[str, ...] = (),
    model: str | None = None,
    env_file: str | None = None,
    prompt: str | None = None,
    log: str | None = None,
    **flags: Any,
) -> RunOptions:
    """The options of a run, with every file that they name read.

    Raises:
        UsageError: where something can't be read or is not as it must be.
    """
    take_variables(env_file)
    values, texts = given_inputs(given)
    if inputs is not None:
        for known, more in zip((values, texts), inputs_file(inputs), strict=True):
            for name in more.keys() - values.keys() - texts.keys():
                known[name] = more[name]
    changes = set_paths(sets)
    if flags.get("read_only"):
        changes.append(("read_only", "true"))
    return RunOptions(
        values=values,
        texts=texts,
        sets=changes,
        prompt=prompt_text(prompt),
        model=model,
        log="none" if log == "-" else log,
        frozen=flags.get("frozen", False),
        durable=flags.get("durable", False),
        yes=flags.get("yes", False),
        require_expect=flags.get("require_expect", False),
        workspace=flags.get("workspace"),
        environ=os.environ,
        interactive=can_ask(),
    )


def can_ask() -> bool:
    """Whether a person sits at a terminal that questions can be put to."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
