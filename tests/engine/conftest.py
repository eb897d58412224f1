"""Agents and runs over the scripted provider, what they tell, and what must hold for all of it."""

from __future__ import annotations

import asyncio
from collections import Counter
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
from runner.json_text import parse
from runner.providers.scripted import create
from runner.providers.settings import ModelSettings

Line = dict[str, Any]
QUIET = ("message_update", "model_request")
"""Left out where the order of events is looked at."""


# --- what must hold for all events of a run -------------------------------------------------------


class Nesting:
    """What one agent has open; each of its events either fits or is told in ``wrong``."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.running = False
        self.turn: int | None = None
        self.last_turn = 0
        self.message: str | None = None
        self.last_id: int | None = None
        self.deltas: dict[int, list[Line]] = {}
        self.calls: list[str] = []
        self.begun: list[str] = []
        self.done: list[str] = []
        self.answered: list[str] = []
        self.tasks: Counter[tuple[str, int]] = Counter()

    def see(self, event: Line) -> None:
        getattr(self, "on_" + event["type"], lambda event: None)(event)

    def expect(self, holds: object, text: str) -> None:
        if not holds:
            self.wrong.append(text)

    def on_agent_start(self, event: Line) -> None:
        self.expect(not self.running, "an agent starts that is running")
        self.running = True

    def on_agent_end(self, event: Line) -> None:
        self.expect(self.running, "an agent ends that is not running")
        self.expect(self.turn is None, "an agent ends with its turn open")
        self.running = False

    def on_turn_start(self, event: Line) -> None:
        self.expect(self.running and self.turn is None, "a turn starts out of place")
        self.expect(event["turn"] == self.last_turn + 1, f"turn {event['turn']} is not the next")
        self.turn = self.last_turn = event["turn"]

    def on_turn_end(self, event: Line) -> None:
        self.expect(self.turn == event["turn"], f"turn {event['turn']} ends and is not open")
        self.expect(self.message is None, "a turn ends with a message open")
        self.expect(self.answered == self.calls, f"of {self.calls} only {self.answered} answered")
        self.turn = None

    def on_model_request(self, event: Line) -> None:
        self.expect(self.turn is not None and self.message is None, "a request out of place")
        self.expect(self.answered == self.calls, "a request before all calls are answered")

    def on_message_start(self, event: Line) -> None:
        message = event["message"]
        number = int(message["id"].removeprefix("m"))
        self.expect(self.turn is not None and self.message is None, "a message starts in another")
        due = number if self.last_id is None else self.last_id + 1
        self.expect(number == due, f"{message['id']} after m{self.last_id}")
        if message["role"] == "assistant":
            self.expect(self.answered == self.calls, "an answer before all calls are answered")
            self.expect(set(message) == {"id", "role", "provider", "model"}, "it is not empty")
        self.message, self.last_id, self.deltas = message["id"], number, {}

    def on_message_update(self, event: Line) -> None:
        self.expect(event["message_id"] == self.message, "a delta of a message that is not open")
        self.deltas.setdefault(event["delta"]["index"], []).append(event["delta"])

    def on_message_end(self, event: Line) -> None:
        message = event["message"]
        self.expect(message["id"] == self.message, f"{message['id']} ends and is not open")
        self.message = None
        if message["role"] == "assistant":
            self._answer(message)
        elif message["role"] == "tool_result":
            call = message["tool_call_id"]
            due = self.calls[len(self.answered) :]
            self.expect(due[:1] == [call], f"a result of {call}, not of {due[:1]}")
            self.expect(call in self.done, f"a result of {call} before its end")
            self.answered.append(call)

    def _answer(self, message: Line) -> None:
        runs = message["stop_reason"] not in ("error", "aborted")
        calls = [block for block in message["content"] if block["type"] == "tool_call"]
        self.calls = [call["id"] for call in calls] if runs else []
        self.expect(len(set(self.calls)) == len(self.calls), "two calls have one id")
        self.begun, self.done, self.answered = [], [], []
        told = [told_of(deltas) for _, deltas in sorted(self.deltas.items())]
        whole = [whole_of(b) for b in message["content"] if b["type"] != "provider"]
        self.expect(not told or told == whole, f"the deltas {told} are not the message {whole}")

    def on_tool_execution_start(self, event: Line) -> None:
        call = event["tool_call_id"]
        due = self.calls[len(self.begun) :]
        self.expect(due[:1] == [call], f"{call} starts, not {due[:1]}")
        self.begun.append(call)

    def on_tool_execution_update(self, event: Line) -> None:
        call = event["tool_call_id"]
        self.expect(call in self.begun and call not in self.done, f"{call} is not open")

    def on_tool_execution_end(self, event: Line) -> None:
        self.on_tool_execution_update(event)
        self.done.append(event["tool_call_id"])

    def on_task_start(self, event: Line) -> None:
        self.expect(self.running, "a task starts while its agent rests")
        self.tasks[event["task_id"], event["iteration"]] += 1

    def on_task_end(self, event: Line) -> None:
        if "skipped" not in event:
            self.tasks[event["task_id"], event["iteration"]] -= 1

    def at_end(self) -> None:
        self.expect(not self.running, "the agent did not end")
        open_tasks = {task: n for task, n in self.tasks.items() if n}
        self.expect(not open_tasks, f"tasks are open: {open_tasks}")


def told_of(deltas: Sequence[Line]) -> Any:
    """What the deltas of a block say."""
    if deltas[0]["kind"] != "tool_call":
        return deltas[0]["kind"], "".join(delta["text"] for delta in deltas)
    return deltas[0]["id"], read("".join(delta["arguments"] for delta in deltas))


def whole_of(block: Line) -> Any:
    """The same of a block of the whole message."""
    if block["type"] != "tool_call":
        return block["type"], block["text"]
    return block["id"], block["arguments"]


def read(raw: str) -> Any:
    """Arguments from their text; the text itself where it is no object."""
    try:
        value = parse(raw) if raw else {}
    except ValueError:
        return raw
    return value if isinstance(value, dict) else raw


def all_wrong(events: Sequence[Line]) -> list[str]:
    """All that is wrong with the events of an agent or a run, from its first to its last."""
    wrong: list[str] = []
    agents: dict[str, Nesting] = {}
    for n, event in enumerate(events):
        keys = [key for key in ("seq", "t", "agent", "type") if key in event]
        path = event.get("agent", "main")
        agent = agents.setdefault(path, Nesting())
        agent.see(event)
        if event["type"] == "agent_end":
            below = [p for p, a in agents.items() if p.startswith(path + "/") and a.running]
            agent.expect(not below, f"it ends before {below}")
        if event["type"] == "run_start":
            agent.expect(n == 0, "run_start is not the first")
        if event["type"] == "run_end":
            agent.expect(n == len(events) - 1, "run_end is not the last")
        agent.expect(event["seq"] == n, f"its number is {event['seq']}")
        agent.expect(list(event)[: len(keys)] == keys, f"its keys are {list(event)}")
        wrong += [f"{n} {path} {event['type']}: {text}" for text in agent.wrong]
        agent.wrong = []
    for path, agent in agents.items():
        agent.at_end()
        wrong += [f"at the end: {path}: {text}" for text in agent.wrong]
    return wrong


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
        assert all_wrong(watched.events) == []


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
        assert all_wrong(done.events) == []
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
    return all_wrong


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
