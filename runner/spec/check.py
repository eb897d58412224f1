"""What has to hold of a spec beyond the form of its keys and values.

Works on the tree, so that what is wrong in one place hides nothing in another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from runner.error import Fault, did_you_mean
from runner.spec import inputs, marked
from runner.spec.decode import shape_of
from runner.spec.loaded import EnvironmentUse, Loaded
from runner.spec.mark import (
    AgentFile,
    EnvironmentName,
    Expression,
    Template,
    Text,
    Url,
)
from runner.spec.model import Input
from runner.spec.node import (
    ListNode,
    MapNode,
    Node,
    Place,
    ScalarNode,
    child,
    join,
    scalars,
    split,
    to_value,
)
from runner.spec.scope import Scopes
from runner.spec.shape import INVALID, Decoding, Found
from runner.spec.template import is_plain

_PERMISSION = re.compile(r"[^()\s]+(?:\(.*\))?", re.DOTALL)
_NEEDS_ID = frozenset(("openai", "openai-responses", "anthropic", "google"))


class Check:
    """One walk over what is marked in a spec; adds faults, and what it learns to the spec."""

    def __init__(
        self,
        loaded: Loaded,
        found: list[Found],
        faults: list[Fault],
        load_agent: Callable[[str, Place, str], Loaded | None],
    ) -> None:
        self._loaded = loaded
        self._found = found
        self._faults = faults
        self._load_agent = load_agent
        self._scopes = Scopes(loaded)

    def run(self) -> None:
        """Check everything."""
        self._inputs()
        self._tasks()
        self._models()
        self._permissions()
        table: dict[type, Callable[[Found], None]] = {
            AgentFile: self._agent,
            EnvironmentName: self._environment_name,
            Expression: self._text,
            Template: self._text,
            Url: self._url,
        }
        for found in self._found:
            if check := table.get(type(found.mark)):
                check(found)
            else:
                self._faults += marked.faults(found)
        for index, task in self._task_nodes():
            self._given_inputs(index, task)
        self._expected()

    def _fault(self, place: Place, path: str, message: str) -> None:
        self._faults.append(place.fault(path, message))

    def _node(self, path: str) -> Node | None:
        """What stands at a PATH, what came from a file included."""
        node: Node | None = self._loaded.root
        here = ""
        for step in split(path) or ():
            node = child(node, step)
            here = join(here, step)
            node = self._loaded.included.get(here, node)
        return node

    def _items(self, path: str) -> Iterator[tuple[str, Node]]:
        node = self._node(path)
        for index, item in enumerate(node.items if isinstance(node, ListNode) else ()):
            yield join(path, index), item

    # --- inputs -----------------------------------------------------------------------------------

    def _inputs(self) -> None:
        """Defaults and options fit their types; where a text is wanted it is as written."""
        declared = self._node("inputs")
        for name, node in declared.entries.items() if isinstance(declared, MapNode) else ():
            path = join("inputs", name)
            known = self._loaded.inputs.get(name) or _alone(node)
            if known is None:
                continue
            if known.enum is not None:
                options = list(self._items(join(path, "enum")))
                only_type = Input(type=known.type)
                known.enum = [self._given(only_type, item, place) for place, item in options]
            default = self._node(join(path, "default"))
            if default is not None and INVALID not in (known.enum or ()):
                known.default = self._given(known, default, join(path, "default"))

    def _given(self, known: Input, node: Node, path: str) -> Any:
        """The value of a node for an input, or a fault."""
        value = to_value(node)
        if known.type == "string" and isinstance(node, ScalarNode) and value is not None:
            value = node.text
        try:
            return inputs.allowed(known, value)
        except ValueError as error:
            self._fault(node.place, path, str(error))
            return INVALID

    def _given_inputs(self, index: int, task: MapNode) -> None:
        """What a task gives is what its agent takes."""
        path = f"follow_ups.tasks[{index}]"
        agent = self._loaded.agents.get(join(path, "agent"))
        given = task.entries.get("inputs")
        if agent is None or not isinstance(given, (MapNode, type(None))):
            if "agent" not in task.entries and "inputs" in task.entries:
                message = (
                    "only a task with an agent has inputs; a prompt uses names in its template"
                )
                self._fault(task.keys["inputs"], join(path, "inputs"), message)
            return
        names = given.entries if given else {}
        for name, node in names.items():
            place = join(join(path, "inputs"), name)
            if name.startswith("x-"):
                continue
            if name not in agent.inputs:
                message = f"{agent.file} has no such input; {did_you_mean(name, agent.inputs)}"
                self._fault(given.keys[name] if given else task.place, place, message)
            elif all(is_plain(scalar.text) for _, scalar in scalars(node, place)):
                value = self._given(agent.inputs[name], node, place)
                if self._loaded.spec is not INVALID:
                    self._loaded.spec.follow_ups.tasks[index].inputs[name] = value
        for name, known in agent.inputs.items():
            if known.default is None and name not in names:
                message = f'the input "{name}" is missing, which {agent.file} needs'
                self._fault(given.place if given else task.place, join(path, "inputs"), message)

    # --- tasks, models, permissions ---------------------------------------------------------------

    def _task_nodes(self) -> Iterator[tuple[int, MapNode]]:
        for index, (_, node) in enumerate(self._items("follow_ups.tasks")):
            if isinstance(node, MapNode):
                yield index, node

    def _tasks(self) -> None:
        """Each has an id of its own."""
        lines: dict[str, int] = {}
        for index, task in self._task_nodes():
            node = task.entries.get("id")
            if not isinstance(node, ScalarNode):
                continue
            path = f"follow_ups.tasks[{index}].id"
            if node.text == "main":
                self._fault(node.place, path, '"main" is the first prompt\'s own id; use another')
            elif node.text in lines:
                message = f'"{node.text}" is the id of the task in line {lines[node.text]} too'
                self._fault(node.place, path, message)
            lines.setdefault(node.text, node.place.line)

    def _models(self) -> None:
        """Each has what its provider can't do without."""
        model = self._node("model")
        if isinstance(model, MapNode):
            self._model(model, "model")
            for path, fallback in self._items("model.fallback"):
                if isinstance(fallback, MapNode):
                    self._model(fallback, path)

    def _model(self, model: MapNode, path: str) -> None:
        provider = model.entries.get("provider")
        name = provider.text if isinstance(provider, ScalarNode) else "scripted"
        if name == "scripted" and "script" not in model.entries:
            message = "it is missing; the scripted model answers from it, one entry a model call"
            self._fault(model.place, join(path, "script"), message)
        elif name in _NEEDS_ID and "id" not in model.entries:
            self._fault(model.place, join(path, "id"), f"it is missing; {name} has many models")

    def _permissions(self) -> None:
        for kind in ("allow", "ask", "deny"):
            for path, node in self._items(f"permissions.{kind}"):
                if isinstance(node, ScalarNode) and not _PERMISSION.fullmatch(node.text):
                    message = 'a rule is a tool\'s name, or NAME(PATTERN), such as "shell(git *)"'
                    self._fault(node.place, path, message)

    def _expected(self) -> None:
        expects = "expect" in getattr(self._loaded.root, "entries", ())
        by_task = any("expect" in task.entries for _, task in self._task_nodes())
        if not expects and not by_task and self._node("output") is None:
            message = "nothing is expected of it; add `expect` or `output`"
            place = Place(self._loaded.source, 1, 1)
            self._loaded.warnings.append(place.fault("expect", message, warning=True))

    # --- what is marked ---------------------------------------------------------------------------

    def _text(self, found: Found) -> None:
        """Templates and expressions can be read, and use what is there."""
        expression = isinstance(found.mark, Expression)
        extra = found.mark.extra if isinstance(found.mark, Text) else ()
        for path, node in scalars(found.node, found.path):
            if not expression and is_plain(node.text):
                continue
            from runner.spec.names import look_at

            scope = self._scopes.of(path, extra)
            tasks = self._scopes.tasks
            use = look_at(node.text, scope, expression=expression, all_tasks=tasks)
            for problem in use.problems:
                place, hint = _inside(node, problem.line)
                self._fault(place, path, problem.message + hint)
            for name, line in use.environment.items():
                place, _ = _inside(node, line)
                default = self._loaded.environment_defaults.get(name)
                self._loaded.environment.append(EnvironmentUse(name, path, place, default))

    def _url(self, found: Found) -> None:
        """A template like any other, which leads where the spec says."""
        from runner.spec.url import problem_of

        self._text(found)
        if problem := problem_of(getattr(found.node, "text", "")):
            self._fault(found.node.place, found.path, problem)

    def _agent(self, found: Found) -> None:
        node = found.node
        if not isinstance(node, ScalarNode):
            return
        agent = self._load_agent(node.text, node.place, found.path)
        if agent is None:
            return
        self._loaded.agents[found.path] = agent
        task = found.path.startswith("follow_ups.tasks") and found.path.endswith("].agent")
        has_prompt = task and self._node(found.path.removesuffix("agent") + "prompt") is not None
        if agent.spec.prompt is None and not has_prompt and not found.path.startswith("expect"):
            self._fault(node.place, found.path, f"{agent.file} has no prompt, which an agent needs")

    def _environment_name(self, found: Found) -> None:
        node = found.node
        beside = self._node(found.path.removesuffix("env") + "default")
        default = beside.text if isinstance(beside, ScalarNode) else None
        name = getattr(node, "text", "")
        self._loaded.environment.append(EnvironmentUse(name, found.path, node.place, default))


def _alone(node: Node) -> Input | None:
    """An input of a spec that has faults elsewhere; None where it has some itself."""
    if not isinstance(node, MapNode):
        return None
    known = shape_of(Input).read(node, "", Decoding([], lambda *_: None))
    return known if isinstance(known, Input) else None


def _inside(node: ScalarNode, line: int) -> tuple[Place, str]:
    """The place of a line of a text: in its own file the line itself, else that of the value."""
    if node.place.line == node.place.column == 1:
        return Place(node.place.source, line, 1), ""
    return node.place, f" (line {line} of the text)" if line > 1 else ""
