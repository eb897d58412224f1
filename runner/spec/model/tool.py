"""``tools``: what a model may call."""

from dataclasses import field
from typing import Annotated, Any, ClassVar, Literal

from runner.spec.mark import AgentFile, Pattern, Private, Program, Schema, Target, Template, Url
from runner.spec.model.map import Map
from runner.spec.model.provider import ApiKey
from runner.spec.model.scalar import Count, Seconds, Text


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


class HeaderSecret(ApiKey):
    """Where a secret value of a request's header, or of a program's environment, comes from."""

    prefix: str | None = None
    """What stands before it, such as `Bearer `."""


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
    env: dict[str, Text | Annotated[HeaderSecret, Private()]] | None = None
    """Of `shell` and `python`: variables of the programs' environment, besides the few that all
    get: templates, or where a secret comes from."""


class PythonTool(OwnToolOptions):
    """A Python function with type hints, from which its schema is derived."""

    tag: ClassVar = "python"

    python: Annotated[str, Target()]
    """`PATH.py:NAME`, or `package.module:NAME`."""
    name: str | None = None
    """What the model calls it; by default the function's name."""
    description: str | None = None
    """What the model reads about it; by default the function's docstring."""
    env: dict[str, Text | Annotated[HeaderSecret, Private()]] | None = None
    """Variables of the environment of programs that it runs by its `ToolContext`, besides the few
    that all get: templates, or where a secret comes from."""


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
    env: dict[str, Text | Annotated[HeaderSecret, Private()]] | None = None
    """Variables of its environment, the only ones besides the few that all get: templates, or where
    a secret comes from. Without it the environment is that of pi-run, less what is secret."""


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


class McpServer(Map):
    """A server that speaks the Model Context Protocol: a program, or one at a URL."""

    one_of: ClassVar = ("command", "url")

    name: Annotated[str, Pattern("[a-zA-Z0-9_-]{1,32}", "1 to 32 letters, digits, _ and -")]
    """What it is called: its tools are `NAME_TOOL` for the model."""
    command: Annotated[list[Text], Program()] | None = None
    """The program and its arguments, each a template. It is talked to by its stdin and stdout."""
    url: Text | None = None
    """The endpoint of a server that speaks streamable HTTP."""
    env: dict[str, Text | Annotated[HeaderSecret, Private()]] = field(default_factory=dict)
    """Variables of the program's environment, besides the few that all get: templates, or where a
    secret comes from."""
    headers: dict[str, Text | Annotated[HeaderSecret, Private()]] = field(default_factory=dict)
    """Headers of all requests to the URL: templates, or where a secret comes from."""
    cwd: Text | None = None
    """The folder that the program runs in, relative to this file; by default the workspace."""
    start_timeout: Seconds = 30
    """Seconds that it has to start and to list its tools."""
    include: list[str] | None = None
    """The only tools that are wanted, by the server's names for them or patterns such as `read_*`;
    by default all."""
    exclude: list[str] = field(default_factory=list)
    """Tools that are not wanted, likewise."""
    resources: bool = False
    """Whether the model can list and read the server's resources."""
    prompts: bool = False
    """Whether the model can list and get the server's prompts."""
    required: bool = True
    """Whether the run ends in an error where it does not start. Without it the run goes on with
    none of its tools, and a `tool_unavailable` line says so."""


class McpTools(OwnToolOptions):
    """The tools of an MCP server."""

    tag: ClassVar = "mcp"

    mcp: McpServer
    """The server."""


Tool = str | UseTool | PythonTool | CommandTool | HttpTool | McpTools | AgentTool
"""A built-in's plain name, or one of these."""
