"""What every map of a spec is made of."""

from __future__ import annotations

from dataclasses import MISSING, Field, field
from typing import Any, ClassVar, dataclass_transform, get_origin


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class Map:
    """A map with known keys: a dataclass, made without generating code.

    Code for each of some 45 classes would cost as much as all else that a small check does.
    """

    fields: ClassVar[dict[str, Any]] = {}
    """The default of each field: a value, a `Field` with a factory, or ``MISSING``."""

    def __init_subclass__(cls) -> None:
        cls.fields = dict(cls.fields)
        for name, hint in cls.__annotations__.items():
            if ClassVar not in (hint, get_origin(hint)):
                cls.fields[name] = cls.__dict__.get(name, MISSING)

    def __init__(self, **values: Any) -> None:
        for name, default in self.fields.items():
            if name in values:
                value = values.pop(name)
            elif isinstance(default, Field):
                assert default.default_factory is not MISSING
                value = default.default_factory()
            else:
                value = default
            if value is MISSING:
                raise TypeError(f"{type(self).__name__} needs {name}")
            setattr(self, name, value)
        if values:
            raise TypeError(f"{type(self).__name__} has no {', '.join(values)}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({values})"
