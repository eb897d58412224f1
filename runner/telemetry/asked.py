"""What a plan says of the models and tools of an agent, as attributes of spans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from runner.telemetry import names


class Asked:
    """The part of a plan that is one agent's. Anything in it may be missing: a log is read."""

    def __init__(self, plan: Any) -> None:
        self._plan: Mapping[str, Any] = plan if isinstance(plan, Mapping) else {}
        resolved = self._plan.get("resolved")
        self._resolved: Mapping[str, Any] = resolved if isinstance(resolved, Mapping) else {}
        self._models: dict[tuple[str, str], dict[str, Any]] = {}

    def agent_below(self, name: str) -> Asked:
        """The part of an agent in this one. Of two with one name that differ nothing is known."""
        agents = self._resolved.get("agents")
        found = [one for one in _maps(agents) if one.get("name") == name]
        return Asked(found[0] if found and all(one == found[0] for one in found) else None)

    @property
    def description(self) -> str | None:
        """What the agent is for."""
        text = self._plan.get("description")
        return text if isinstance(text, str) else None

    def main_model(self) -> dict[str, Any]:
        """The attributes of the model that the agent asks first."""
        model = self._plan.get("model")
        if not isinstance(model, Mapping) or not isinstance(provider := model.get("provider"), str):
            return {}
        name = model.get("id")
        return self.model(provider, name if isinstance(name, str) else provider)

    def model(self, provider: str, model: str) -> dict[str, Any]:
        """Who a request goes to, and where; see `request` for how it is shaped."""
        chosen = self._choice(provider, model)
        where = names.server(provider, chosen.get("base_url"))
        found: dict[str, Any] = {
            names.PROVIDER: names.provider_name(provider, where[0] if where else None),
            names.REQUEST_MODEL: model,
        }
        if where is not None:
            found[names.SERVER_ADDRESS], found[names.SERVER_PORT] = where
        return found

    def request(self, provider: str, model: str) -> dict[str, Any]:
        """All attributes of a request to a model."""
        key = (provider, model)
        if key not in self._models:
            shape = dict(_numbers(self._choice(provider, model)))
            self._models[key] = {
                **self.model(provider, model),
                names.REQUEST_STREAM: True,
                **shape,
            }
        return self._models[key]

    def tool_description(self, name: str) -> str | None:
        """What a tool is for, as the model is told."""
        for tool in _maps(self._resolved.get("tools")):
            if tool.get("name") == name:
                text = tool.get("description")
                return text if isinstance(text, str) else None
        return None

    def system_prompts(self) -> Iterator[str]:
        """The texts of which one may be what the model was told first."""
        for prompt in (self._resolved.get("system_prompt"), self._plan.get("system_prompt")):
            if isinstance(prompt, str):
                yield prompt

    def messages(self) -> Iterator[Mapping[str, Any]]:
        """The messages before the first prompt, which have no events."""
        yield from _maps(self._plan.get("messages"))

    def _choice(self, provider: str, model: str) -> Mapping[str, Any]:
        """What the plan says of the model that an event names."""
        first = self._plan.get("model")
        if not isinstance(first, Mapping):
            return {}
        for one in (first, *_maps(first.get("fallback"))):
            if one.get("provider") == provider and one.get("id", provider) == model:
                return one
        return {}


def _maps(value: Any) -> Iterator[Mapping[str, Any]]:
    """The maps in a list, or among the values of a map."""
    if isinstance(value, Mapping):
        value = list(value.values())
    for one in value if isinstance(value, list) else ():
        if isinstance(one, Mapping):
            yield one


def _numbers(choice: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    options = choice.get("options")
    given = {**options, **choice} if isinstance(options, Mapping) else choice
    for key, name in names.REQUEST_PARAMETERS.items():
        value = given.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield name, value
