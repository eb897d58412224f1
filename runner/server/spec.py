"""A spec that clients can have run: what they see of it, and a run of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from runner import api
from runner.error import SpecError, UsageError, did_you_mean
from runner.server.refusal import Refusal
from runner.spec.inputs import allowed, parameters, read
from runner.spec.model import Input

_PROMPT = {"type": "string", "minLength": 1, "description": "What is asked."}


class ServedSpec:
    """A spec, loaded and checked once for all of its runs.

    Args:
        compiled: The spec.
        options: How it is run. What they fix of its inputs no client sees.
    """

    def __init__(self, compiled: api.Compiled, options: api.RunOptions) -> None:
        loaded = compiled.loaded
        self._compiled = compiled
        self._options = _own(loaded.inputs, options)
        self.name = loaded.name
        self.description = loaded.spec.description or ""
        self.asks_for_prompt = loaded.spec.prompt is None and options.prompt is None
        """Whether its prompt is for the client to give."""
        fixed = {*self._options.values, *self._options.texts}
        self.declared = loaded.inputs
        """All of its inputs."""
        self._inputs = {name: known for name, known in loaded.inputs.items() if name not in fixed}

    @property
    def request(self) -> dict[str, Any]:
        """The JSON Schema of what starts a run of it."""
        inputs = parameters(self._inputs)
        for name, known in self._inputs.items():
            if known.secret:
                inputs["properties"][name]["format"] = "password"
                inputs["properties"][name]["writeOnly"] = True
        properties: dict[str, Any] = {"spec": {"const": self.name}, "inputs": inputs}
        required = ["spec", *(["inputs"] if inputs["required"] else [])]
        if self.asks_for_prompt:
            properties["prompt"] = _PROMPT
            required.append("prompt")
        return {
            "title": self.name,
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        }

    def as_json(self) -> dict[str, Any]:
        """What a client is told of it."""
        return {
            "name": self.name,
            "description": self.description,
            "inputs": self.request["properties"]["inputs"],
            "asks_for_prompt": self.asks_for_prompt,
        }

    def prepare(
        self, inputs: Mapping[str, Any], prompt: str | None, ask: api.Ask | None
    ) -> api.Prepared:
        """A run of it, ready to be done.

        Args:
            inputs: As JSON values.
            prompt: Where the spec has none.
            ask: Asks who watches.

        Raises:
            Refusal: where the spec can't be run with that.
        """
        if unknown := [name for name in inputs if name not in self._inputs]:
            known = ", ".join(self._inputs) or "none"
            raise Refusal(
                422, "invalid_inputs", f'no input is called "{unknown[0]:.80}"; known: {known}'
            )
        if self.asks_for_prompt != (prompt is not None):
            does = "needs a prompt" if self.asks_for_prompt else "has a prompt, and takes no other"
            raise Refusal(422, "invalid_prompt", f"{self.name} {does}")
        base = self._options
        options = dataclasses.replace(
            base,
            values={**base.values, **inputs},
            prompt=base.prompt if prompt is None else prompt,
            log="none",
            interactive=False,
            ask=ask,
        )
        try:
            return self._compiled.prepare(options)
        except UsageError as error:
            raise Refusal(422, "invalid_inputs", str(error)) from error


def compile_specs(paths: Sequence[str], options: api.RunOptions) -> dict[str, ServedSpec]:
    """Load and check specs, by their names.

    Raises:
        SpecError: with all that is wrong with any.
        UsageError: where two have one name.
    """
    specs: dict[str, ServedSpec] = {}
    faults = []
    for path in paths:
        try:
            served = ServedSpec(api.compile_spec(path, options), options)
        except SpecError as error:
            faults += error.faults
            continue
        if served.name in specs:
            raise UsageError(
                f'{path}: there is a spec "{served.name}" already; give one another `name`'
            )
        specs[served.name] = served
    if faults:
        raise SpecError(faults)
    known = {name for spec in specs.values() for name in spec.declared}
    for name in (*options.values, *options.texts):
        if name not in known:
            hint = did_you_mean(name, sorted(known))
            raise UsageError(f'no spec has an input that is called "{name}"; {hint}')
    return specs


def _own(declared: Mapping[str, Input], options: api.RunOptions) -> api.RunOptions:
    """The options with those inputs alone that a spec declares.

    Raises:
        UsageError: where one has a value that it can't have.
    """
    values = {name: value for name, value in options.values.items() if name in declared}
    texts = {name: text for name, text in options.texts.items() if name in declared}
    given = {**values, **{name: read(declared[name], text) for name, text in texts.items()}}
    for name, value in given.items():
        try:
            allowed(declared[name], value)
        except ValueError as error:
            raise UsageError(f'the input "{name}": {error}') from None
    return dataclasses.replace(options, values=values, texts=texts)
