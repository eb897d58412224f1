"""Values of headers and variables that a spec gives to what it starts: templates and secrets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from runner.spec.loaded import Loaded
from runner.spec.model.tool import HeaderSecret
from runner.spec.template import Template

if TYPE_CHECKING:
    from runner.api.live import Live

Names = Mapping[str, Any]
"""What templates see."""
Values = Callable[[Names], Awaitable[dict[str, str]]]
"""Gives all values of a map; may raise ``TemplateError``, or ``ProviderError`` for a secret."""


def values_of(
    live: Live, loaded: Loaded, path: str, given: Mapping[str, str | HeaderSecret]
) -> Values:
    """What gives the values of a map of a spec, each time anew.

    Args:
        live: Is told each secret that becomes known.
        loaded: The spec.
        path: Where the map stands in it.
        given: The map.

    Raises:
        UsageError: where Python that it names can't be had.
    """
    sources = {
        name: _source(live, loaded, f"{path}.{name}", name, value) for name, value in given.items()
    }

    async def values(names: Names) -> dict[str, str]:
        return {name: await source(names) for name, source in sources.items()}

    return values


def _source(
    live: Live, loaded: Loaded, path: str, name: str, given: str | HeaderSecret
) -> Callable[[Names], Awaitable[str]]:
    if isinstance(given, str):
        template = Template(given, loaded.where(path))

        async def rendered(names: Names) -> str:
            return template.render(names)

        return rendered
    source, prefix = live.key_source(loaded, path, given, name), given.prefix or ""

    async def secret(_names: Names) -> str:
        value = source()
        if value is not None and not isinstance(value, str):
            value = await value
        return prefix + (value or "")

    return secret


def environment_of(
    live: Live,
    loaded: Loaded,
    path: str,
    given: Mapping[str, str | HeaderSecret] | None,
    names: Names,
) -> Callable[[], Awaitable[dict[str, str]]]:
    """What gives the environment of a program that a spec writes out.

    That is this process's own, without secrets, or where the spec names variables those alone, with
    the few that any program needs.

    Args:
        live: See `values_of`; so for the next two.
        loaded: The spec.
        path: Where the variables stand in it.
        given: The variables.
        names: What their templates see.
    """
    values = values_of(live, loaded, path, given or {})

    async def environment() -> dict[str, str]:
        more = await values(names)
        return live.environment(loaded.folder, bare=given is not None) | more

    return environment
