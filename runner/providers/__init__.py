"""Models behind one contract: one module a wire format, and those that plug-ins bring.

A provider's module has ``create(settings: ModelSettings) -> Provider``. A plug-in names such a
module, or such a function, in the entry point group ``pi_run.providers``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from runner.engine.contract import Provider
from runner.error import UsageError, did_you_mean
from runner.providers.settings import ModelSettings

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

_MODULES = {
    "anthropic": "runner.providers.anthropic",
    "google": "runner.providers.google",
    "local": "runner.providers.local",
    "openai": "runner.providers.openai",
    "openai-responses": "runner.providers.openai_responses",
    "scripted": "runner.providers.scripted",
}


def create(settings: ModelSettings, *, speaks: str | None = None) -> Provider:
    """The provider that settings name, for one model of one run. Nothing is connected yet.

    Args:
        settings: What a spec says of the model.
        speaks: The provider whose wire format is spoken, where that is another one. Messages and
            errors carry the settings' name all the same.

    Raises:
        UsageError: for a name that is not known, or a plug-in that can't be loaded.
    """
    name = speaks or settings.provider
    if module := _MODULES.get(name):
        return _maker(importlib.import_module(module))(settings)
    return _plug_in(name)(settings)


def exists(name: str) -> bool:
    """Whether there is a provider of this name."""
    return name in _MODULES or name in names()


def names() -> list[str]:
    """The names of all providers that there are, sorted."""
    return sorted({*_MODULES, *_plug_ins().names})


def _plug_in(name: str) -> Callable[[ModelSettings], Provider]:
    for plug_in in _plug_ins().select(name=name):
        try:
            return _maker(plug_in.load())
        except Exception as error:
            # A plug-in's import runs code that is not ours, and may raise anything.
            raise UsageError(
                f'the plug-in for provider "{name}" ({plug_in.value}) can\'t be loaded:'
                f" {type(error).__name__}: {error}"
            ) from error
    raise UsageError(f'there is no provider "{name}"; {did_you_mean(name, names())}')


def _plug_ins() -> EntryPoints:
    from importlib.metadata import entry_points

    return entry_points(group="pi_run.providers")


def _maker(found: object) -> Callable[[ModelSettings], Provider]:
    """A module's ``create``, or the function itself."""
    maker = found if callable(found) else getattr(found, "create", None)
    if not callable(maker):
        raise TypeError(f"{found!r} is no function and has no function named create")
    return cast("Callable[[ModelSettings], Provider]", maker)
