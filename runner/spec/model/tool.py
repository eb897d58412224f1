"""``tools``: what a model may call."""

from dataclasses import field
from typing import Annotated, Any, ClassVar, Literal

from runner.spec.mark import AgentFile, Private, Program, Schema, Target, Template, Url
from runner.spec.model.map import Map
from runner.spec.model.provider import ApiKey
from runner.spec.model.scalar import Count, Seconds


class ToolOptions(Map):
    """What any tool may say of itself."""

    idempotent: bool | None = None
    """Whether it may be run again when it is unknown whether it ran; by default not."""
    execution: Literal["parallel", "sequential"] | None = None
    """`sequential`: a turn that calls this tool runs its calls one after another."""
    timeout: Seconds | None = None
    """Seconds after which it is stopped, and the call answered with an error result."""


class OwnToolOptions(ToolOptions):
    """What a tool may say of itself that is no agent."""

    concurrency: Count | None = None
    """How many of its calls run at once; by default as many as there are."""
    read_only: bool | None = None
    """Whether it changes nothing, so that a `read_only` run may call it; by default what is known
    of it."""


class UseTool(OwnToolOptions):
    """A built-in tool, or a plug-in's, with options."""

    tag: ClassVar = "use"

    use: str
    """Its name."""
    name: str | None = None
    """What the model calls it; by default that name."""
    description: str | None = None
    """What the model reads about it; by default the tool's own."""
    allow: list[str] | None = None
    """Of `shell`: patterns of the only commands that it runs, such as `git log *`."""
    allow_private: bool | None = None
    """Of `fetch`: whether it may connect to this machine and to private networks."""
    allow_hosts: list[str] | None = None
    """Of `fetch`: patterns of hosts, with a port or without, whose address may be a private one."""


class PythonTool(OwnToolOptions):
    """A Python function with type hints, from which its schema is derived."""

    tag: ClassVar = "python"

    python: Annotated[str, Target()]
    """`PATH.py:NAME`, or `package.module:NAME`."""
    name: str | None = None
    """What the model calls it; by default the function's name."""
    description: str | None = None
    """What the model reads about it; by default the function's docstring."""


class CommandTool(OwnToolOptions):
    """A program."""

    tag: ClassVar = "command"

    name: str
    """What the model calls it."""
    description: str
    """What the model reads about it."""
    parameters: Annotated[dict[str, Any], Schema()] = field(
        default_factory=lambda: {"type": "object", "properties": {}}
    )
    """JSON Schema of its arguments, an object."""
    command: Annotated[list[Annotated[str, Template("args")]], Program()]
    """The program and its arguments, each a template that also sees `args`. No shell is between."""
    allow_options: bool | None = None
    """Whether an argument that is an item by itself may begin with `-`, which most programs take
    for an option. By default only after an item that is `--`."""
    output: Literal["text", "json"] | None = None
    """`json`: what it prints on stdout has to be JSON. By default it is text."""


class HeaderSecret(ApiKey):
    """Where the value of a header comes from; it is asked for before every request."""

    prefix: str | None = None
    """What stands before it, such as `Bearer `."""


class HttpRequest(Map):
    """A request."""

    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    """What is asked of the server."""
    url: Annotated[str, Url("args")]
    """A template that also sees `args`, in what stands behind the host. What each place of it
    comes to is percent-encoded there."""
    query: dict[str, Annotated[Any, Template("args")]] = field(default_factory=dict)
    """What is added to the URL's query. A list gives a name several times, null none at all."""
    headers: dict[str, Annotated[str, Template("args")] | Annotated[HeaderSecret, Private()]] = (
        field(default_factory=dict)
    )
    """Templates, or where a secret comes from."""
    json: Annotated[Any, Template("args")] = None
    """What is sent as JSON: each text in it is a template, one that is a single `{{ … }}` keeps the
    type of its value."""
    body: Annotated[str, Template("args")] | None = None
    """What is sent as text, in place of `json`."""
    max_bytes: Count = 1_000_000
    """How much of the answer is read."""


class HttpTool(OwnToolOptions):
    """An HTTP request; what the server answers is the result."""

    tag: ClassVar = "http"

    name: str
    """What the model calls it."""
    description: str
    """What the model reads about it."""
    parameters: Annotated[dict[str, Any], Schema()] = field(
        default_factory=lambda: {"type": "object", "properties": {}}
    )
    """JSON Schema of its arguments, an object."""
    http: HttpRequest
    """What is asked."""


class AgentTool(ToolOptions):
    """Another spec; its inputs are the parameters, its final text is the result."""

    tag: ClassVar = "agent"

    agent: Annotated[str, AgentFile()]
    """The other spec's file."""
    name: str | None = None
    """What the model calls it; by default the other spec's name."""
    description: str | None = None
    """What the model reads about it; by default the other spec's description."""


Tool = str | UseTool | PythonTool | CommandTool | HttpTool | AgentTool
"""A built-in's plain name, or one of these."""
