from __future__ import annotations

import asyncio
import dataclasses
import enum
import functools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import pydantic
import pytest
from typing_extensions import TypedDict

from runner.engine.contract import Cancellation, ToolResult
from runner.error import UsageError
from runner.toolkit.arguments import ModelArguments, PlainArguments
from runner.toolkit.python import FunctionTool, ToolContext, from_function, tool
from runner.toolkit.signature import read_signature


def call(made: FunctionTool, updates: list[Any] | None = None, **arguments: Any) -> ToolResult:
    assert list(made.check(arguments)) == []
    told = [] if updates is None else updates
    return asyncio.run(made.execute("call_1", arguments, told.append, Cancellation()))


def text(function: Callable[..., Any], **arguments: Any) -> Any:
    return call(from_function(function), **arguments).content


def search(query: str, limit: int = 10) -> str:
    """Search the web.

    Args:
        query: What to look for.
        limit: How many.

    Returns:
        Pages.
    """
    return f"{limit} {type(limit).__name__} of {query}"


# --- what a model reads ---------------------------------------------------------------------------


def test_a_schema_is_derived_from_hints_and_docstring() -> None:
    made = from_function(search)
    assert (made.name, made.label, made.description) == ("search", "search", "Search the web.")
    assert made.parameters == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for."},
            "limit": {"type": "integer", "description": "How many.", "default": 10},
        },
        "required": ["query"],
        "additionalProperties": False,
    }


def plain_types(  # type: ignore[no-untyped-def]
    text: str,
    count: int,
    share: float,
    yes: bool,
    any_list: list,  # type: ignore[type-arg]
    ints: list[int],
    nested: list[list[float]],
    any_map: dict,  # type: ignore[type-arg]
    a_map: dict[str, int],
    map_of_any: dict[str, Any],
    anything: Any,
    level: Literal["low", "high"],
    one: Literal["only"],
    mixed: Literal["a", 1, None],
    truth: Literal[True, False],
    maybe: str | None,
    old_maybe: Optional[int],  # noqa: UP045
    maybe_list: list[int | None] | None,
    nothing: None,
    told: Annotated[str, "Told here."],
    untyped,
    schema: str = "names of pydantic's own",
    model_config: dict[str, list[int]] = {"a": [1]},  # noqa: B006
    _private: float = 2,
    by_default: str | None = None,
) -> None:
    """All plain types.

    Args:
        text: Said.
        told: Not this.
    """


def test_what_plain_hints_give_is_what_pydantic_gives() -> None:
    signature = read_signature(plain_types)
    plain, model = PlainArguments(signature), ModelArguments(signature)
    assert plain.schema == model.schema
    assert plain.schema["properties"]["told"]["description"] == "Told here."


