"""Agents and runs over the scripted provider, what they tell, and what must hold for all of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from runner.engine.agent import Agent
from runner.engine.contract import Cancellation, Clock, Model, Price, Retry, ToolResult, Update
from runner.engine.emit import Emitter
from runner.engine.event import RunStart
from runner.engine.options import AgentOptions
from runner.engine.plan import Plan
from runner.engine.run import Ended, Run
from runner.log.invariants import broken
from runner.providers.scripted import create
from runner.providers.settings import ModelSettings

Line = dict[str, Any]
QUIET = ("message_update", "model_request")
"""Left out where the order of events is looked at."""


# --- agents and runs ------------------------------------------------------------------------------


@dataclass
class Told:
    """A tool made of a function that gets its arguments; see `execute` for what else."""

    name: str
    function: Callable[..., Any]
    execution: Literal["parallel", "sequential"] = "parallel"
    timeout: float | None = None
    idempotent: bool = False
    description: str = "Do it."
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"})
    checks: Callable[[dict[str, Any]], Sequence[str]] = lambda arguments: ()
    told: bool = False
    """Whether the function gets the updates and the cancellation, before its arguments."""

    @property
    def label(self) -> str:
        return self.name

    def check(self, arguments: dict[str, Any]) -> Sequence[str]:
        return self.checks(arguments)

    async def execute(
        self,
        tool_call_id: str,
        params: dict[str, Any],
        on_update: Update,
        cancellation: Cancellation,
    ) -> ToolResult:
        given = self.function(*([on_update, cancellation] if self.told else []), **params)
        if asyncio.iscoroutine(given):
            given = await given
        return ToolResult(given) if isinstance(given, str) else given


class Events(list[Line]):
    """The events of an agent or a run."""

    def listen(self, event: Any) -> None:
        self.append(dict(event))

    def of(self, *types: str, **fields: Any) -> list[Line]:
        """The events of some types, or all, whose fields are these."""
        return [
            event
            for event in self
            if (not types or event["type"] in types)
            and all(event.get(key) == value for key, value in fields.items())
        ]

    def types(self, *left_out: str, agent: str | None = None) -> list[str]:
        """The types of an agent's events, without deltas and requests, and without others."""
        return [
            event["type"]
            for event in self
            if event["type"] not in QUIET + left_out and event.get("agent") == agent
        ]

    def said(self, *roles: str) -> list[str]:
        messages = [event["message"] for event in self.of("message_end")]
        return [
            f"{message['role']}: {text(message['content'])}"
            for message in messages
            if not roles or message["role"] in roles
        ]

    def results(self) -> dict[str, str]:
        return {
            event["message"]["tool_call_id"]: text(event["message"]["content"])
            for event in self.of("message_end")
            if event["message"]["role"] == "tool_result"
        }

    def about(self, *types: str) -> list[str]:
        """``type id`` of what is told of calls, in short; ``message id`` for results."""
        short = {f"tool_execution_{what}": what for what in ("start", "update", "end")}
        found = []
        for event in self:
            if event["type"] in short:
                found.append(f"{short[event['type']]} {event['tool_call_id']}")
            elif event["type"] == "message_end" and "tool_call_id" in event["message"]:
                found.append(f"message {event['message']['tool_call_id']}")
        return [one for one in found if not types or one.split()[0] in types]


def text(content: Sequence[Line]) -> str:
    """The joined text of a content."""
    return "".join(block["text"] for block in content if block["type"] == "text")


@dataclass
class Watched:
    """An agent and all its events."""

    agent: Agent
    events: Events

    def prompt(self, *prompts: Any) -> Any:
        return asyncio.run(self.agent.prompt(prompts[0] if len(prompts) == 1 else prompts))


@dataclass
class Done:
    """A run that ended, and all its events."""

    ended: Ended
    events: Events
    session: Any

    @property
    def end(self) -> Line:
        return self.events[-1]

    def tasks(self) -> list[str]:
        """``start`` and ``end`` of each iteration of the main agent's tasks."""
        found = []
        for event in self.events.of("task_start", "task_end", agent=None):
            name = f"{event['task_id']} {event['iteration']}"
            if event["type"] == "task_start":
                found.append(f"start {name}")
            else:
                found.append(f"end {name} {event['status']}: {event['text']}")
        return found


