from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from runner.hooks.declarative import allow, deny, redact, set_arguments, stop_when, trim, truncate

Message = dict[str, Any]


def say(role: str, text: str) -> Message:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def ask(*ids: str) -> Message:
    calls = [{"type": "tool_call", "id": i, "name": "t", "arguments": {}} for i in ids]
    return {"role": "assistant", "content": calls}


def answer(call: str, text: str = "x") -> Message:
    return {**say("tool_result", text), "tool_call_id": call}


def call(**arguments: Any) -> dict[str, Any]:
    return {"tool_name": "shell", "tool_call_id": "call_1", "arguments": arguments}


def after(*texts: str, details: Any = None) -> dict[str, Any]:
    content: list[Any] = [{"type": "text", "text": text} for text in texts]
    return {**call(), "result": {"content": content, "details": details, "is_error": False}}


# --- trim -----------------------------------------------------------------------------------------


def test_what_fits_stays_as_it_is() -> None:
    messages = [say("user", "a" * 40), say("assistant", "b" * 40)]
    assert trim(20)(messages) == messages
    assert trim(1)([]) == []


def test_the_oldest_go_first_and_the_first_prompt_stays() -> None:
    messages = [say("user", "task"), say("assistant", "b" * 400), say("user", "c" * 40)]
    assert trim(20)(messages) == [messages[0], messages[2]]


def test_the_newest_stays_however_long_it_is() -> None:
    messages = [say("user", "a" * 40), say("user", "b" * 400)]
    assert trim(1)(messages) == [messages[1]]


def test_a_call_stays_or_goes_with_its_results() -> None:
    messages = [
        say("user", "a" * 400),
        ask("1", "2"),
        answer("1", "y" * 400),
        answer("2"),
        say("user", "go on"),
        ask("3"),
        answer("3"),
    ]
    assert trim(60)(messages) == messages[4:]
    assert trim(1)(messages) == messages[5:]


def test_an_image_has_the_size_of_an_image() -> None:
    image = {"type": "image", "mime_type": "image/png", "data": "A" * 4_000_000}
    messages = [say("user", "a"), {"role": "user", "content": [image]}, say("user", "b")]
    assert trim(3000)(messages) == messages


turns = st.lists(
    st.one_of(
        st.text("a", max_size=80).map(lambda text: [say("user", text)]),
        st.text("b", max_size=80).map(lambda text: [say("assistant", text)]),
        st.integers(1, 3).map(
            lambda n: [ask(*map(str, range(n))), *map(answer, map(str, range(n)))]
        ),
    ),
    min_size=1,
)


@given(turns, st.integers(1, 120))
def test_a_trimmed_context_is_one_that_a_model_takes(groups: Any, room: int) -> None:
    messages = [message for group in groups for message in group]
    kept = trim(room)(messages)
    assert kept[-1] is messages[-1]
    assert kept[0]["role"] != "tool_result"
    open_calls: list[str] = []
    for message in kept:
        if message["role"] == "tool_result":
            open_calls.remove(message["tool_call_id"])
        else:
            assert not open_calls
            open_calls = [b["id"] for b in message["content"] if b["type"] == "tool_call"]
    assert not open_calls
    positions = [next(n for n, m in enumerate(messages) if m is one) for one in kept]
    assert positions == sorted(positions)


# --- before a call --------------------------------------------------------------------------------


def test_deny_blocks_its_tool_where_its_condition_holds() -> None:
    def asks_rm(names: Any) -> bool:
        return "rm " in names["args"]["command"]

    hook = deny("shell", "No deleting.", asks_rm)
    assert hook(call(command="rm -r x")) == {"block": True, "reason": "No deleting."}
    assert hook(call(command="ls")) is None
    assert deny("she*", None, None)(call()) == {"block": True, "reason": "shell is denied"}
    assert deny("other", None, None)(call()) is None


def test_allow_passes_its_tool() -> None:
    assert allow("shell", None)(call()) == {"allow": True}
    assert allow("shell", lambda _: False)(call()) is None
    assert allow("other", None)(call()) is None


def test_set_lays_arguments_over() -> None:
    hook = set_arguments("shell", {"units": "metric"}, None)
    given_arguments = {"city": "rome", "units": "other"}
    assert hook(call(**given_arguments)) == {"arguments": {"city": "rome", "units": "metric"}}
    assert given_arguments["units"] == "other"
    assert hook(call(units="metric")) is None
    assert set_arguments("other", {"a": 1}, None)(call()) is None


# --- after a call ---------------------------------------------------------------------------------


def test_redact_replaces_in_texts_and_details() -> None:
    hook = redact(r"sk-\w+", r"[key]\1")
    assert hook(after("a sk-abc", "sk-d", details={"k": ["sk-e", 1]})) == {
        "content": [
            {"type": "text", "text": r"a [key]\1"},
            {"type": "text", "text": r"[key]\1"},
        ],
        "details": {"k": [r"[key]\1", 1]},
    }
    assert hook(after("nothing")) is None


def test_truncate_keeps_the_beginning_and_tells_how_much_is_gone() -> None:
    hook = truncate(100)
    decided = hook(after("x" * 60, "y" * 60))
    assert decided is not None
    assert [block["text"] for block in decided["content"]] == [
        "x" * 60,
        "y" * 40,
        "\n[… 20 characters are left out]",
    ]
    assert hook(after("x" * 100)) is None


def test_truncate_leaves_images() -> None:
    image = {"type": "image", "mime_type": "image/png", "data": "A" * 500}
    told = after("x" * 20)
    told["result"]["content"].append(image)
    decided = truncate(10)(told)
    assert decided is not None
    assert image in decided["content"]


def test_a_turn_may_be_the_last() -> None:
    hook = stop_when(lambda names: "DONE" in names["turn"]["text"])
    assert hook({"text": "DONE"})
    assert not hook({"text": "more"})
