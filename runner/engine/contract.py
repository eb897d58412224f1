"""What stands at the edges of the loop: providers, tools, hooks, clocks, and what they exchange.

The loop calls these and knows nothing of what is behind them. Each says what it gets, what it
gives, what it may raise, and who handles cancellation: always by asyncio's own means, a
``CancelledError`` at an ``await``, besides the `Cancellation` that threads can look at.
"""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from runner.engine.message import Block, Message, Usage, text_block

if TYPE_CHECKING:
    # Imported where time passes: a check of a spec needs tools, and no event loop.
    import asyncio

# --- what a provider streams ----------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class TextDelta:
    """A piece of text of the block at ``index`` (its place in the answer's content, from 0)."""

    index: int
    text: str


@dataclass(slots=True, eq=False)
class ThinkingDelta:
    """A piece of thinking of the block at ``index``."""

    index: int
    text: str


@dataclass(slots=True, eq=False)
class ToolCallStart:
    """A tool call begins. An empty or repeated ``id`` is replaced by the loop."""

    index: int
    id: str
    name: str


@dataclass(slots=True, eq=False)
class ToolCallDelta:
    """A piece of a call's arguments, as raw JSON text."""

    index: int
    arguments: str


@dataclass(slots=True, eq=False)
class BlockEnd:
    """The block at ``index`` is whole. Only needed where there is one of these to say.

    ``arguments``: a call's arguments where they are not what the deltas add up to.
    """

    index: int
    signature: str | None = None
    redacted: bool = False
    arguments: dict[str, Any] | str | None = None


@dataclass(slots=True, eq=False)
class OpaqueBlock:
    """A whole block that only this provider understands (its ``data`` is JSON)."""

    index: int
    data: Any


@dataclass(slots=True, eq=False)
class UsageReport:
    """The usage of this answer so far; a later one replaces it."""

    usage: Usage


@dataclass(slots=True, eq=False)
class Stop:
    """The answer is whole: the terminal mark. Nothing follows it.

    ``aborted`` is for a model that says of itself that it was cut short.
    """

    reason: Literal["stop", "tool_use", "length", "aborted"]
    paused: bool = False


StreamEvent = (
    TextDelta
    | ThinkingDelta
    | ToolCallStart
    | ToolCallDelta
    | BlockEnd
    | OpaqueBlock
    | UsageReport
    | Stop
)


@dataclass(slots=True, eq=False)
class ToolSchema:
    """A tool as a model sees it."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON Schema (Draft 2020-12) of an object."""


@dataclass(slots=True, eq=False)
class ModelRequest:
    """All that a provider needs for one request.

    ``messages`` may be the loop's own list: it is read, and not kept or changed. From one request
    to the next it mostly only grows, and a message that stays is the same object, so a provider
    can keep what it made of it.
    """

    messages: Sequence[Message]
    system_prompt: str
    tools: Sequence[ToolSchema]
    model: str
    """The model's id."""
    api_key: str | None
    number: int
    """How many requests this agent made of this model before, also before a resume."""
    output_schema: Mapping[str, Any] | None = None
    """JSON Schema that the answer's text is to fit, where the provider can be told so."""


class Provider(Protocol):
    """A model's server. One instance serves one model of one run."""

    name: str
    """As it stands in a spec, such as ``openai``."""

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """Ask the model once, and give its answer piece by piece.

        An async generator, which the loop closes (``aclose``) when it has seen enough: it must let
        go of its connection then, and when it is cancelled. Ends with `Stop`.

        Raises:
            ProviderError: for any fault of the server or of what it sent, before or in the middle
                of the answer, with what is needed to decide about another attempt. A stream that
                ends without its terminal mark is one. Never anything else.
        """
        ...

    async def close(self) -> None:
        """Let go of all that is held, at the run's end. Must not raise."""
        ...


@dataclass(slots=True)
class Price:
    """USD per million tokens."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0

    def cost(self, usage: Usage) -> float:
        """The price of a usage in USD."""
        return (
            usage["input"] * self.input
            + usage["output"] * self.output
            + usage["cache_read"] * self.cache_read
            + usage["cache_write"] * self.cache_write
        ) / 1_000_000


@dataclass(slots=True)
class Retry:
    """How often and how patiently a model is asked again."""

    attempts: int = 4
    """All requests of one model call, the first included; ≥ 1."""
    max_delay: float = 60.0
    """The longest wait between two requests, in seconds."""


@dataclass(slots=True)
class Model:
    """A model that can be asked."""

    provider: Provider
    id: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """All else that shapes a request (temperature …), as JSON, for the digest of the request."""
    price: Price | None = None
    """None where it isn't known."""
    retry: Retry = field(default_factory=Retry)
    api_key: Callable[[], str | Awaitable[str | None] | None] | None = None
    """Gives the key, before every request. May raise `ProviderError`."""


# --- tools ----------------------------------------------------------------------------------------