class Timeless(Clock):
    """A clock with which no retry is waited for."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)

    def random(self) -> float:
        return 0.0


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only while it has nothing to do, and then at once."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__()
        selector: Any = self._selector  # type: ignore[attr-defined]
        select = selector.select

        def pass_time(timeout: float | None) -> Any:
            assert timeout is not None, "nothing is left that could happen"
            self.now += timeout
            return select(0)

        selector.select = pass_time

    def time(self) -> float:
        return self.now


def in_no_time(work: Callable[[], Any]) -> Any:
    """Run something in a loop of virtual time. It may not wait for threads."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work())


def render(template: str, values: Mapping[str, Any]) -> str:
    """Stand in for a spec's templates, of which these tests need two."""
    messages = values["messages"]
    replaced = template.replace("{{ last.text }}", messages[-1].text if messages else "")
    return replaced.replace("{{ count }}", str(len(messages)))


def scripted(
    *script: Mapping[str, Any],
    attempts: int = 1,
    price: Price | None = None,
    id: str = "scripted",
    parameters: Mapping[str, Any] | None = None,
) -> Model:
    """A model that says what stands in its script."""
    settings = ModelSettings(provider="scripted", id=id, script=script, render=render)
    return Model(
        create(settings),
        id,
        parameters=parameters or {},
        price=price or Price(),
        retry=Retry(attempts, 0.01),
    )


def called(*names: str, **more: Any) -> Line:
    """A reply that calls tools, each by its name, with no arguments."""
    return {"tool_calls": [{"name": name} for name in names], **more}


START: RunStart = {
    "type": "run_start",
    "format": "pi-run-log/1",
    "spec": {"name": "main", "sha256": ""},
    "plan": {},
    "inputs": {},
}

Watch = Callable[..., Watched]
RunPlan = Callable[..., Done]


@pytest.fixture
def watch() -> Iterator[Watch]:
    """Make an agent over a script, and watch it; its events are well nested to the end."""
    made: list[Watched] = []

    def make(*script: Mapping[str, Any], attempts: int = 1, **options: Any) -> Watched:
        model = options.pop("model", None) or scripted(*script, attempts=attempts)
        agent = Agent(AgentOptions(model=model, **options), clock=Timeless())
        watched = Watched(agent, Events())
        agent.subscribe(watched.events.listen)
        made.append(watched)
        return watched

    yield make
    for watched in made:
        assert broken(watched.events) == []


@pytest.fixture
def run_plan() -> Iterator[RunPlan]:
    """Run a plan over a script; its events are well nested to the end."""
    made: list[Done] = []

    def run(
        *script: Mapping[str, Any],
        prompt: str = "Hello",
        before: Callable[[Run], object] = lambda run: None,
        sink: Callable[[Any], None] | None = None,
        redactor: Any = None,
        deltas: bool = True,
        plan: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Done:
        async def execute() -> Done:
            whole = make_plan(*script, prompt=prompt, **(plan or {}), **options)
            clock = Timeless()
            emitter = Emitter(clock, sink=sink, redactor=redactor, deltas=deltas)
            events = Events()
            emitter.subscribe(events.listen)
            one = Run(whole, START, emitter, clock)
            before(one)
            return Done(await one.execute(), events, one.session)

        done = asyncio.run(execute())
        made.append(done)
        return done

    yield run
    for done in made:
        assert broken(done.events) == []
        assert done.events[0]["type"] == "run_start"
        assert done.events[-1]["type"] == "run_end"


def make_plan(
    *script: Mapping[str, Any], name: str = "main", prompt: str = "Hello", **more: Any
) -> Plan:
    """A plan over a script. What a plan has not is an option of its agent."""
    own = ("tasks", "follow_ups", "output", "expect", "close")
    of_plan = {key: more.pop(key) for key in own if key in more}
    model = more.pop("model", None) or scripted(*script)
    messages: Any = [{"id": "", "role": "user", "content": [{"type": "text", "text": prompt}]}]
    return Plan(name, AgentOptions(model=model, **more), messages, **of_plan)


@pytest.fixture
def wrong() -> Callable[[Sequence[Line]], list[str]]:
    """Tell all that is wrong with the nesting of events."""
    return broken


@pytest.fixture
def plan() -> Callable[..., Plan]:
    """Make a plan over a script."""
    return make_plan


@pytest.fixture
def tool() -> type[Told]:
    """Make a tool of a function."""
    return Told


@pytest.fixture
def model() -> Callable[..., Model]:
    """Make a model of a script."""
    return scripted


@pytest.fixture
def calls() -> Callable[..., Line]:
    """Make a reply that calls tools by their names."""
    return called


@pytest.fixture
def virtual() -> Callable[[Callable[[], Any]], Any]:
    """Run something in a loop of virtual time."""
    return in_no_time
