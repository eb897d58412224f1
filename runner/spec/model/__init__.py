"""What a user may write: a spec, version 1.

Each class is a map of a spec, each of its fields a key: the type says what may stand there, the
metadata says what more has to hold (`runner.spec.mark`), the string below says what it means. This
is all there is to say: decoding, checking, the JSON Schema and the way back to JSON are made of it.
A trailing underscore is not part of a key. Three class variables say more about a map: ``tag``, the
key by which it is told from others in the same place; ``one_of``, keys of which exactly one stands
in it; ``needs``, a key and which others its values make necessary.
"""

from dataclasses import field
from typing import Annotated, Any, ClassVar, Literal

from runner.spec.mark import (
    AgentFile,
    Expression,
    Included,
    Pattern,
    Regex,
    Template,
)
from runner.spec.model.expect import Expectation, Output
from runner.spec.model.hook import Hooks
from runner.spec.model.map import Map
from runner.spec.model.message import FollowUpMessage, Message, SteeringMessage
from runner.spec.model.provider import Model
from runner.spec.model.scalar import Amount, Count, Seconds, Text, Whole
from runner.spec.model.tool import Tool

Identifier = Pattern(r"[A-Za-z_][A-Za-z0-9_-]*", "letters, digits, _ and -, not a digit first")
EnvName = Pattern(r"[A-Za-z_][A-Za-z0-9_]*", "letters, digits and _, not a digit first")
FileText = Annotated[str, Template(), Included("text")]


class Input(Map):
    """A value that a run is given."""

    type: Literal["string", "integer", "number", "boolean", "array", "object"] = "string"
    """What it is."""
    description: str | None = None
    """What it means."""
    default: Any = None
    """Its value where none is given; without it the input is required."""
    enum: list[Any] | None = None
    """The only values that it may have."""
    secret: bool = False
    """Whether it is kept out of logs, errors, events and the environment of tools."""


class EnvironmentDefault(Map):
    """An environment name that need not be set."""

    env: Annotated[str, EnvName]
    """The name."""
    default: str
    """Its value where it is not set."""


class Steering(Map):
    """The queue that redirects a run in progress."""

    mode: Literal["all", "one_at_a_time"] = "all"
    """How much of the queue a turn takes."""
    interrupt: bool = False
    """Whether calls that have not begun are answered `skipped` when a message comes."""
    messages: list[SteeringMessage] = field(default_factory=list)
    """Queued at a known point: for tests and demos."""


class Repeat(Map):
    """Run a task again until it is good."""

    until: Annotated[str, Expression("task")]
    """The expression that ends it; it also sees `task`."""
    max: Count
    """The most times that the task is run."""


class Task(Map):
    """A task of the chain: a prompt in the same conversation, or another agent's run."""

    any_of: ClassVar = ("prompt", "agent")

    id: Annotated[str, Identifier]
    """Its name, by which later tasks see it; the first prompt's own is `main`."""
    prompt: FileText | None = None
    """A template, or `{file: PATH}`."""
    agent: Annotated[str, AgentFile()] | None = None
    """Another spec's file: its own conversation, tools and model."""
    inputs: Annotated[dict[str, Annotated[Any, Template()]], Identifier] = field(
        default_factory=dict
    )
    """The agent's inputs; each text is a template."""
    when: Annotated[str, Expression()] | None = None
    """An expression; if it doesn't hold, the task is skipped."""
    repeat: Repeat | None = None
    """Run it again until it is good."""
    for_each: Annotated[str, Expression()] | None = None
    """An expression that gives a list: one run an item, which templates see as `item`."""
    max_parallel: Count = 4
    """How many items are worked on at once."""
    expect: list[Expectation] = field(default_factory=list)
    """What is to hold when it is done."""
    on_error: Literal["stop", "continue"] = "stop"
    """Whether its failure ends the run."""


class FollowUps(Map):
    """What a run that is about to stop does next."""

    mode: Literal["one_at_a_time", "all"] = "one_at_a_time"
    """How many of the messages are taken at a time. Tasks run one by one."""
    messages: list[FollowUpMessage] = field(default_factory=list)
    """Queued from the start."""
    tasks: list[Task] = field(default_factory=list)
    """Run one after another, once the queue is empty."""


