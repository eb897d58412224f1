"""Events with a redactor in place: whatever is held back of a stream is told before its end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runner.engine.hook import Hooks

SECRET = "tok-1234567"


class Masks:
    """Takes one secret out, also where it comes in pieces."""

    def __init__(self, secret: str = SECRET) -> None:
        self.secret = secret
        self.count = 0
        self.held: dict[Any, str] = {}

    def value(self, value: Any) -> Any:
        if isinstance(value, str):
            self.count += value.count(self.secret)
            return value.replace(self.secret, "***")
        if isinstance(value, dict):
            return {key: self.value(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item) for item in value]
        return value

    def delta(self, key: Any, text: str) -> str:
        whole = (self.held.get(key, "") + text).replace(self.secret, "***")
        keep = next(
            n
            for n in range(min(len(self.secret) - 1, len(whole)), -1, -1)
            if whole.endswith(self.secret[:n])
        )
        shown = whole[: len(whole) - keep]
        self.held[key] = whole[len(whole) - keep :]
        return shown

    def rest(self, key: Any) -> str:
        return self.held.pop(key, "")


@pytest.mark.parametrize("pieces", [1, 2, 3, 5, 8, 13, 40])
@pytest.mark.parametrize(
    "text", [f"The key is {SECRET}.", f"{SECRET}{SECRET}", "It ends with tok-12", "tok-tok-tok-"]
)
def test_the_deltas_that_are_told_add_up_to_the_message_that_is_told(
    run_plan: Any, pieces: int, text: str
) -> None:
    masks = Masks()
    done = run_plan({"text": text, "deltas": pieces}, redactor=masks)

    # That they add up is held of all runs; see conftest.
    assert done.events.said("assistant") == [f"assistant: {text.replace(SECRET, '***')}"]
    assert SECRET not in json.dumps(done.events)
    assert masks.held == {}


def test_thinking_and_arguments_are_redacted_too_and_the_tool_gets_the_truth(
    run_plan: Any, tool: Any
) -> None:
    got: Any = []
    reply = {
        "thinking": f"I know {SECRET}.",
        "tool_calls": [{"name": "use", "arguments": {"key": SECRET}}] * 2,
    }
    use = tool("use", lambda key: got.append(key) or f"used {key}")
    done = run_plan(reply, {"text": "{{ last.text }}"}, tools=[use], redactor=Masks())

    assert got == [SECRET] * 2
    assert SECRET not in json.dumps(done.events)
    assert done.events.of("tool_execution_start")[0]["arguments"] == {"key": "***"}
    assert done.events.results() == {"call_1": "used ***", "call_2": "used ***"}
    assert done.session.history[-1]["content"][0]["text"] == f"used {SECRET}"
    assert done.end["text"] == "used ***"
    assert done.end["redactions"] > 0


@pytest.mark.parametrize("error", [{"error": "no", "status": 400}, {"stop": "aborted"}])
def test_what_is_held_of_an_answer_that_breaks_off_is_told(run_plan: Any, error: Any) -> None:
    done = run_plan({"text": "It is tok-12", "deltas": 4, **error}, redactor=Masks())

    assert done.events.said("assistant") == ["assistant: It is tok-12"]
    deltas = [event["delta"]["text"] for event in done.events.of("message_update")]
    assert "".join(deltas) == "It is tok-12"


def test_nothing_of_the_secret_is_told_by_any_event(run_plan: Any, tool: Any, calls: Any) -> None:
    def work(update: Any, cancellation: Any) -> str:
        update({"line": SECRET})
        raise ValueError(f"bad key {SECRET}")

    def blocks(call: Any) -> Any:
        return {"block": True, "reason": f"no {SECRET}"} if call["tool_name"] == "rm" else None

    done = run_plan(
        calls("work", "rm", SECRET),
        {"text": "x", "error": f"denied for {SECRET}", "status": 400},
        prompt=f"Use {SECRET}.",
        tools=[tool("work", work, told=True), tool("rm", lambda: "x")],
        hooks=Hooks(before_tool_call=blocks),
        redactor=Masks(),
        before=lambda run: run.steer(f"Or {SECRET}."),
    )

    assert SECRET not in json.dumps(done.events)
    assert done.end["error"] == "denied for ***"


def test_the_digests_are_those_of_what_is_shown(run_plan: Any, tool: Any) -> None:
    def digests(secret: str) -> Any:
        look = tool("look", lambda: "x", description=f"Needs {secret}.")
        done = run_plan(
            {"text": "Hi."},
            prompt=f"Use {secret}.",
            system_prompt=f"Never say {secret}.",
            tools=[look],
            redactor=Masks(secret),
        )
        [request] = done.events.of("model_request")
        keys = ("context_digest", "system_digest", "tools_digest")
        return [request[key] for key in keys]

    assert digests("one-secret") == digests("another-one")


def test_without_deltas_nothing_is_held_back(run_plan: Any) -> None:
    masks = Masks()
    done = run_plan({"text": f"{SECRET}.", "deltas": 3}, redactor=masks, deltas=False)

    assert done.events.of("message_update") == []
    assert done.events.said("assistant") == ["assistant: ***."]
    assert masks.held == {}
