"""``model``: what is asked, how, and what it costs."""

from dataclasses import field
from typing import Annotated, Any, ClassVar, Literal

from runner.spec.mark import (
    EnvironmentName,
    File,
    Included,
    Min,
    Private,
    Program,
    Target,
    Template,
)
from runner.spec.model.map import Map
from runner.spec.model.scalar import Amount, Count, Seconds, Text, Whole


class ApiKey(Map):
    """Where a model's key comes from; it is asked for before every model call."""

    one_of: ClassVar = ("env", "file", "command", "python")

    env: Annotated[str, EnvironmentName()] | None = None
    """A name of the environment."""
    default: Annotated[str, Private()] | None = None
    """Beside `env`: the key where the name is not set."""
    file: Annotated[str, File()] | None = None
    """A file that has the key and nothing else."""
    command: Annotated[list[str], Program()] | None = None
    """A program, with its arguments, that prints the key."""
    python: Annotated[str, Target()] | None = None
    """A function that returns the key."""


class Timeout(Map):
    """How long a model's server is waited for."""

    connect: Seconds = 10
    """Seconds until it has taken the connection."""
    idle: Seconds = 60
    """Seconds without one byte of the answer."""


class Retry(Map):
    """How often and how patiently a model is asked again."""

    attempts: Count = 4
    """All requests of one model call, the first included."""
    max_delay: Amount = 60
    """The longest wait between two requests, in seconds."""


class Rate(Map):
    """How fast a model may be asked, by all runs of a process together."""

    any_of: ClassVar = ("requests", "tokens")

    requests: Annotated[float, Min(0, exclusive=True)] | None = None
    """How many in `per` seconds."""
    tokens: Annotated[float, Min(0, exclusive=True)] | None = None
    """How many in `per` seconds, those of prompts, answers and the cache together."""
    per: Seconds = 60
    """Seconds."""


class Price(Map):
    """What a million tokens cost, in USD."""

    input: Amount = 0
    """Of the tokens that the model reads."""
    output: Amount = 0
    """Of the tokens that the model writes."""
    cache_read: Amount = 0
    """Of the tokens that it reads from its cache."""
    cache_write: Amount = 0
    """Of the tokens that it writes to its cache."""


class ScriptCall(Map):
    """A tool call of a scripted reply."""

    name: str
    """The tool's name."""
    arguments: dict[str, Any] | str = field(default_factory=dict)
    """An object, or the raw text that the model is to have sent, well formed or not."""
    id: str | None = None
    """By default `call_1`, `call_2` … through the run."""


class ScriptUsage(Map):
    """The tokens that a scripted reply is to have used."""

    input: Whole = 0
    """Read, without those of the cache."""
    output: Whole = 0
    """Written, reasoning included."""
    cache_read: Whole = 0
    """Read from the cache."""
    cache_write: Whole = 0
    """Written to the cache."""
    reasoning: Whole = 0
    """The part of `output` that was reasoning."""


class Reply(Map):
    """One reply of the scripted model: an answer, or a provider's error."""

    thinking: str | None = None
    """What the model thinks before it answers."""
    text: Annotated[str, Template("messages", "last")] | None = None
    """A template; it also sees `messages`, which the model was given, and `last`, the last one."""
    tool_calls: list[ScriptCall] = field(default_factory=list)
    """What the model calls."""
    deltas: Count = 1
    """How many pieces the text is streamed in."""
    delay: Amount = 0
    """Seconds before each piece."""
    usage: ScriptUsage | None = None
    """The tokens used."""
    stop: Literal["stop", "tool_use", "length", "error", "aborted"] | None = None
    """Why the answer ended; by default what its content says."""
    error: str | None = None
    """The message of a provider's error, after the content, if there is any."""
    status: Annotated[int, Min(100)] | None = None
    """The HTTP status of the error."""
    times: Count | None = None
    """How many requests this entry answers."""
    repeat: Count | Literal["forever"] | None = None
    """How many requests this entry answers, or `forever`."""


class ModelChoice(Map):
    """A model and how it is asked."""

    provider: str = "scripted"
    """`scripted`, `local`, `openai`, `openai-responses`, `anthropic`, `google`, or a plug-in's."""
    id: Text | None = None
    """The model's id, as its provider knows it."""
    path: Annotated[str, File()] | None = None
    """The GGUF file of a `local` model; by default the small one that is installed."""
    base_url: Text | None = None
    """The server's address; by default the provider's public one."""
    api_key: Annotated[ApiKey, Private()] | None = None
    """Where the key comes from; by default the provider's usual environment name."""
    temperature: Amount | None = None
    """How freely the model chooses its words; by default what the server does by itself."""
    max_output_tokens: Count | None = None
    """The longest answer."""
    reasoning: Literal["off", "minimal", "low", "medium", "high"] | None = None
    """How much the model is to think before it answers."""
    timeout: Timeout = field(default_factory=Timeout)
    """How long the server is waited for."""
    retry: Retry = field(default_factory=Retry)
    """How often and how patiently it is asked again."""
    rate: Rate | None = None
    """How fast it may be asked."""
    price: Price | None = None
    """What a million tokens cost; without it what pi-run knows of the model."""
    cache: Literal["auto", "off"] = "auto"
    """Whether the server is asked to cache the prompt, where it has to be asked."""
    options: dict[str, Any] = field(default_factory=dict)
    """Passed through to the provider's body as they are."""
    script: Annotated[list[Reply], Included("data")] | None = None
    """The replies of the `scripted` model, one a model call."""


class Model(ModelChoice):
    """A model, and the models that stand in for it."""

    fallback: list[ModelChoice] = field(default_factory=list)
    """Asked in this order when the one before has failed for good."""