class Permissions(Map):
    """What tools may do. Deny comes before allow, allow before ask."""

    allow: list[str] | None = None
    """Calls that need no question: `read_file`, `shell(git *)`."""
    ask: list[str] | None = None
    """Calls that a person is asked for."""
    deny: list[str] | None = None
    """Calls that are never run."""
    unattended: Literal["deny", "stop"] = "deny"
    """Where nobody can be asked: answer with an error result, or end the run."""


class Limits(Map):
    """How far a run may go, its sub-agents included; `null` lifts a limit."""

    turns: Count | None = 50
    """Model calls, each with its tools."""
    tool_calls: Whole | None = 500
    """Tool calls that are run."""
    repeats: Count | None = 10
    """How often in a row the same call may have the same result."""
    depth: Whole | None = 3
    """Agents within agents."""
    seconds: Seconds | None = None
    """Of the clock."""
    tokens: Whole | None = None
    """Read and written."""
    cost_usd: Amount | None = None
    """In USD."""


class Log(Map):
    """Where and how a run is written down."""

    path: Text | None = None
    """A template, relative to the current folder; by default below `.pi-run/logs`."""
    deltas: bool = True
    """Whether each piece of an answer has its line."""
    redact: list[Annotated[str, Regex()]] = field(default_factory=list)
    """Regular expressions of what is kept out."""
    redact_known: bool = True
    """Whether patterns of common keys are kept out too."""


class Spec(Map):
    """One file that says everything about a run."""

    ignored: ClassVar = ("$schema",)

    version: Literal[1] = 1
    """The version of this format."""
    name: Annotated[str, Pattern(r"[a-z0-9][a-z0-9_-]*", "a-z, 0-9, _ and -")] | None = None
    """What the run is called; by default the file's stem."""
    description: str | None = None
    """What it is for."""
    extends: str | list[str] | None = None
    """A spec, or several, that this one is laid over: maps merge, lists and scalars replace."""
    inputs: Annotated[dict[str, Input], Identifier] = field(default_factory=dict)
    """The typed values that a run is given."""
    env: list[Annotated[str, EnvName] | EnvironmentDefault] = field(default_factory=list)
    """The only environment names that templates may read, as `env.NAME`."""
    model: Model
    """What is asked."""
    system_prompt: FileText | None = None
    """A template, or `{file: PATH}`."""
    prompt: FileText | None = None
    """A template, or `{file: PATH}`; without it the command is given one."""
    messages: Annotated[list[Message], Included("data")] = field(default_factory=list)
    """The history before the prompt, or `{file: PATH}`."""
    tools: list[Tool] = field(default_factory=list)
    """What the model may call."""
    tool_execution: Literal["parallel", "sequential"] = "parallel"
    """Whether the calls of one turn run at once, or one after another."""
    max_parallel_tools: Count = 8
    """How many calls run at once."""
    steering: Steering = field(default_factory=Steering)
    """The queue that redirects a run in progress."""
    follow_ups: FollowUps = field(default_factory=FollowUps)
    """What a run that is about to stop does next."""
    hooks: Hooks = field(default_factory=Hooks)
    """The extension points."""
    permissions: Permissions | None = None
    """What tools may do; without it, all that the spec gives them."""
    read_only: bool | None = None
    """Whether tools that may change something are refused."""
    sandbox: Literal["none", "bwrap"] | None = None
    """`bwrap`: `shell`, `python` and commands run by bubblewrap: the workspace alone can be written
    to, and there is no network."""
    workspace: Text | None = None
    """The folder that file tools and shell stay inside, relative to the current one."""
    limits: Limits = field(default_factory=Limits)
    """How far a run may go."""
    output: Output | None = None
    """The form of the answer."""
    expect: list[Expectation] = field(default_factory=list)
    """What is to hold when the run is done."""
    log: Log = field(default_factory=Log)
    """Where and how the run is written down."""
