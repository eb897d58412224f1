"""From a loaded spec to a plan: what it says, with the edges that it names joined to the loop."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from runner.api.live import NATIVE_OUTPUT, Names, ToolEntry
from runner.engine import plan as engine
from runner.engine.contract import Model, Tool
from runner.engine.hook import Hooks
from runner.engine.limit import Limits
from runner.engine.message import Message, no_usage, text_block, user_message
from runner.engine.options import AgentOptions, Ending, Scheduled
from runner.engine.session import current
from runner.engine.sub_agent import AgentTool, sub_agent
from runner.error import TemplateError
from runner.spec import inputs as spec_inputs
from runner.spec.decode import to_json
from runner.spec.loaded import Loaded
from runner.spec.model import Task
from runner.spec.model.provider import ModelChoice
from runner.spec.model.tool import AgentTool as AgentEntry
from runner.spec.model.tool import McpTools, UseTool
from runner.spec.template import Expression, Template, is_plain, render_all

if TYPE_CHECKING:
    from runner.expect import Check

FINISH = "When all is done, give the answer by calling {name}, with no other call beside it."
INSTRUCTION = "Answer with nothing but one JSON value that fits this JSON Schema:\n{schema}"


class Edges(Protocol):
    """What makes the parts of a plan that reach out of the loop."""

    def keep_secret(self, name: str, value: str) -> None:
        """Keep a value out of all that people read."""
        ...

    def model(self, loaded: Loaded, path: str, choice: ModelChoice, names: Names) -> Model:
        """A model that can be asked."""
        ...

    def tool(self, loaded: Loaded, path: str, entry: ToolEntry, names: Names) -> Tool:
        """A tool, but one that is an agent."""
        ...

    def agent_tool(self, tool: AgentTool) -> Tool:
        """A tool that is an agent."""
        ...

    def mcp_tools(
        self, loaded: Loaded, path: str, entry: McpTools, names: Names, taken: Collection[str]
    ) -> Sequence[Tool]:
        """The tools of an MCP server, none of which has a name that is taken."""
        ...

    def unavailable(self, loaded: Loaded) -> Sequence[engine.Unavailable]:
        """What could not be had of the tools of a run."""
        ...

    def hooks(self, loaded: Loaded, names: Names) -> Hooks:
        """All hooks of a spec."""
        ...

    def command_check(self, loaded: Loaded, path: str, argv: Sequence[str], names: Names) -> Check:
        """The check of an expectation that is a program."""
        ...


class Builder:
    """Makes plans.

    Args:
        edges: What makes models, tools and hooks.
        environ: The environment, of which a spec sees the names that it lists.
        run_id: What templates see as ``run.id``.
        one_by_one: Whether the items of a ``for_each`` are done one after the other, as a log in
            canonical form tells them.
    """

    def __init__(
        self, edges: Edges, environ: Mapping[str, str], run_id: str, *, one_by_one: bool = False
    ) -> None:
        self._one_by_one = one_by_one
        self._edges = edges
        self._environ = environ
        self._run_id = run_id

    def names(self, loaded: Loaded, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """What all templates of a spec see."""
        return {
            "inputs": inputs,
            "env": loaded.environment_values(self._environ),
            "run": {"name": loaded.name, "id": self._run_id},
            "spec": {"dir": loaded.folder},
        }

    def plan(
        self,
        loaded: Loaded,
        inputs: Mapping[str, Any],
        prompt: str | None = None,
        *,
        literal: bool = False,
    ) -> engine.Plan:
        """The plan of a spec with these inputs.

        Args:
            loaded: The spec.
            inputs: Its inputs, all of them.
            prompt: Instead of the spec's.
            literal: Whether its prompts and messages are rendered already, as in a log's plan.

        Raises:
            TemplateError: if a text of it can't be rendered.
            UsageError: if a tool or a model can't be had.
        """
        spec, names = loaded.spec, self.names(loaded, inputs)
        for name, known in spec.inputs.items():
            if known.secret:
                value = inputs[name]
                text = value if isinstance(value, str) else json.dumps(value)
                self._edges.keep_secret(name, text)
        options = self._options(loaded, names, literal=literal)
        if prompt is None:
            prompt = spec.prompt or ""
            prompt = prompt if literal else _text(loaded, "prompt", prompt, names)
        models = [options.model, *options.fallback]
        return engine.Plan(
            name=loaded.name,
            options=options,
            prompts=[user_message(prompt)],
            tasks=[self._task(loaded, n, task, names) for n, task in enumerate(_tasks(loaded))],
            follow_ups=[
                _text(loaded, f"follow_ups.messages[{n}].text", message.text, names)
                for n, message in enumerate(spec.follow_ups.messages)
            ],
            output=_output(loaded),
            expect=self._expectations(loaded, "expect", spec.expect, names),
            unavailable=self._edges.unavailable(loaded),
            close=[model.provider.close for model in models],
        )

    def system_prompt(self, loaded: Loaded, names: Names) -> str:
        """The system prompt that a spec writes, rendered."""
        return _text(loaded, "system_prompt", loaded.spec.system_prompt or "", names)

    def _options(self, loaded: Loaded, names: Names, *, literal: bool) -> AgentOptions:
        spec = loaded.spec
        limits = spec.limits
        schema = spec.output.schema if spec.output is not None else None
        native = spec.model.provider in NATIVE_OUTPUT and isinstance(schema, dict)
        system_prompt = spec.system_prompt or ""
        if not literal:
            system_prompt = self.system_prompt(loaded, names)
        finish = next((name for name, use in _uses(spec.tools) if use == "finish"), None)
        if finish is not None:
            native = False
        if schema is not None and not native:
            told = INSTRUCTION.format(schema=json.dumps(schema, ensure_ascii=False))
            if finish is not None:
                told = FINISH.format(name=finish)
            system_prompt = f"{system_prompt}\n\n{told}" if system_prompt else told
        return AgentOptions(
            model=self._edges.model(loaded, "model", spec.model, names),
            fallback=[
                self._edges.model(loaded, f"model.fallback[{n}]", choice, names)
                for n, choice in enumerate(spec.model.fallback)
            ],
            system_prompt=system_prompt,
            tools=self.tools(loaded, names),
            messages=_history(loaded, names, literal=literal),
            hooks=self._edges.hooks(loaded, names),
            limits=Limits(
                turns=limits.turns,
                tool_calls=limits.tool_calls,
                repeats=limits.repeats,
                depth=limits.depth,
                seconds=limits.seconds,
                tokens=limits.tokens,
                cost_usd=limits.cost_usd,
            ),
            tool_execution=spec.tool_execution,
            max_parallel_tools=spec.max_parallel_tools,
            steering_mode=spec.steering.mode,
            interrupt=spec.steering.interrupt,
            follow_up_mode=spec.follow_ups.mode,
            scheduled=[
                Scheduled(
                    _text(loaded, f"steering.messages[{n}].text", message.text, names),
                    message.after_turn,
                    message.after_tool,
                )
                for n, message in enumerate(spec.steering.messages)
            ],
            output_schema=cast("dict[str, Any]", schema) if native else None,
        )

    # --- tools and hooks --------------------------------------------------------------------------

    def tools(self, loaded: Loaded, names: Names) -> list[Tool]:
        """The tools of a spec, in its order.

        Raises:
            UsageError: if one can't be had.
        """
        return [tool for group in self.tool_groups(loaded, names) for tool in group]

    def tool_groups(self, loaded: Loaded, names: Names) -> list[list[Tool]]:
        """The tools that each entry of a spec comes to: of a server any number, else one.

        Raises:
            UsageError: if one can't be had.
        """
        groups: list[list[Tool]] = []
        entries = list(enumerate(loaded.spec.tools))
        for index, entry in entries:
            server = isinstance(entry, McpTools)
            groups.append([] if server else [self.tool(loaded, index, names)])
        # What a server calls its tools is to give way to what a spec does.
        taken = {tool.name for group in groups for tool in group}
        for index, entry in entries:
            if isinstance(entry, McpTools):
                path = f"tools[{index}]"
                groups[index] += self._edges.mcp_tools(loaded, path, entry, names, taken)
                taken.update(tool.name for tool in groups[index])
        return groups

    def tool(self, loaded: Loaded, index: int, names: Names) -> Tool:
        """One tool of a spec, by its place, which is not that of a server.

        Raises:
            UsageError: if it can't be had.
        """
        path, entry = f"tools[{index}]", loaded.spec.tools[index]
        assert not isinstance(entry, McpTools)
        if not isinstance(entry, AgentEntry):
            return self._edges.tool(loaded, path, entry, names)
        other = loaded.agents[f"{path}.agent"]
        declared = other.spec.inputs

        def check(arguments: dict[str, Any]) -> list[str]:
            from runner.error import UsageError

            try:
                spec_inputs.bind(declared, arguments, {})
            except UsageError as error:
                return str(error).splitlines()
            return []

        def bind(arguments: dict[str, Any]) -> engine.Plan:
            return self.plan(other, spec_inputs.bind(declared, arguments, {}))

        tool = AgentTool(
            name=entry.name or other.name,
            description=entry.description or other.spec.description or f"Ask {other.name}.",
            parameters=spec_inputs.parameters(declared),
            bind=bind,
            checks=check,
            execution=entry.execution or "parallel",
            idempotent=bool(entry.idempotent),
            timeout=entry.timeout,
        )
        return self._edges.agent_tool(tool)

    # --- tasks ------------------------------------------------------------------------------------

    def _task(self, loaded: Loaded, index: int, task: Task, names: Names) -> engine.Task:
        path = f"follow_ups.tasks[{index}]"

        def condition(key: str, text: str) -> Callable[[engine.Scope], bool]:
            expression = Expression(text, loaded.where(f"{path}.{key}"))
            return lambda scope: expression.holds({**names, **scope})

        made = engine.Task(
            task.id,
            max_parallel=1 if self._one_by_one else task.max_parallel,
            on_error=task.on_error,
            expect=self._expectations(loaded, f"{path}.expect", task.expect, names),
        )
        if task.prompt is not None:
            template = Template(task.prompt, loaded.where(f"{path}.prompt"))
            made.prompt = lambda scope: template.render({**names, **scope})
        if task.agent is not None:
            made.agent = self._agent(loaded, path, task, names)
        if task.when is not None:
            made.when, made.when_text = condition("when", task.when), task.when
        if task.repeat is not None:
            until = condition("repeat.until", task.repeat.until)
            made.repeat = engine.Repeat(until, task.repeat.max)
        if task.for_each is not None:
            made.for_each = _items(task.for_each, loaded.where(f"{path}.for_each"), names)
        return made

    def _agent(
        self, loaded: Loaded, path: str, task: Task, names: Names
    ) -> Callable[[engine.Scope], engine.Plan]:
        other = loaded.agents[f"{path}.agent"]
        where = loaded.where(f"{path}.inputs")

        def bind(scope: engine.Scope) -> engine.Plan:
            given = {
                name: render_all(value, {**names, **scope}, where)
                for name, value in task.inputs.items()
            }
            # A text that a template gives is read by the input's type, as on the command line.
            texts = {name: value for name, value in given.items() if isinstance(value, str)}
            values = {name: value for name, value in given.items() if name not in texts}
            prompt = task.prompt
            if prompt is not None:
                prompt = Template(prompt, loaded.where(f"{path}.prompt")).render({**names, **scope})
            return self.plan(other, other.bind_inputs(values, texts), prompt)

        return bind

    # --- expectations -----------------------------------------------------------------------------

    def _expectations(
        self, loaded: Loaded, path: str, expectations: Sequence[Any], names: Names
    ) -> list[engine.Expectation]:
        from runner import expect

        made = []
        for n, wanted in enumerate(expectations):
            kind, value = next(
                (key, item) for key, item in to_json(wanted).items() if item is not None
            )
            here = f"{path}[{n}]"
            if kind == "that":
                expression = Expression(value, loaded.where(f"{here}.that"))
                check = expect.condition(value, _holding(expression, names))
            elif kind == "command":
                check = self._edges.command_check(loaded, f"{here}.command", value, names)
            elif kind == "agent":
                check = self._judge(loaded.agents[f"{here}.agent"])
            else:
                check = expect.plain(kind, value)
            made.append(engine.Expectation(kind, check, loaded.fault(f"{here}.{kind}", "")))
        return made

    def _judge(self, judge: Loaded) -> Check:
        """The check of a spec that judges: it is asked as an agent of its own."""
        from runner import expect

        async def ask(finished: engine.Finished) -> tuple[Any, str | None]:
            result = expect.result_of(finished)
            given = {name: result[name] for name in judge.spec.inputs if name in result}
            prompt = None
            if not judge.spec.inputs and judge.spec.prompt is None:
                prompt = json.dumps(result, ensure_ascii=False)
            plan = self.plan(judge, judge.bind_inputs(given), prompt)
            agent = sub_agent(plan, current.get())
            outcome = engine.Outcome(agent) if isinstance(agent, Ending) else await agent.run()
            if outcome.ending.status != "ok":
                return None, outcome.ending.error
            if outcome.output is not None:
                return outcome.output, None
            try:
                return expect.read_json(outcome.text), None
            except ValueError as error:
                return None, f"it answered {outcome.text!r:.200}, which is no JSON: {error}"

        return expect.judge(judge.name, ask)


def _tasks(loaded: Loaded) -> list[Task]:
    return loaded.spec.follow_ups.tasks


def _uses(tools: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """The built-in tools of a spec: what the model calls each, and which one it is."""
    for entry in tools:
        if isinstance(entry, str):
            yield entry, entry
        elif isinstance(entry, UseTool):
            yield entry.name or entry.use, entry.use


def _text(loaded: Loaded, path: str, template: str, names: Names) -> str:
    """A text of a spec, rendered. Where it stands is looked up only where that may be told."""
    if is_plain(template):
        return template
    return Template(template, loaded.where(path)).render(names)


def _holding(expression: Expression, names: Names) -> Callable[[Mapping[str, Any]], bool]:
    return lambda scope: expression.holds({**names, **scope})


def _items(text: str, where: str, names: Names) -> Callable[[engine.Scope], Sequence[Any]]:
    expression = Expression(text, where)

    def items(scope: engine.Scope) -> Sequence[Any]:
        value = expression.value({**names, **scope})
        if not isinstance(value, list | tuple):
            raise TemplateError(f"{where}: a list is needed, not {type(value).__name__}")
        return value

    return items


def _output(loaded: Loaded) -> engine.OutputCheck | None:
    from runner.expect import output_reader

    output = loaded.spec.output
    if output is None:
        return None
    return engine.OutputCheck(output_reader(cast("Any", output.schema)), output.retries)


def _history(loaded: Loaded, names: Names, *, literal: bool) -> list[Message]:
    """The messages before the prompt, each whole."""
    history = []
    for n, message in enumerate(loaded.spec.messages):
        whole: dict[str, Any] = {"id": message.id or "", "role": message.role}
        if message.text is not None:
            text = message.text
            text = text if literal else _text(loaded, f"messages[{n}].text", text, names)
            whole["content"] = [text_block(text)]
        else:
            blocks = [_block(to_json(block)) for block in message.content or ()]
            whole["content"] = blocks
        if message.role == "assistant":
            calls = any(block["type"] == "tool_call" for block in whole["content"])
            whole["provider"] = message.provider or ""
            whole["model"] = message.model or ""
            whole["stop_reason"] = message.stop_reason or ("tool_use" if calls else "stop")
            whole["usage"] = no_usage() | (message.usage or {})
        elif message.role == "tool_result":
            whole["tool_call_id"] = message.tool_call_id
            whole["tool_name"] = message.tool_name or ""
            whole["is_error"] = bool(message.is_error)
            if message.details is not None:
                whole["details"] = message.details
        history.append(cast("Message", whole))
    return history


def _block(block: dict[str, Any]) -> dict[str, Any]:
    whole = {key: value for key, value in block.items() if value is not None}
    if whole["type"] == "tool_call":
        whole.setdefault("arguments", {})
    return whole