def test_plain_functions_need_no_pydantic_and_no_jsonschema() -> None:
    code = (
        "import asyncio, sys\n"
        "from runner.toolkit.python import from_function\n"
        "from runner.engine.contract import Cancellation\n"
        "def f(a: int, b: list[str] | None = None) -> str: return 'x'\n"
        "made = from_function(f)\n"
        "assert not made.check({'a': 1, 'b': ['x']})\n"
        "asyncio.run(made.execute('1', {'a': 1}, print, Cancellation()))\n"
        "print(sorted({'pydantic', 'jsonschema'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "[]"


class Color(enum.Enum):
    RED = "red"


class Point(pydantic.BaseModel):
    x: int
    title: str = "here"


@dataclasses.dataclass
class Pair:
    left: int
    right: int = 0


class Extra(TypedDict, total=False):
    note: str


def test_other_types_are_made_by_pydantic_and_arrive_as_themselves() -> None:
    def draw(
        point: Point,
        pair: Pair,
        color: Color,
        day: date,
        folder: Path = Path("/tmp"),
        extra: Extra | None = None,
        size: Annotated[int, pydantic.Field(ge=1, description="In pixels.")] = 3,
        either: int | str = 1,
    ) -> list[Any]:
        return [point, pair, color, day, folder, extra, size, either]

    made = from_function(draw)
    properties = made.parameters["properties"]
    assert properties["size"] == {
        "type": "integer",
        "minimum": 1,
        "default": 3,
        "description": "In pixels.",
    }
    assert made.parameters["$defs"]["Point"]["properties"] == {
        "x": {"type": "integer"},
        "title": {"type": "string", "default": "here"},
    }
    arguments: dict[str, Any] = {"point": {"x": 1}, "pair": {"left": 2}}
    arguments |= {"color": "red", "day": "2020-01-02"}
    assert call(made, None, **arguments).content == (
        '[{"x":1,"title":"here"},{"left":2,"right":0},"red","2020-01-02","/tmp",null,3,1]'
    )


def test_what_fits_the_schema_and_not_the_type_is_told() -> None:
    def on(day: date, even: int) -> None:
        """Do it on a day."""

    made = from_function(on)
    said = made.check({"day": "tomorrow", "even": 2})
    assert len(said) == 1
    assert said[0].startswith('at day: "tomorrow" is wrong; ')
    assert 'at even: "x" is wrong; an integer was asked for' in made.check(
        {"day": "2020-01-02", "even": "x"}
    )


def test_json_numbers_become_the_numbers_that_are_hinted() -> None:
    def numbers(a: int, b: float, c: list[int], d: dict[str, float | None]) -> str:
        return repr((a, b, c, d))

    assert text(numbers, a=2.0, b=3, c=[1.0], d={"x": 1, "y": None}) == (
        "(2, 3.0, [1], {'x': 1.0, 'y': None})"
    )


def test_an_unknown_argument_is_told() -> None:
    assert from_function(search).check({"query": "x", "limt": 3}) == [
        'at limt: there is no such name here; did you mean "limit"?'
    ]


def test_a_default_is_pythons_own() -> None:
    shared: list[int] = []

    def add(one: int = 1, to: list[int] = shared) -> int:
        to.append(one)
        return len(to)

    made = from_function(add)
    call(made)
    assert call(made).content == "2"
    assert shared == [1, 1]
    given: list[int] = []
    call(made, to=given)
    assert len(shared) == 2


# --- what can't be a tool -------------------------------------------------------------------------


def positional(a: int, /) -> None: ...
def many(*values: int) -> None: ...
def named(**values: int) -> None: ...
def unknown_hint(a: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821
def no_schema(a: int, b: Callable[[], int]) -> None: ...
def no_pydantic(a: threading.Thread) -> None: ...
def two_contexts(a: ToolContext, b: ToolContext) -> None: ...
def field_default(a: int = pydantic.Field(ge=1)) -> None: ...


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (positional, 'parameter "a" is positional-only'),
        (many, r"\*values: .*has no names"),
        (named, r"\*\*values: .*has no names"),
        (unknown_hint, "unknown_hint: a type hint can't be read: .*Nowhere"),
        (no_schema, 'parameter "b": its type has no JSON Schema'),
        (no_pydantic, 'parameter "a": its type has no JSON Schema'),
        (two_contexts, "only one parameter may be a ToolContext"),
        (field_default, r"write a: Annotated\[TYPE, Field\(…\)\] = DEFAULT"),
        (lambda a: a, "is no name for a tool"),
        (len, "positional-only"),
    ],
)
def test_what_a_model_can_not_call_is_told(function: Callable[..., Any], said: str) -> None:
    with pytest.raises(UsageError, match=said) as raised:
        from_function(function)
    assert "\n" not in str(raised.value)


# --- what is called -------------------------------------------------------------------------------


class Counter:
    """Counts."""

    def __init__(self, start: int = 0) -> None:
        self.count = start

    def __call__(self, by: int) -> int:
        """Count on.

        Args:
            by: How far.
        """
        self.count += by
        return self.count

    async def later(self, by: int) -> int:
        return self(by)


class Async:
    async def __call__(self, word: str) -> str:
        return f"async {word}"


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **named: Any) -> Any:
        return function(*args, **named)

    return wrapper


