"""A spec in words: what will happen, in which order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from runner.json_text import line

SHOWN = 120
"""Characters of a text that are shown."""

Spec = Mapping[str, Any]
"""A spec as JSON, defaulted, as the plan of a log has it."""


def explanation(spec: Spec, agents: Mapping[str, Spec]) -> list[str]:
    """What a spec does, a line each.

    Args:
        spec: The spec; its ``name`` is set.
        agents: By the path that names each: the specs that it uses.
    """
    about = f": {_short(spec['description'])}" if spec.get("description") else ""
    return [spec["name"] + about, *(f"  {text}" for text in _steps(spec, agents))]


def _steps(spec: Spec, agents: Mapping[str, Spec]) -> Iterator[str]:
    yield from _inputs(spec)
    yield _model(spec["model"])
    for model in spec["model"].get("fallback", ()):
        yield f"  if it fails for good: {model['provider']} {model.get('id') or ''}".rstrip()
    yield from _tools(spec, agents)
    yield from _hooks(spec)
    yield from _queues(spec)
    number = 0
    for number, text in enumerate(_tasks(spec, agents), 1):
        yield f"{number}. {text}"
    if spec.get("output") is not None:
        retries = spec["output"]["retries"]
        yield f"the answer of main must fit a JSON Schema, with {retries} more tries"
    for expected in spec.get("expect", ()):
        yield f"expected at the end: {_pair(expected)}"
    yield _limits(spec.get("limits", {}))


def _inputs(spec: Spec) -> Iterator[str]:
    for name, declared in spec.get("inputs", {}).items():
        default = declared.get("default")
        given = "required" if default is None else f"by default {_short(line(default))}"
        secret = ", secret" if declared.get("secret") else ""
        yield f"input {name}: {declared['type']}, {given}{secret}"


def _model(model: Mapping[str, Any]) -> str:
    name = " ".join(filter(None, (model["provider"], model.get("id"))))
    tries = model["retry"]["attempts"]
    return f"asks {name}, at most {tries} times a model call"


def _tools(spec: Spec, agents: Mapping[str, Spec]) -> Iterator[str]:
    for index, tool in enumerate(spec.get("tools", ())):
        if isinstance(tool, str):
            yield f"tool {tool}: built in"
        elif "command" in tool:
            yield f"tool {tool['name']}: runs {_short(' '.join(tool['command']))}"
        elif "mcp" in tool:
            server = tool["mcp"]
            at = server.get("url") or " ".join(server.get("command") or ())
            yield f"tools of the MCP server {server['name']}: {_short(at)}"
        elif "python" in tool:
            yield f"tool {tool.get('name') or tool['python'].rpartition(':')[2]}: {tool['python']}"
        elif "agent" in tool:
            name = tool.get("name") or agents.get(f"tools[{index}].agent", {}).get("name", "")
            yield f"tool {name}: asks the agent {tool['agent']}"
        else:
            yield f"tool {tool.get('name') or tool.get('use')}: built in"
    if len(spec.get("tools", ())) > 1:
        way = spec["tool_execution"]
        most = f", at most {spec['max_parallel_tools']} at once" if way == "parallel" else ""
        yield f"calls of one answer run {'at once' if way == 'parallel' else 'in order'}{most}"


def _hooks(spec: Spec) -> Iterator[str]:
    for point, hooks in spec.get("hooks", {}).items():
        for hook in hooks:
            yield f"hook {point}: {_pair(hook)}"


def _queues(spec: Spec) -> Iterator[str]:
    for message in spec.get("steering", {}).get("messages", ()):
        after_tool = message.get("after_tool")
        when = f"the tool {after_tool}" if after_tool else f"turn {message['after_turn']}"
        yield f"after {when} it is steered: {_short(message['text'])}"
    for message in spec.get("follow_ups", {}).get("messages", ()):
        yield f"a follow-up is queued from the start: {_short(message['text'])}"


def _tasks(spec: Spec, agents: Mapping[str, Spec]) -> Iterator[str]:
    yield f"main: {_short(spec.get('prompt') or 'the prompt that is given')}"
    for index, task in enumerate(spec.get("follow_ups", {}).get("tasks", ())):
        yield _task(task, agents.get(f"follow_ups.tasks[{index}].agent", {}))


def _task(task: Mapping[str, Any], agent: Spec) -> str:
    what = _short(task.get("prompt") or "")
    if task.get("agent"):
        what = f"the agent {agent.get('name', task['agent'])}, in a conversation of its own"
    parts = [f"{task['id']}: {what}"]
    if task.get("when"):
        parts.append(f"only if {task['when']}")
    if task.get("for_each"):
        parts.append(f"for each of {task['for_each']}, at most {task['max_parallel']} at once")
    if task.get("repeat"):
        parts.append(f"until {task['repeat']['until']}, at most {task['repeat']['max']} times")
    if task.get("on_error") == "continue":
        parts.append("its failure does not end the run")
    parts += [f"then expected: {_pair(expected)}" for expected in task.get("expect", ())]
    return "; ".join(parts)


def _limits(limits: Mapping[str, Any]) -> str:
    given = [f"{name} {value:g}" for name, value in limits.items() if value is not None]
    return f"limits: {', '.join(given) or 'none'}"


def _pair(entry: Mapping[str, Any]) -> str:
    """What an entry is that has one key that says so."""
    options = ("timeout", "on_error")
    key, value = next((k, v) for k, v in entry.items() if v is not None and k not in options)
    return f"{key} {_short(value if isinstance(value, str) else line(value))}"


def _short(text: Sequence[str] | str) -> str:
    joined = " ".join(str(text).split())
    return joined if len(joined) <= SHOWN else joined[: SHOWN - 1] + "…"
