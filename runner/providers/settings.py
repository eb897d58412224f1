"""What a spec says of a model, in the form that every provider is made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Reasoning = Literal["off", "minimal", "low", "medium", "high"]
"""How much a model is to think before it answers."""


@dataclass(slots=True)
class ModelSettings:
    """One model of a spec. A provider reads what concerns it and ignores the rest."""

    provider: str
    """A name of `runner.providers.names`."""
    id: str
    """The model's id, as its provider knows it."""
    base_url: str | None = None
    """The server's address, up to what the wire format adds. None: the provider's public one."""
    temperature: float | None = None
    """None: what the server does by itself; so for the next two."""
    max_output_tokens: int | None = None
    reasoning: Reasoning | None = None
    connect_timeout: float = 10.0
    """Seconds until the server has taken a connection."""
    idle_timeout: float = 60.0
    """Seconds without one byte of the answer."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Merged into the request's body as they are; they win over what stands there."""
    cache: Literal["auto", "off"] = "auto"
    """Whether the server is asked to cache the prompt, where it has to be asked."""
    script: Sequence[Mapping[str, Any]] = ()
    """The replies of a scripted model, one a model call."""
    render: Callable[[str, Mapping[str, Any]], str] | None = None
    """Renders a template of the script with the names that it sees."""
    path: str | None = None
    """The file of a local model."""