def test_methods_objects_partials_and_decorated_functions_are_called() -> None:
    counter = Counter()
    made = from_function(counter, name="count")
    assert made.description == "Count on."
    assert made.parameters["properties"]["by"]["description"] == "How far."
    assert call(made, by=2).content == "2"
    assert text(counter.later, by=1) == "3"
    assert call(from_function(Async(), name="a"), word="x").content == "async x"
    assert text(functools.partial(search, limit=3), query="x") == "3 int of x"
    assert text(logged(search), query="x") == "10 int of x"
    assert text(logged(counter.later), by=1) == "4"
    assert call(from_function(Pair, name="pair"), left=1).content == '{"left":1,"right":0}'


def test_a_sync_function_does_not_block_and_an_async_one_runs_in_the_loop() -> None:
    def here() -> int:
        return threading.get_ident()

    async def there() -> int:
        return threading.get_ident()

    own = str(threading.get_ident())
    assert text(here) != own
    assert text(there) == own


def test_an_exception_passes_with_its_message() -> None:
    def boom() -> None:
        raise ValueError("too hot")

    async def leave() -> None:
        sys.exit(3)

    with pytest.raises(ValueError, match="too hot"):
        text(boom)
    with pytest.raises(RuntimeError, match="SystemExit: 3"):
        text(leave)


def test_a_context_is_given_and_is_not_in_the_schema(tmp_path: Path) -> None:
    def work(ctx: ToolContext, n: int) -> list[Any]:
        ctx.update("half")
        ctx.update({"at": date(2020, 1, 2)})
        return [ctx.tool_call_id, ctx.workspace, ctx.cancelled, ctx.environment["A"], n]

    made = from_function(work, workspace=tmp_path, environment=lambda: {"A": "b"})
    assert list(made.parameters["properties"]) == ["n"]
    updates: list[Any] = []
    assert call(made, updates, n=5).content == f'["call_1","{tmp_path}",false,"b",5]'
    assert updates == ["half", {"at": "2020-01-02"}]

    def optional(n: int, ctx: ToolContext | None = None) -> Any:
        return None if ctx is None else [str(ctx.workspace), ctx.environment["PATH"]]

    path = os.environ["PATH"]
    assert text(optional, n=1) == f'["{Path.cwd()}","{path}"]'


def test_a_function_that_sees_its_cancellation_may_say_what_it_has() -> None:
    async def stopped(function: Callable[..., Any]) -> ToolResult:
        cancellation = Cancellation()
        made = from_function(function)
        task = asyncio.create_task(made.execute("1", {}, lambda _: None, cancellation))
        await asyncio.sleep(0.02)
        cancellation.cancel("timed out")
        task.cancel()
        return await task

    def listens(ctx: ToolContext) -> str:
        while not ctx.cancelled:
            time.sleep(0.001)
        return "so far"

    def deaf() -> None:
        time.sleep(0.1)

    assert asyncio.run(stopped(listens)).content == "so far"
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(stopped(deaf))


def test_many_blocking_calls_begin_at_once() -> None:
    together = threading.Barrier(32, timeout=10)

    def meet() -> str:
        together.wait()
        return "met"

    async def main() -> list[ToolResult]:
        made = from_function(meet)
        calls = [made.execute(str(n), {}, lambda _: None, Cancellation()) for n in range(32)]
        return await asyncio.gather(*calls)

    assert {result.content for result in asyncio.run(main())} == {"met"}


# --- the decorator --------------------------------------------------------------------------------


def test_the_decorator_marks_and_leaves_the_function_as_it_is() -> None:
    @tool
    def bare(a: int) -> int:
        """Say it."""
        return a

    @tool(name="look_up", description="Look.", label="Look", timeout=3, idempotent=True)
    def look(a: int) -> int:
        """Not this."""
        return a

    assert (bare(1), look(2)) == (1, 2)
    assert from_function(bare).description == "Say it."
    made = from_function(look)
    assert (made.name, made.description, made.label) == ("look_up", "Look.", "Look")
    assert (made.timeout, made.idempotent, made.execution) == (3, True, "parallel")
    over = from_function(look, name="other", description="", timeout=None)
    assert (over.name, over.description, over.timeout, over.idempotent) == ("other", "", None, True)


def test_a_wrong_option_is_told() -> None:
    with pytest.raises(TypeError, match="tool\\(\\) knows no idempotant"):
        tool(idempotant=True)  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="parallel or sequential"):
        from_function(search, execution="one")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="more than 0"):
        from_function(search, timeout=0)
