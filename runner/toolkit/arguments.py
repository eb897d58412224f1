"""JSON Schema of a function's parameters, and the function's own types of a call's arguments."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from runner.error import UsageError, describe
from runner.toolkit.plain_hint import NotPlain, read_plain, split_description
from runner.toolkit.signature import REQUIRED, FunctionParameter, Signature

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError


class Arguments(Protocol):
    """How a function's arguments look to a model, and what they are to the function."""

    schema: dict[str, Any]
    """JSON Schema of an object with one property a parameter."""

    def faults(self, arguments: dict[str, Any]) -> Sequence[str]:
        """What is wrong with arguments that fit the schema."""
        ...

    def convert(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The keyword arguments of the function; one that isn't given is left to its default."""
        ...


def read_arguments(signature: Signature) -> Arguments:
    """The arguments of a function.

    Raises:
        UsageError: if a hint is for something that JSON has no schema for.
    """
    try:
        return PlainArguments(signature)
    except NotPlain:
        return ModelArguments(signature)


class PlainArguments:
    """Arguments whose hints need no pydantic.

    Raises:
        NotPlain: if one does.
    """

    def __init__(self, signature: Signature) -> None:
        properties: dict[str, Any] = {}
        self._converts = {}
        for parameter in signature.parameters:
            hint, description = split_description(parameter.hint)
            schema, self._converts[parameter.name] = read_plain(hint)
            if description or parameter.description:
                schema["description"] = description or parameter.description
            if parameter.default is not REQUIRED:
                if not _is_json(parameter.default):
                    raise NotPlain
                schema["default"] = parameter.default
            properties[parameter.name] = schema
        required = [p.name for p in signature.parameters if p.default is REQUIRED]
        self.schema: dict[str, Any] = {"type": "object", "properties": properties}
        if required:
            self.schema["required"] = required
        self.schema["additionalProperties"] = False

    def faults(self, arguments: dict[str, Any]) -> Sequence[str]:
        """None: what fits the schema fits."""
        return ()

    def convert(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """See `Arguments`."""
        return {name: self._converts[name](value) for name, value in arguments.items()}


class AnswerArguments:
    """The one argument of a function that takes the agent's answer.

    An object's properties are the arguments themselves; any other answer is one of its own name.
    """

    def __init__(self, signature: Signature, output: Mapping[str, Any]) -> None:
        if len(signature.parameters) != 1:
            raise UsageError(f"{signature.name}: a tool that answers has one parameter, the answer")
        self._name = signature.parameters[0].name
        self._is_object = output.get("type") == "object"
        self.schema = dict(output)
        if not self._is_object:
            # References lead from the top, so what they name has to stand there.
            moved = {key: output[key] for key in ("$defs", "definitions") if key in output}
            inner = {key: value for key, value in output.items() if key not in moved}
            properties = {self._name: inner}
            self.schema = {"type": "object", "properties": properties, "required": [self._name]}
            self.schema |= {"additionalProperties": False, **moved}

    def faults(self, arguments: dict[str, Any]) -> Sequence[str]:
        """None: what fits the schema fits."""
        return ()

    def convert(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """See `Arguments`."""
        return {self._name: arguments if self._is_object else arguments[self._name]}


class ModelArguments:
    """Arguments by a pydantic model, for any hint that pydantic knows."""

    def __init__(self, signature: Signature) -> None:
        self._parameters = {f"p{n}": p for n, p in enumerate(signature.parameters)}
        try:
            self._model = _model(self._parameters)
            self.schema = _schema(self._model)
        except Exception as error:
            raise UsageError(f"{signature.name}: {_culprit(self._parameters, error)}") from error

    def faults(self, arguments: dict[str, Any]) -> Sequence[str]:
        """See `Arguments`."""
        from pydantic import ValidationError

        try:
            self._model.model_validate(arguments)
        except ValidationError as error:
            return _sentences(error)
        return ()

    def convert(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """See `Arguments`."""
        model = self._model.model_validate(arguments)
        return {
            parameter.name: getattr(model, field)
            for field, parameter in self._parameters.items()
            if field in model.model_fields_set or parameter.default is REQUIRED
        }


def _model(parameters: dict[str, FunctionParameter]) -> type[BaseModel]:
    """A model with an aliased field a parameter, since a field may not have any name."""
    from pydantic import ConfigDict, Field, create_model

    fields: dict[str, Any] = {}
    for field, parameter in parameters.items():
        hint, description = split_description(parameter.hint)
        said = description or parameter.description
        default = ... if parameter.default is REQUIRED else parameter.default
        if said and not _describes_itself(hint):
            hint = Annotated[hint, Field(description=said)]
        fields[field] = (hint, Field(default, alias=parameter.name))
    return create_model("Arguments", __config__=ConfigDict(extra="forbid"), **fields)


def _describes_itself(hint: Any) -> bool:
    return any(getattr(said, "description", None) for said in getattr(hint, "__metadata__", ()))


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    with warnings.catch_warnings():
        # A default that is not JSON stays out of the schema, which is all that is to be told.
        warnings.simplefilter("ignore")
        schema: dict[str, Any] = _without_titles(model.model_json_schema())
    schema.pop("description", None)
    return schema


def _without_titles(schema: Any) -> Any:
    """A schema without its titles, which only say the names again in capitals."""
    if isinstance(schema, list):
        return [_without_titles(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in ("properties", "$defs", "patternProperties"):
            kept[keyword] = {name: _without_titles(part) for name, part in value.items()}
        elif keyword in ("default", "const", "enum", "examples"):
            if _is_json(value):
                kept[keyword] = value
        elif keyword != "title":
            kept[keyword] = _without_titles(value)
    return kept


def _is_json(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return isinstance(value, list) and all(map(_is_json, value))
    if isinstance(value, dict):
        return all(type(name) is str and _is_json(part) for name, part in value.items())
    if type(value) is float:
        return value - value == 0  # neither NaN nor an infinity
    return value is None or type(value) in (str, int, bool)


def _culprit(parameters: dict[str, FunctionParameter], error: Exception) -> str:
    """Which parameter a schema can't be made for, and why."""
    for field, parameter in parameters.items():
        try:
            _schema(_model({field: parameter}))
        except Exception as own:
            why = describe(own).partition(". ")[0]
            return f'parameter "{parameter.name}": its type has no JSON Schema: {why}'
    return describe(error)


def _sentences(error: ValidationError) -> list[str]:
    from runner.schema.violation import path_text

    said = []
    for fault in error.errors(include_url=False):
        place = path_text(fault["loc"])
        said.append(f"at {place}: {_shown(fault['input'])} is wrong; {fault['msg']}")
    return said


def _shown(value: Any) -> str:
    """A value as JSON; the name of its kind where it is none."""
    from runner.schema.violation import value_text

    try:
        return value_text(value)
    except (TypeError, ValueError):
        return f"a {type(value).__name__}"