class Cancellation:
    """Tells those who work for a run that they are to stop. Safe to read from any thread."""

    __slots__ = ("_callbacks", "reason")

    def __init__(self) -> None:
        self.reason: str | None = None
        self._callbacks: list[Callable[[], object]] = []

    @property
    def cancelled(self) -> bool:
        """Whether to stop."""
        return self.reason is not None

    def cancel(self, reason: str) -> None:
        """Stop; in the loop's thread. Only the first reason counts."""
        if self.reason is None:
            self.reason = reason
            callbacks, self._callbacks = self._callbacks, []
            for callback in callbacks:
                callback()

    def on_cancel(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Have a function called at the cancellation; gives back what takes it off again."""
        if self.cancelled:
            callback()
            return lambda: None
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback) if callback in self._callbacks else None


@dataclass(slots=True)
class ToolResult:
    """What a tool gives back."""

    content: list[Block] | str
    """For the model; a text stands for one text block."""
    details: Any = None
    """JSON, for people and programs."""
    is_error: bool = False
    terminate: bool = False
    """Whether the model need not be asked again. Holds if all results of the turn say so."""
    complete: bool = False
    """Of a call that was stopped: whether the content says so itself already."""

    def blocks(self) -> list[Block]:
        """The content as blocks."""
        return [text_block(self.content)] if isinstance(self.content, str) else self.content


Update = Callable[[Any], None]
"""Takes a JSON value that tells how far a tool is. May be called from any thread."""


class Tool(Protocol):
    """Something that a model can have done."""

    @property
    def name(self) -> str:
        """Unique in its agent."""
        ...

    @property
    def label(self) -> str:
        """The name for people."""
        ...

    @property
    def description(self) -> str:
        """For the model."""
        ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """JSON Schema (Draft 2020-12) of the arguments, which are an object."""
        ...

    @property
    def execution(self) -> Literal["parallel", "sequential"]:
        """``sequential``: all calls of a turn that has one of this tool run one by one."""
        ...

    @property
    def idempotent(self) -> bool:
        """Whether it may be run again when it is unknown whether it ran."""
        ...

    @property
    def timeout(self) -> float | None:
        """Seconds after which a call is cancelled; None for no bound."""
        ...

    def check(self, arguments: dict[str, Any]) -> Sequence[str]:
        """All ways in which arguments don't fit the parameters, as sentences for the model."""
        ...

    async def execute(
        self,
        tool_call_id: str,
        params: dict[str, Any],
        on_update: Update,
        cancellation: Cancellation,
    ) -> ToolResult:
        """Do it.

        At a timeout or an abort ``cancellation`` is cancelled and this coroutine too. It may then
        raise, or give back what it has so far. One that does neither within a grace time is left
        behind.

        Raises:
            Exception: anything; the model is told its message.
        """
        ...


# --- the rest -------------------------------------------------------------------------------------


class Redactor(Protocol):
    """Takes out of events what no one is to read."""

    @property
    def count(self) -> int:
        """How often something was taken out."""
        ...

    def value(self, value: Any) -> Any:
        """A JSON value with every text of it redacted; the same object where nothing is found."""
        ...

    def delta(self, key: tuple[str, int], text: str) -> str:
        """What may be shown of a stream of text, now that this piece of it came.

        What could be the beginning of something secret is held back until it is clear.
        ``key`` tells the streams apart (an answer's path and id, and a block's index).
        """
        ...

    def rest(self, key: tuple[str, int]) -> str:
        """What was held back of a stream that ended."""
        ...


class Interrupted(Exception):  # noqa: N818 - nothing failed: what was being done never ended
    """Raised by a recorded stream that breaks off where the run was killed.

    What came of the answer is closed as aborted, and the model is asked again.

    Attributes:
        begun: Whether the answer had begun, though nothing came of it yet.
    """

    def __init__(self, begun: bool = False) -> None:
        super().__init__()
        self.begun = begun


class Clock:
    """Time, chance and order, so that a test or a replay can bring its own."""

    def now(self) -> float:
        """Seconds; only differences mean anything."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        from asyncio import sleep

        await sleep(seconds)

    def random(self) -> float:
        """A number in [0, 1)."""
        return random.random()

    def call_later(self, seconds: float, callback: Callable[[], object]) -> asyncio.TimerHandle:
        """Have a function called in the loop's thread; the handle takes that back."""
        from asyncio import get_running_loop

        return get_running_loop().call_later(seconds, callback)

    async def turn_of(self, agent: str | None, what: str, key: str) -> None:
        """Wait until something that races others may be told, or begun.

        At once; a replay lets ends that raced come in their recorded order, and stops its run
        where that was stopped before a call was begun.

        Args:
            agent: The agent's path.
            what: The type of the event that tells it; of a call that is about to be run,
                ``tool_execution_begin``.
            key: Which of those that race it is: a tool call's id, a task's iteration.
        """
