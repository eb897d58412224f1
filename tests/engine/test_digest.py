"""What is sent to a model: its digests, and how it differs from what was sent before."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from runner.engine.digest import ContextDigest
from runner.engine.hook import Hooks
from runner.engine.limit import Limits

BYE = {"text": "Bye."}


def requests(watched: Any) -> Any:
    return watched.events.of("model_request")


def canonical(value: Any) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()


def digest(value: Any) -> str:
    return hashlib.sha256(canonical(value)).hexdigest()


SENT = ("role", "content", "tool_call_id", "tool_name", "is_error")


def from_scratch(messages: Any, **rest: Any) -> str:
    """The digest of a context, made of all of it at once."""
    sent = [{key: m[key] for key in SENT if key in m} for m in messages]
    whole = {"provider": "scripted", "model": "scripted", "parameters": {}, "system": ""}
    return digest(whole | {"tools": []} | rest | {"messages": sent})


def test_the_digests_are_those_of_all_that_is_sent(
    watch: Any, tool: Any, calls: Any, model: Any
) -> None:
    numbers = iter(range(10))
    look = tool("look", lambda: f"ünï {next(numbers)}\u2028\ud800")
    asked = model(calls("look", repeat=3), BYE, parameters={"temperature": 0.5})
    watched = watch(model=asked, system_prompt="Bé.", tools=[look])
    watched.agent.steer("Steered.")

    watched.prompt("Hello")

    tools = [{"name": "look", "description": "Do it.", "parameters": {"type": "object"}}]
    history = watched.agent.state.messages
    rest = {"system": "Bé.", "tools": tools, "parameters": {"temperature": 0.5}}
    told = [request["context_digest"] for request in requests(watched)]
    lengths = [2, 4, 6, 8]
    expected = []
    for length in lengths:
        messages = json.loads(json.dumps(history[:length]).replace("\\ud800", "\\\\ud800"))
        text = canonical(
            {"messages": [{k: m[k] for k in SENT if k in m} for m in messages]}
            | {"provider": "scripted", "model": "scripted"}
            | rest
        ).decode()
        text = text.replace("\u2028", "\\u2028").replace("\\\\ud800", "\\ud800")
        expected.append(hashlib.sha256(text.encode()).hexdigest())
    assert told == expected
    assert {request["system_digest"] for request in requests(watched)} == {digest("Bé.")}
    assert {request["tools_digest"] for request in requests(watched)} == {digest(tools)}


def test_the_same_thing_has_the_same_digests_and_another_has_others(
    watch: Any, tool: Any, model: Any
) -> None:
    def digests(prompt: str = "Hello", **options: Any) -> tuple[str, ...]:
        watched = watch(BYE, **options)
        watched.prompt(prompt)
        [request] = requests(watched)
        keys = ("context_digest", "system_digest", "tools_digest")
        return tuple(request[key] for key in keys)

    same = digests()
    context, system, tools = same
    assert digests() == same
    for other, system_differs, tools_differ in (
        (digests("Hi"), False, False),
        (digests(system_prompt="Be."), True, False),
        (digests(tools=[tool("look", lambda: "")]), False, True),
        (digests(model=model(BYE, id="other")), False, False),
        (digests(model=model(BYE, parameters={"temperature": 1})), False, False),
        (digests(output_schema={"type": "object"}), False, False),
    ):
        assert other[0] != context
        assert (other[1] != system, other[2] != tools) == (system_differs, tools_differ)


@pytest.mark.parametrize(
    "change",
    [
        lambda messages: messages[1:],
        lambda messages: messages[-2:],
        lambda messages: [messages[0], *messages[2:]],
        lambda messages: [{**m, "content": list(m["content"])} for m in messages],
        lambda messages: list(reversed(messages)),
        lambda messages: messages if len(messages) % 4 else messages[:1],
        lambda messages: [*messages, {"role": "user", "text": str(len(messages))}],
    ],
)
def test_kept_up_to_date_they_are_what_they_are_from_scratch(
    watch: Any, tool: Any, calls: Any, change: Any
) -> None:
    from runner.engine.message import as_message

    contexts: Any = []

    def keep(messages: Any) -> Any:
        contexts.append([m if "id" in m else as_message(m) for m in change(messages)])
        return change(messages)

    numbers = iter(range(20))
    watched = watch(
        calls("look", repeat=6),
        BYE,
        tools=[tool("look", lambda: str(next(numbers)))],
        hooks=Hooks(transform_context=keep),
    )

    watched.prompt("Hello")

    tools = [{"name": "look", "description": "Do it.", "parameters": {"type": "object"}}]
    expected = [from_scratch(messages, tools=tools) for messages in contexts]
    assert [request["context_digest"] for request in requests(watched)] == expected
    before: list[str] = []
    for request, messages in zip(requests(watched), contexts, strict=True):
        now = [message["id"] for message in messages]
        assert request["context_change"] == {
            "added": [i for i in now if i not in before],
            "dropped": [i for i in before if i not in now],
        }
        before = now


def test_what_joins_and_leaves_the_context_is_told(watch: Any) -> None:
    watched = watch({"text": "no", "error": "no", "status": 400}, BYE, {"text": "Again."})

    watched.prompt("One")
    watched.prompt("Two")
    watched.agent.reset()
    watched.prompt("Three")

    assert [request["context_change"] for request in requests(watched)] == [
        {"added": ["m1"], "dropped": []},
        {"added": ["m3"], "dropped": []},
        {"added": ["m5"], "dropped": ["m1", "m3"]},
    ]


class Counting:
    """A redactor that finds nothing and counts how much it was shown."""

    count = 0

    def __init__(self) -> None:
        self.messages = 0

    def value(self, value: Any) -> Any:
        if isinstance(value, dict) and "role" in value and "id" not in value:
            self.messages += 1
        return value

    def delta(self, key: Any, text: str) -> str:
        return text

    def rest(self, key: Any) -> str:
        return ""


def test_a_message_is_looked_at_once_however_often_it_is_sent(
    run_plan: Any, tool: Any, calls: Any
) -> None:
    seen = Counting()
    numbers = iter(range(100))
    done = run_plan(
        calls("look", repeat=99),
        BYE,
        tools=[tool("look", lambda: str(next(numbers)))],
        redactor=seen,
        limits=Limits(turns=None),
    )

    assert len(done.events.of("model_request")) == 100
    assert seen.messages == 199


class Watched(list[Any]):
    """A list that tells how much of it was looked at."""

    looked_at = 0

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        self.looked_at += len(found) if isinstance(place, slice) else 1
        return found


def test_a_request_costs_what_is_new_in_it() -> None:
    digest, history = ContextDigest(), Watched()
    for number in range(1000):
        history.append({"id": f"m{number}", "role": "user", "content": []})
        digest.of(history, {}, None)
        added = digest.change(history)
        assert added == {"added": [f"m{number}"], "dropped": []}
    # Once for the digest, once for what has changed.
    assert history.looked_at <= 2 * 1000 + 2

    again = ContextDigest()
    assert again.of(list(history), {}, None) == digest.of(history, {}, None)
