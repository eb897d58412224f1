"""Expectations held against what a task or a run came to, and outputs read from an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from runner.engine.limit import MadeCall
from runner.engine.plan import Finished, Verdict
from runner.json_text import line, parse

Check = Callable[[Finished], Awaitable[Verdict]]
SHOWN = 300
"""Characters of a text that a detail shows."""


def result_of(finished: Finished) -> dict[str, Any]:
    """What conditions and commands see of a run or task, as JSON."""
    return {
        "task_id": finished.task_id,
        "status": finished.status,
        "text": finished.text,
        "output": finished.output,
        "turns": finished.turns,
        "tool_calls": [
            {"name": call.name, "arguments": call.arguments, "ran": call.ran}
            for call in finished.calls
        ],
        "usage": finished.usage,
        "cost_usd": finished.cost_usd,
        "seconds": round(finished.seconds, 3),
    }


def plain(kind: str, wanted: Any) -> Check:
    """The check of a kind that needs nothing but its value: all but those below."""
    test = _PLAIN[kind]

    async def check(finished: Finished) -> Verdict:
        return test(wanted, finished)

    return check


def condition(text: str, holds: Callable[[Mapping[str, Any]], bool]) -> Check:
    """The check of ``that``: an expression over ``result``."""

    async def check(finished: Finished) -> Verdict:
        try:
            passed = holds({"result": result_of(finished)})
        except Exception as error:
            return Verdict(False, f"{text}: {error}")
        return Verdict(passed, f"{text} is {'true' if passed else 'false'}")

    return check


def command(argv: Sequence[str], run: Callable[[bytes], Awaitable[tuple[int, str]]]) -> Check:
    """The check of ``command``: a program that gets the result as JSON and exits with 0.

    ``run`` takes the JSON and gives the exit code and what the program said; it may raise.
    """

    async def check(finished: Finished) -> Verdict:
        name = " ".join(argv)
        try:
            code, said = await run(line(result_of(finished)).encode())
        except Exception as error:
            return Verdict(False, f"{name}: {error}")
        told = f": {_short(said.strip())}" if said.strip() else ""
        return Verdict(code == 0, f"{name} ended with exit code {code}{told}")

    return check


def judge(name: str, ask: Callable[[Finished], Awaitable[tuple[Any, str | None]]]) -> Check:
    """The check of ``agent``: a spec that answers ``{pass, reason}``.

    ``ask`` gives its output, or why there is none; it may raise.
    """

    async def check(finished: Finished) -> Verdict:
        try:
            output, problem = await ask(finished)
        except Exception as error:
            return Verdict(False, f"{name}: {error}")
        if problem is not None:
            return Verdict(False, f"{name} gave no verdict: {problem}")
        if not isinstance(output, dict) or not isinstance(output.get("pass"), bool):
            shown = _short(json.dumps(output, ensure_ascii=False))
            return Verdict(False, f"{name} must answer {{pass, reason}}, not {shown}")
        return Verdict(output["pass"], f"{name}: {_short(str(output.get('reason', '')))}")

    return check


def read_json(text: str) -> Any:
    """The JSON value of an answer, which may stand in a fenced block of Markdown.

    Raises:
        ValueError: where there is none.
    """
    stripped = text.strip()
    fenced = re.fullmatch(r"```(?:json)?[ \t]*\n(.*?)\n?```", stripped, re.DOTALL | re.IGNORECASE)
    return parse(fenced[1] if fenced else stripped)


def output_reader(schema: Mapping[str, Any]) -> Callable[[str], tuple[Any, str | None]]:
    """Reads a structured output: text → its value, and what is wrong with it."""
    violations = _violations(schema)

    def read(text: str) -> tuple[Any, str | None]:
        try:
            value = read_json(text)
        except ValueError as error:
            return None, f"it is not JSON: {error}."
        wrong = violations(value)
        return (
            (None, "it doesn't fit the JSON Schema: " + "; ".join(wrong))
            if wrong
            else (
                value,
                None,
            )
        )

    return read


# --- the plain kinds ------------------------------------------------------------------------------


def _contains(wanted: str, finished: Finished) -> Verdict:
    found = wanted in finished.text
    verb = "is" if found else "is not"
    return Verdict(found, f"{wanted!r} {verb} in {_shown(finished.text)}")


def _not_contains(wanted: str, finished: Finished) -> Verdict:
    found = wanted in finished.text
    return Verdict(
        not found, f"{wanted!r} {'is' if found else 'is not'} in {_shown(finished.text)}"
    )


def _equals(wanted: Any, finished: Finished) -> Verdict:
    there = finished.text.rstrip("\n") if isinstance(wanted, str) else finished.output
    same = there == (wanted.rstrip("\n") if isinstance(wanted, str) else wanted)
    detail = f"{_shown(there)} {'equals' if same else 'does not equal'} {_shown(wanted)}"
    return Verdict(same, detail)


def _matches(wanted: str, finished: Finished) -> Verdict:
    from runner.schema.pattern import search

    text = finished.text
    try:
        # `$` is the end of the text, also where a line break follows.
        found = search(wanted, text) or (text.endswith("\n") and search(wanted, text[:-1]))
    except ValueError as error:
        return Verdict(False, str(error))
    verb = "matches" if found else "does not match"
    return Verdict(found, f"{_shown(finished.text)} {verb} {wanted!r}")


def _json_schema(wanted: Mapping[str, Any], finished: Finished) -> Verdict:
    value = finished.output
    if value is None:
        try:
            value = read_json(finished.text)
        except ValueError as error:
            return Verdict(False, f"{_shown(finished.text)} is not JSON: {error}")
    wrong = _violations(wanted)(value)
    return Verdict(not wrong, "; ".join(wrong) or "the answer fits the schema")


def _tool_called(wanted: Any, finished: Finished) -> Verdict:
    if isinstance(wanted, str):
        wanted = {"name": wanted}
    args = wanted.get("args") or {}
    fitting = [
        n
        for n, call in enumerate(finished.calls)
        if (call.ran or wanted.get("refused"))
        and call.name == wanted["name"]
        and (not args or _subset(args, call.arguments))
    ]
    times, order = wanted.get("times"), wanted.get("order")
    passed = bool(fitting) if times is None else len(fitting) == times
    if order is not None:
        passed = passed and order - 1 in fitting
    asked = wanted["name"] + (f" with {line(args)}" if args else "")
    often = "" if times is None else f" {_times(times)}"
    place = "" if order is None else f" as call number {order}"
    made = ", ".join(_call(call) for call in finished.calls) or "none"
    return Verdict(
        passed,
        f"{asked} was to be called{often}{place}; it was called {_times(len(fitting))}; "
        f"the calls were: {_short(made)}",
    )


def _tool_not_called(wanted: str, finished: Finished) -> Verdict:
    # Also where it was not run: that the model asked for it is what nobody expected.
    made = [call for call in finished.calls if call.name == wanted]
    detail = f"{wanted} was called {_times(len(made))}"
    return Verdict(not made, detail + (f", first as {_short(_call(made[0]))}" if made else ""))


_PLAIN: dict[str, Callable[[Any, Finished], Verdict]] = {
    "contains": _contains,
    "not_contains": _not_contains,
    "equals": _equals,
    "matches": _matches,
    "json_schema": _json_schema,
    "tool_called": _tool_called,
    "tool_not_called": _tool_not_called,
}


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def _subset(wanted: Any, there: Any) -> bool:
    """Whether all that is wanted is there: maps as subsets, all else as it is."""
    if isinstance(wanted, Mapping):
        return isinstance(there, Mapping) and all(
            key in there and _subset(value, there[key]) for key, value in wanted.items()
        )
    return bool(wanted == there) and isinstance(wanted, bool) == isinstance(there, bool)


def _call(call: MadeCall) -> str:
    arguments = call.arguments
    text = f"{call.name}({arguments if isinstance(arguments, str) else line(arguments)})"
    return text if call.ran else f"{text}, not run"


def _violations(schema: Mapping[str, Any]) -> Callable[[Any], list[str]]:
    """Gives all ways in which a value doesn't fit a schema. The check is made at first use."""
    made: list[Any] = []

    def violations(value: Any) -> list[str]:
        if not made:
            from runner.schema.check import SchemaCheck

            made.append(SchemaCheck(schema))
        return [_short(one) for one in made[0].violations(value)]

    return violations


def _shown(value: Any) -> str:
    return repr(_short(value)) if isinstance(value, str) else _short(line(value))


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
