"""Models for programs that use the loop without a spec."""

from __future__ import annotations

from typing import Any

from runner.engine.contract import Model, Retry


def model(provider: str, id: str | None = None, **settings: Any) -> Model:
    """A model for an `Agent`.

    ::

        model("scripted", script=[{"text": "Hello"}])
        model("openai", "gpt-5-mini", temperature=0)

    Args:
        provider: Its name, as in a spec.
        id: The model's id, as its provider knows it.
        settings: As of `runner.providers.settings.ModelSettings`: ``base_url``, ``temperature``,
            ``script`` and so on; besides, ``api_key``, a text or a function that gives one.

    Raises:
        UsageError: for a provider that is not known.
    """
    from runner import providers
    from runner.providers.keys import default_resolver
    from runner.providers.prices import price
    from runner.providers.settings import ModelSettings

    key = settings.pop("api_key", None)
    made = ModelSettings(provider=provider, id=id or provider, **settings)
    source = (lambda: key) if isinstance(key, str) else key
    return Model(
        provider=providers.create(made),
        id=made.id,
        price=price(provider, made.id),
        retry=Retry(),
        api_key=source or default_resolver(provider, made.base_url),
    )
