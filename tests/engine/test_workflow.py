"""Chains of tasks in one conversation: conditions, repetitions, items, outputs, expectations."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runner.engine.hook import Hooks
from runner.engine.limit import Limits, MadeCall
from runner.engine.plan import Expectation, OutputCheck, Repeat, Task, TaskResult, Verdict
from runner.error import TemplateError

ECHO = {"text": "got {{ last.text }}", "repeat": "forever"}
FAIL = {"text": "par", "error": "no", "status": 400}


def say(text: str) -> Any:
    """A prompt that uses ``item`` and the text of ``main``."""

    def prompt(scope: Any) -> str:
        main = scope["tasks"].get("main", TaskResult())
        return text.format(item=scope.get("item"), main=main.text)

    return prompt


def broken(scope: Any) -> Any:
    raise TemplateError("no such name")


def met(kind: str, passed: bool = True, seen: Any = None) -> Expectation:
    async def check(finished: Any) -> Verdict:
        if seen is not None:
            seen.append(finished)
        return Verdict(passed, "as it is")

    return Expectation(kind, check)


def test_tasks_follow_each_other_in_one_conversation(run_plan: Any) -> None:
    tasks = [Task("short", say("In short: {main}")), Task("last", say("Bye."))]
    done = run_plan(ECHO, plan={"tasks": tasks})

    assert done.tasks() == [
        "start main 1",
        "end main 1 ok: got Hello",
        "start short 1",
        "end short 1 ok: got In short: got Hello",
        "start last 1",
        "end last 1 ok: got Bye.",
    ]
    assert done.events.types("message_start", "message_end") == [
        "run_start",
        "agent_start",
        *["task_start", "turn_start", "turn_end", "task_end"] * 3,
        "agent_end",
        "run_end",
    ]
    assert (done.end["text"], done.end["output"], done.end["turns"]) == ("got Bye.", None, 3)


def test_follow_ups_belong_to_the_task_that_was_running(run_plan: Any) -> None:
    done = run_plan(ECHO, plan={"tasks": [Task("last", say("Bye."))], "follow_ups": ["F1", "F2"]})

    assert done.tasks() == [
        "start main 1",
        "end main 1 ok: got F2",
        "start last 1",
        "end last 1 ok: got Bye.",
    ]
    assert [e["source"] for e in done.events.of("message_queued")] == ["spec", "spec"]


def test_a_task_whose_condition_is_false_is_skipped(run_plan: Any) -> None:
    seen: Any = []

    def later(scope: Any) -> bool:
        seen.append(scope["tasks"]["bug"].status)
        return True

    tasks = [
        Task("bug", say("Fix it."), when=lambda scope: False, when_text="'bug' in text"),
        Task("after", say("Go on."), when=later),
    ]
    done = run_plan(ECHO, plan={"tasks": tasks})

    [skipped] = done.events.of("task_end", task_id="bug")
    assert (skipped["status"], skipped["skipped"]) == (
        "skipped",
        "its condition is false: 'bug' in text",
    )
    assert seen == ["skipped"]
    assert (done.end["status"], done.end["text"]) == ("ok", "got Go on.")


def test_a_task_is_repeated_until_its_condition_holds(run_plan: Any) -> None:
    repeat = Repeat(lambda scope: "DONE" in scope["task"].text, 5)
    script = ({"text": "x"}, {"text": "not yet"}, {"text": "all DONE"}, ECHO)
    tasks = [Task("try", say("Try."), repeat=repeat), Task("end", say("Bye."))]
    done = run_plan(*script, plan={"tasks": tasks})

    assert done.tasks()[2:6] == [
        "start try 1",
        "end try 1 ok: not yet",
        "start try 2",
        "end try 2 ok: all DONE",
    ]


def test_one_that_never_holds_ends_with_a_warning(run_plan: Any) -> None:
    done = run_plan(
        ECHO, plan={"tasks": [Task("try", say("Try."), repeat=Repeat(lambda scope: False, 2))]}
    )

    ends = done.events.of("task_end", task_id="try")
    assert [e.get("warning") for e in ends] == [
        None,
        "its condition was not met in 2 iterations",
    ]
    assert done.end["status"] == "ok"


def test_for_each_item_a_task_has_an_iteration(run_plan: Any) -> None:
    seen: Any = []

    def last(scope: Any) -> bool:
        seen.append(scope["tasks"]["read"])
        return True

    tasks = [
        Task("read", say("Read {item}."), for_each=lambda scope: ["a", 2, None]),
        Task("last", say("Bye."), when=last),
    ]
    done = run_plan(ECHO, plan={"tasks": tasks})

    lines = done.events.of("task_start", "task_end", task_id="read")
    assert [(e["iteration"], e["item"]) for e in lines] == [
        (n + 1, item) for n, item in enumerate(["a", 2, None]) for _ in range(2)
    ]
    text = "got Read a.\ngot Read 2.\ngot Read None."
    assert seen == [TaskResult(text, [None] * 3, "ok")]


def test_a_task_for_no_item_is_skipped(run_plan: Any) -> None:
    done = run_plan(ECHO, plan={"tasks": [Task("read", say("x"), for_each=lambda scope: [])]})

    assert done.events.of("task_end", task_id="read")[0]["skipped"] == "there is no item"
    assert done.end["text"] == "got Hello"


def test_the_text_of_a_run_is_that_of_all_items_of_its_last_task(run_plan: Any) -> None:
    tasks = [Task("read", say("{item}"), for_each=lambda scope: ["a", "b"])]

    assert run_plan(ECHO, plan={"tasks": tasks}).end["text"] == "got a\ngot b"


# --- errors ---------------------------------------------------------------------------------------


def test_a_task_that_fails_ends_the_run(run_plan: Any) -> None:
    tasks = [Task("risky", say("Risk it.")), Task("after", say("After."))]
    done = run_plan({"text": "x"}, FAIL, ECHO, plan={"tasks": tasks})

    assert done.tasks()[-1] == "end risky 1 error: par"
    assert (done.end["status"], done.end["exit_code"], done.end["error"]) == ("error", 3, "no")


def test_one_that_may_fail_is_followed_by_the_next_in_a_new_start_of_the_agent(
    run_plan: Any,
) -> None:
    tasks = [Task("risky", say("Risk it."), on_error="continue"), Task("after", say("After."))]
    done = run_plan({"text": "x"}, FAIL, ECHO, plan={"tasks": tasks})

    assert done.tasks()[2:] == [
        "start risky 1",
        "end risky 1 error: par",
        "start after 1",
        "end after 1 ok: got After.",
    ]
    assert done.end["status"] == "ok"
    types = done.events.types("message_start", "message_end", "turn_start", "turn_end")
    assert types[-8:] == [
        "task_start",
        "task_end",
        "agent_end",
        "agent_start",
        "task_start",
        "task_end",
        "agent_end",
        "run_end",
    ]
    assert [e["turn"] for e in done.events.of("turn_start")] == [1, 2, 3]


def test_the_last_task_may_fail_too(run_plan: Any) -> None:
    tasks = [Task("risky", say("Risk it."), on_error="continue")]

    done = run_plan({"text": "x"}, FAIL, plan={"tasks": tasks})
    assert (done.end["status"], done.end["text"]) == ("ok", "par")


@pytest.mark.parametrize(("on_error", "ran"), [("stop", ["a", "b"]), ("continue", ["a", "b", "c"])])
def test_an_item_that_fails(run_plan: Any, on_error: Any, ran: Any) -> None:
    seen: Any = []
    tasks = [
        Task("read", say("{item}"), for_each=lambda scope: ["a", "b", "c"], on_error=on_error),
        Task("after", say("."), when=lambda scope: seen.append(scope["tasks"]["read"]) or True),
    ]
    done = run_plan({"text": "x"}, {"text": "one"}, FAIL, ECHO, plan={"tasks": tasks})

    starts = done.events.of("task_start", task_id="read")
    assert [event["item"] for event in starts] == ran
    if on_error == "continue":
        assert seen == [TaskResult("one\npar\ngot c", [None] * 3, "error")]
        assert done.end["status"] == "ok"
    else:
        assert done.end["status"] == "error"


def test_a_hook_that_failed_a_task_does_not_fail_the_next(
    run_plan: Any, tool: Any, calls: Any
) -> None:
    from runner.engine.hook import Hook

    failed: Any = []

    def fails_once(call: Any) -> None:
        if not failed:
            failed.append(1)
            raise ValueError("once")

    tasks = [Task("risky", say("x"), on_error="continue"), Task("after", say("y"))]
    done = run_plan(
        {"text": "x"},
        calls("look"),
        calls("look"),
        ECHO,
        tools=[tool("look", lambda: "seen")],
        hooks=Hooks(before_tool_call=Hook(fails_once, "fail")),
        plan={"tasks": tasks},
    )

    assert done.tasks()[-1] == "end after 1 ok: got seen"


@pytest.mark.parametrize(
    ("task", "last"),
    [
        (Task("bad", broken), "end main 1 ok: got Hello"),
        (Task("bad", say("x"), when=broken), "end main 1 ok: got Hello"),
        (Task("bad", say("x"), for_each=broken), "end main 1 ok: got Hello"),
        (Task("bad", say("x"), repeat=Repeat(broken, 3)), "end bad 1 error: got x"),
    ],
)
def test_a_template_that_can_not_be_rendered_ends_the_run(
    run_plan: Any, task: Task, last: str
) -> None:
    done = run_plan(ECHO, plan={"tasks": [task]})

    assert done.tasks()[-1] == last
    assert (done.end["status"], done.end["exit_code"]) == ("error", 3)
    assert done.end["error"] == "no such name"


def test_what_escapes_is_a_bug_even_where_a_task_may_fail(run_plan: Any) -> None:
    def buggy(scope: Any) -> bool:
        raise KeyError("bug")

    tasks = [Task("bad", say("x"), repeat=Repeat(buggy, 2), on_error="continue")]
    done = run_plan(ECHO, plan={"tasks": tasks})

    assert (done.end["status"], done.end["exit_code"]) == ("error", 70)
    assert isinstance(done.ended.bug, KeyError)


def test_a_limit_ends_the_chain_where_it_would_go_on(run_plan: Any) -> None:
    tasks = [Task("one", say("1")), Task("never", say("x"), when=lambda scope: False)]

    done = run_plan(ECHO, plan={"tasks": tasks}, limits=Limits(turns=1))
    assert done.tasks() == ["start main 1", "end main 1 ok: got Hello"]
    assert (done.end["status"], done.end["text"]) == ("limit", "got Hello")
    assert run_plan(ECHO, plan={"tasks": tasks}, limits=Limits(turns=2)).end["status"] == "ok"


def test_the_items_that_were_done_are_the_text_of_a_run_that_a_limit_ended(run_plan: Any) -> None:
    tasks = [Task("read", say("{item}"), for_each=lambda scope: ["a", "b", "c"])]
    done = run_plan(ECHO, plan={"tasks": tasks}, limits=Limits(turns=3))

    assert (done.end["status"], done.end["text"]) == ("limit", "got a\ngot b")


def test_an_abort_ends_the_chain(run_plan: Any) -> None:
    def before(run: Any) -> None:
        def listener(event: Any) -> None:
            if event["type"] == "task_start" and event["task_id"] == "one":
                run.abort(2)

        run._emitter.subscribe(listener)

    tasks = [Task("one", say("1"), on_error="continue"), Task("two", say("2"))]
    done = run_plan(ECHO, before=before, plan={"tasks": tasks})

    assert done.tasks()[2:] == ["start one 1", "end one 1 aborted: "]
    assert (done.end["status"], done.end["exit_code"]) == ("aborted", 130)
    assert done.end["error"] == "it was interrupted"


# --- outputs --------------------------------------------------------------------------------------


def read_label(text: str) -> tuple[Any, str | None]:
    try:
        value = json.loads(text)
    except ValueError:
        return None, "it is no JSON"
    return (value, None) if "label" in value else (None, "label is missing")


def test_an_output_that_fits_is_the_output_of_main(run_plan: Any) -> None:
    seen: Any = []
    tasks = [Task("use", say("x"), when=lambda scope: seen.append(scope["tasks"]["main"]) or True)]
    done = run_plan(
        {"text": '{"label": "bug"}'}, ECHO, plan={"output": OutputCheck(read_label), "tasks": tasks}
    )

    assert done.events.of("task_end", task_id="main")[0]["output"] == {"label": "bug"}
    assert seen[0].output == {"label": "bug"}
    assert done.events.of("task_end", task_id="use")[0]["output"] is None
    assert done.end["output"] == {"label": "bug"}


def test_one_that_does_not_fit_is_asked_for_again_before_the_follow_ups(run_plan: Any) -> None:
    script = ({"text": "a bug"}, {"text": "{}"}, {"text": '{"label": 1}'}, {"text": "Bye."})
    done = run_plan(*script, plan={"output": OutputCheck(read_label), "follow_ups": ["F"]})

    users = done.events.said("user")
    assert [text.split(".")[0].split("\n")[0] for text in users] == [
        "user: Hello",
        "user: That answer can't be used: it is no JSON",
        "user: That answer can't be used: label is missing",
        "user: F",
    ]
    assert (done.end["status"], done.end["output"], done.end["text"]) == (
        "ok",
        {"label": 1},
        "Bye.",
    )


def test_when_the_retries_are_used_up_the_run_has_failed(run_plan: Any) -> None:
    done = run_plan(
        {"text": "a bug", "repeat": 2},
        plan={"output": OutputCheck(read_label, retries=1), "tasks": [Task("never", say("x"))]},
    )

    assert (done.end["status"], done.end["exit_code"], done.end["output"]) == ("failed", 1, None)
    assert done.end["error"] == "the answer doesn't fit the output's schema: it is no JSON"
    assert done.tasks() == ["start main 1", "end main 1 failed: a bug"]


# --- expectations ---------------------------------------------------------------------------------


def test_expectations_come_after_the_end_of_what_they_are_held_against(
    run_plan: Any, tool: Any, calls: Any
) -> None:
    of_task: Any = []
    of_run: Any = []
    usage = {"input": 10, "output": 1}
    task = Task("look", say("Look."), expect=[met("one", seen=of_task), met("two")])
    done = run_plan(
        {"text": "x", "usage": usage},
        calls("look", usage=usage),
        {"text": "seen", "usage": usage},
        tools=[tool("look", lambda: "a")],
        plan={"tasks": [task], "expect": [met("whole", seen=of_run)]},
    )

    types = done.events.types("message_start", "message_end")
    assert types[-6:] == [
        "task_end",
        "expectation",
        "expectation",
        "agent_end",
        "expectation",
        "run_end",
    ]
    told = done.events.of("expectation")
    assert [(e["task_id"], e["kind"], e["passed"], e["detail"]) for e in told] == [
        ("look", "one", True, "as it is"),
        ("look", "two", True, "as it is"),
        ("main", "whole", True, "as it is"),
    ]
    [task_seen], [run_seen] = of_task, of_run
    assert (task_seen.task_id, task_seen.text, task_seen.turns) == ("look", "seen", 2)
    assert list(task_seen.calls) == [MadeCall("look", {}, ran=True)]
    assert (task_seen.usage["input"], run_seen.usage["input"]) == (20, 30)
    assert (run_seen.task_id, run_seen.turns, run_seen.cost_usd) == ("main", 3, 0.0)


def test_one_that_is_not_met_fails_the_run_that_is_done(run_plan: Any) -> None:
    task = Task("two", say("2"), expect=[met("first", False), met("second", False)])
    done = run_plan(ECHO, plan={"tasks": [task, Task("three", say("3"))], "expect": [met("last")]})

    assert done.tasks()[-1] == "end three 1 ok: got 3"
    assert (done.end["status"], done.end["exit_code"]) == ("failed", 1)
    assert done.end["error"] == "an expectation was not met: first: as it is (and 1 more)"
    assert [one.verdict.passed for one in done.ended.expected] == [False, False, True]


def test_what_did_not_end_well_is_held_against_nothing(run_plan: Any) -> None:
    seen: Any = []
    tasks = [Task("bad", say("x"), expect=[met("x", seen=seen)])]
    run_plan({"text": "x"}, FAIL, plan={"tasks": tasks, "expect": [met("y", seen=seen)]})

    assert seen == []


@pytest.mark.parametrize(
    ("text", "status", "output"),
    [('{"label": 1}', "ok", {"label": 1}), ("a bug", "failed", None)],
)
def test_an_output_is_looked_at_also_where_a_hook_ends_the_run(
    run_plan: Any, text: str, status: str, output: Any
) -> None:
    done = run_plan(
        {"text": text},
        hooks=Hooks(stop_after_turn=lambda turn: True),
        plan={"output": OutputCheck(read_label)},
    )

    assert (done.end["status"], done.end["output"]) == (status, output)
    assert done.tasks()[-1] == f"end main 1 {status}: {text}"
