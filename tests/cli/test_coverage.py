"""`pi-run coverage`: what of a spec no log ever exercised."""

import itertools
import json
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.api import RunOptions, run_spec
from runner.api.coverage_items import KINDS, Item
from runner.api.spec_coverage import Coverage, coverage
from runner.bundled import folder as bundled
from runner.cli.coverage import command
from runner.views.coverage import missing, percent_of

PiRun = Callable[..., Any]
WriteSpec = Callable[..., Path]

HEAD = """\
version: 1
inputs: {n: {type: integer, default: 1}}
prompt: Go.
"""
ECHO = """\
tools:
  - name: echo
    description: Say it.
    parameters: {type: object, properties: {text: {type: string}}}
    command: [echo, "{{ args.text }}"]
  - {name: other, description: Another., command: [echo]}
"""


def model(*replies: str) -> str:
    """A model that says this."""
    return (
        f"model: {{provider: scripted, retry: {{attempts: 1}}, script: [{', '.join(replies)}]}}\n"
    )


def call(text: str, name: str = "echo") -> str:
    return f"{{tool_calls: [{{name: {name}, arguments: {{text: {text}}}}}]}}"


def left_out(found: Coverage) -> dict[str, list[str]]:
    """The parts that were not exercised, by the item's path."""
    items: Iterator[Item] = itertools.chain(*(spec.items for spec in found.specs))
    return {item.path: item.missing for item in items if item.missing}


@pytest.fixture
def covered(spec: WriteSpec) -> Callable[..., dict[str, list[str]]]:
    """Runs a spec, once for each value of `n`; what was not exercised."""
    numbers = itertools.count()

    def run(text: str, *values: int) -> dict[str, list[str]]:
        path, logs = spec(text=HEAD + text), []
        for n in values or (1,):
            logs.append(f"run-{next(numbers)}.jsonl")
            run_spec(path, inputs={"n": n}, options=RunOptions(log=logs[-1]))
        return left_out(coverage(str(path), logs))

    return run


Covered = Callable[..., dict[str, list[str]]]

# --- each kind ------------------------------------------------------------------------------------


def test_a_tool_is_exercised_where_a_call_of_it_ran(covered: Covered) -> None:
    denied = "permissions: {deny: [echo]}\n"
    bad = "{tool_calls: [{name: echo, arguments: '['}, {name: nobody}]}"

    assert covered(model(call("a"), "{text: a}") + ECHO) == {"tools[1]": ["ran"]}
    assert "tools[0]" in covered(model(bad, "{text: a}") + ECHO)
    assert "tools[0]" in covered(model(call("a"), "{text: a}") + ECHO + denied)


def test_a_built_in_and_a_function_are_known_by_their_names(covered: Covered, folder: Path) -> None:
    (folder / "tools.py").write_text(
        'import runner\n\n\n@runner.tool(name="renamed", description="It.")\n'
        "def own() -> str:\n    return ''\n",
        encoding="utf-8",
    )
    tools = "tools: [{use: read_file, name: read}, {python: 'tools.py:own'}]\n"

    assert covered(model("{tool_calls: [{name: renamed}]}", "{text: a}") + tools) == {
        "tools[0]": ["ran"]
    }


def test_a_fallback_is_exercised_where_it_was_asked(covered: Covered) -> None:
    text = """\
model:
  provider: scripted
  retry: {attempts: 1}
  script: [{error: busy, status: 503}]
  fallback:
    - {provider: scripted, id: one, script: [{text: a}]}
    - {provider: scripted, id: two, script: [{text: a}]}
"""

    assert covered(text) == {"model.fallback[1]": ["asked"]}


def test_a_limit_is_exercised_where_it_was_reached(covered: Covered) -> None:
    text = model(call("a"), "{text: a}") + ECHO + "limits: {turns: 1, tokens: 9, cost_usd: null}\n"

    found = covered(text)

    assert "limits.turns" not in found
    assert found["limits.tokens"] == ["reached"]
    assert "limits.cost_usd" not in found


def test_the_depth_is_a_limit_too(covered: Covered, spec: WriteSpec) -> None:
    spec("agent.yaml")
    text = model("{tool_calls: [{name: agent}]}", "{text: a}") + "tools: [{agent: agent.yaml}]\n"

    assert covered(text + "limits: {depth: 0}\n") == {}
    assert covered(text + "limits: {depth: 1}\n") == {"limits.depth": ["reached"]}


HOOKS = """\
hooks:
  before_tool_call:
    - {deny: {tool: echo, when: "'rm' in args.text", reason: No.}}
    - {set: {tool: echo, args: {text: b}, when: "args.text == 'a'"}}
    - {allow: {tool: echo}}
    - {deny: {tool: "*"}}
  after_tool_call: [{truncate: {max_chars: 9}}]
"""


@pytest.mark.parametrize(
    ("calls", "exercised"),
    [
        ([], {}),
        (["x"], {0: ["false"], 1: ["false"], 2: ["asked"]}),
        (["rm"], {0: ["true"]}),
        (["a"], {0: ["false"], 1: ["true"], 2: ["asked"]}),
        (["a", "rm", "x"], {0: ["true", "false"], 1: ["true", "false"], 2: ["asked"]}),
    ],
)
def test_a_hook_is_exercised_as_far_as_calls_came(
    calls: list[str], exercised: dict[int, list[str]], covered: Covered
) -> None:
    found = covered(model(*map(call, calls), "{text: a}") + ECHO + HOOKS)

    parts = [["true", "false"], ["true", "false"], ["asked"], ["asked"]]
    left = {n: [p for p in part if p not in exercised.get(n, [])] for n, part in enumerate(parts)}
    assert [found.get(f"hooks.before_tool_call[{n}]", []) for n in range(4)] == list(left.values())
    ran = any(text != "rm" for text in calls)
    assert ("hooks.after_tool_call[0]" in found) is not ran


def test_the_last_deny_is_asked_where_nothing_allows(covered: Covered) -> None:
    found = covered(model("{tool_calls: [{name: other}]}", "{text: a}") + ECHO + HOOKS)

    assert "hooks.before_tool_call[3]" not in found
    assert found["hooks.before_tool_call[2]"] == ["asked"]
    assert found["tools[1]"] == ["ran"]


def test_permissions_are_asked_before_hooks(covered: Covered) -> None:
    hooks = "hooks: {before_tool_call: [{deny: {tool: never}}, {command: [ls]}]}\n"
    rules = "permissions: {allow: [nobody], deny: [echo]}\n"

    found = covered(model(call("a"), "{text: a}") + ECHO + hooks + rules)

    assert found["hooks.before_tool_call[1]"] == ["asked"]
    assert found["permissions.allow[0]"] == ["applied"]
    assert "permissions.deny[0]" not in found


@pytest.mark.parametrize(
    ("made", "left"),
    [
        ([], ["allow[0]", "allow[1]", "ask[0]", "deny[0]"]),
        (["a"], ["allow[1]", "ask[0]", "deny[0]"]),
        (["bb"], ["allow[0]", "allow[1]", "deny[0]"]),
        (["rm"], ["allow[0]", "allow[1]", "ask[0]"]),
    ],
)
def test_a_rule_is_exercised_where_it_decided(
    made: list[str], left: list[str], covered: Covered
) -> None:
    rules = 'permissions: {allow: ["echo(a)", other], ask: [echo], deny: ["echo(rm*)"]}\n'

    found = covered(model(*map(call, made), "{text: a}") + ECHO + rules)

    assert [path for path in found if path.startswith("permissions")] == [
        f"permissions.{one}" for one in left
    ]


STOP = "hooks: {stop_after_turn: [{when: \"'DONE' in turn.text\"}]}\n"


@pytest.mark.parametrize(
    ("replies", "more", "left"),
    [
        (["{text: DONE}"], "", ["false"]),
        (["{text: a}"], "", ["true"]),
        ([call("a"), "{text: DONE}"], ECHO, []),
        (["{text: DONE, tool_calls: [{name: echo}]}"], ECHO, ["false"]),
        (["{text: a}", "{text: DONE}"], "follow_ups: {messages: [{text: More}]}\n", []),
        (["{error: gone, status: 404}"], "", ["true", "false"]),
        ([call("a")], ECHO + "limits: {turns: 1}\n", ["true"]),
    ],
)
def test_a_stop_is_exercised_both_ways(
    replies: list[str], more: str, left: list[str], covered: Covered
) -> None:
    found = covered(model(*replies) + more + STOP)

    assert found.get("hooks.stop_after_turn[0]", []) == left


def test_a_supplier_is_asked_and_gives_messages(covered: Covered, folder: Path) -> None:
    (folder / "queue.py").write_text(
        "left = ['More.']\n\n\ndef some():\n    return [left.pop()] if left else []\n\n\n"
        "def none():\n    return []\n",
        encoding="utf-8",
    )
    text = model("{text: a, repeat: forever}")
    hooks = "hooks: {%s: [{python: 'queue.py:%s'}], transform_context: [{trim: {max_tokens: 9}}]}\n"

    assert covered(text + hooks % ("follow_up_messages", "some")) == {}
    assert covered(text + hooks % ("steering_messages", "none")) == {
        "hooks.steering_messages[0]": ["gave"]
    }
    assert covered(text + hooks % ("follow_up_messages", "none")) == {
        "hooks.follow_up_messages[0]": ["gave"]
    }


def test_messages_are_exercised_where_they_were_taken(covered: Covered) -> None:
    queues = """\
steering:
  messages:
    - {after_tool: echo, text: "Use {{ inputs.n }}."}
    - {after_turn: 1, text: Hurry.}
    - {after_turn: 7, text: Late.}
follow_ups: {messages: [{text: More.}, {text: More.}, {text: Never.}]}
limits: {turns: 4}
"""

    found = covered(model(call("a"), "{text: a}", "{text: b}", "{text: c}") + ECHO + queues)

    assert [path for path in found if "messages" in path] == [
        "steering.messages[2]",
        "follow_ups.messages[2]",
    ]


TASKS = """\
follow_ups:
  tasks:
    - {id: plain, prompt: A}
    - {id: cond, prompt: B, when: inputs.n > 1, expect: [{contains: a}]}
    - {id: each, prompt: "{{ item }}", for_each: range(inputs.n) | list}
    - {id: loop, prompt: C, repeat: {until: inputs.n == 1, max: 2}}
"""


@pytest.mark.parametrize(
    ("values", "left"),
    [
        ([1], {1: ["true"], 2: ["none", "several"], 3: ["full"]}),
        ([0], {1: ["true"], 2: ["one", "several"], 3: ["met"]}),
        ([2], {1: ["false"], 2: ["none", "one"], 3: ["met"]}),
        ([0, 1, 2], {}),
    ],
)
def test_tasks_are_exercised_in_all_that_may_become_of_them(
    values: list[int], left: dict[int, list[str]], covered: Covered
) -> None:
    found = covered(model("{text: a, repeat: forever}") + TASKS, *values)

    held = {} if 2 in values else {"follow_ups.tasks[1].expect[0]": ["held"]}
    assert found == {f"follow_ups.tasks[{n}]": parts for n, parts in left.items()} | held


def test_a_task_that_was_never_come_to_is_missing_as_a_whole(covered: Covered) -> None:
    found = covered(model("{text: a}") + TASKS)

    assert "follow_ups.tasks[0]" not in found
    assert found["follow_ups.tasks[2]"] == ["none", "one", "several"]
    assert found["follow_ups.tasks[3]"] == ["met", "full"]


def test_going_on_after_an_error_is_a_part(covered: Covered) -> None:
    tasks = "follow_ups: {tasks: [{id: bad, prompt: A, on_error: continue}]}\n"

    assert covered(model("{text: a}", "{error: gone, status: 404}") + tasks) == {}
    assert covered(model("{text: a}", "{text: b}") + tasks) == {"follow_ups.tasks[0]": ["failed"]}


def test_expectations_and_outputs_are_exercised_where_they_were_held(
    covered: Covered, folder: Path
) -> None:
    text = """\
output: {schema: {type: object}, retries: 0}
expect: [{contains: "{"}, {contains: nothing}]
"""

    assert covered(model("{text: '{}'}") + text) == {}
    assert covered(model("{text: a}") + text) == {
        "output": ["fitted"],
        "expect[0]": ["held"],
        "expect[1]": ["held"],
    }
    items = {item.path: item for item in coverage("spec.yaml", ["run-0.jsonl"]).specs[0].items}
    assert items["expect[0]"].outcomes == {"passed": True, "failed": False}
    assert items["expect[1]"].outcomes == {"passed": False, "failed": True}


# --- agents ---------------------------------------------------------------------------------------


def test_the_specs_of_agents_are_covered_too(covered: Covered, folder: Path) -> None:
    (folder / "a").mkdir()
    (folder / "b").mkdir()
    agent = "version: 1\nprompt: Go.\n" + ECHO
    (folder / "a/same.yaml").write_text(agent + model(call("a"), "{text: a}"), encoding="utf-8")
    (folder / "b/same.yaml").write_text(
        agent + model("{tool_calls: [{name: other}]}", "{text: a}"), encoding="utf-8"
    )
    text = """\
tools: [{agent: a/same.yaml, name: one}, {agent: b/same.yaml, name: two}]
follow_ups: {tasks: [{id: judge, agent: b/same.yaml, for_each: "[1, 2, 3]"}]}
"""
    calls = "{tool_calls: [{name: one}, {name: two}]}"

    found = covered(model(calls, "{text: a}") + text)
    report = coverage("spec.yaml", ["run-0.jsonl"])

    assert found["follow_ups.tasks[0]"] == ["none", "one"]
    # Both have the same name; they run at the same time.
    by_file = {
        spec.loaded.file: [item.path for item in spec.items if item.missing]
        for spec in report.specs
    }
    assert by_file["b/same.yaml"] == ["tools[0]"]


def test_a_log_of_an_agents_own_spec_counts(pi_run: PiRun, spec: WriteSpec) -> None:
    agent = spec("agent.yaml", text=HEAD + model("{text: a}") + "expect: [{contains: a}]\n")
    top = spec(text=HEAD + model("{text: a}") + "tools: [{agent: agent.yaml}]\n")
    run_spec(agent, options=RunOptions(log="agent.jsonl"))

    assert left_out(coverage(str(top), ["agent.jsonl"])) == {"tools[0]": ["ran"]}


@pytest.mark.parametrize("name", ["hello", "steering", "tools", "parallel_tools"])
def test_examples_exercise_all_of_themselves(name: str, folder: Path) -> None:
    example = bundled("specs") / f"{name}.yaml"
    run_spec(example, options=RunOptions(log="run.jsonl"))

    assert coverage(str(example), ["run.jsonl"]).percent == 100


def test_a_frozen_log_and_one_that_was_resumed_count_alike(pi_run: PiRun, spec: WriteSpec) -> None:
    text = HEAD + model(call("a"), "{text: b, stop: aborted}", "{text: a}") + ECHO + TASKS
    path = spec(text=text)
    pi_run(str(path), "--log", "frozen.jsonl", "--frozen")
    pi_run("resume", "frozen.jsonl")

    found = left_out(coverage(str(path), ["frozen.jsonl"]))

    assert found["tools[1]"] == ["ran"]
    assert "tools[0]" not in found


# --- other versions, other specs ------------------------------------------------------------------


def test_an_older_version_counts_where_the_same_still_stands(
    pi_run: PiRun, spec: WriteSpec
) -> None:
    replies = model(call("a"), "{tool_calls: [{name: other}]}", "{text: a}")
    path = spec(text=HEAD + replies + ECHO + "expect: [{contains: a}, {contains: b}]\n")
    run_spec(path, options=RunOptions(log="old.jsonl"))
    first, second = ECHO.split("  - {name: other")
    moved = f"{first.splitlines()[0]}\n  - {{name: other{second}" + first.partition("\n")[2]
    spec(text="# new\n" + HEAD + replies + moved + "expect: [{contains: b}, {contains: c}]\n")

    done = pi_run("coverage", "spec.yaml", "old.jsonl")

    assert "old.jsonl is of another version of spec.yaml" in done.stderr
    assert "expect[1]: expectation contains c: it was never held" in done.stdout
    assert " 4      1    75%" in done.stdout


def test_a_log_of_another_spec_is_an_error(pi_run: PiRun, spec: WriteSpec) -> None:
    path = spec()
    run_spec(spec("other.yaml"), options=RunOptions(log="other.jsonl"))

    done = pi_run("coverage", str(path), "other.jsonl")

    assert done.returncode == 2
    assert 'other.jsonl is a log of the spec "other", which is none of these: spec' in done.stderr


def test_a_log_of_a_spec_that_has_but_the_name_is_an_error(pi_run: PiRun, spec: WriteSpec) -> None:
    other = spec("else.yaml", text="name: spec\n" + HEAD + model(call("a"), "{text: a}") + ECHO)
    run_spec(other, options=RunOptions(log="else.jsonl"))

    done = pi_run("coverage", str(spec(more="expect: [{contains: a}]\n")), "else.jsonl")

    assert done.returncode == 2
    assert "is a log of another spec of the same name" in done.stderr
    assert "else.yaml: nothing of it stands in" in done.stderr


def test_logs_come_from_folders_and_globs_each_once(pi_run: PiRun, spec: WriteSpec) -> None:
    path = spec(more="expect: [{contains: hello}]\n")
    for log in ("logs/a.jsonl", "logs/deep/b.jsonl"):
        run_spec(path, options=RunOptions(log=log))
    run_spec(spec("other.yaml"), options=RunOptions(log="logs/other.jsonl"))
    Path("logs/data.jsonl").write_text("{}\n", encoding="utf-8")

    done = pi_run("coverage", "spec.yaml", "logs", "logs/**/[ab].jsonl", "--format", "json")

    assert json.loads(done.stdout)["logs"] == ["logs/a.jsonl", "logs/deep/b.jsonl"]
    assert "logs has logs of other specs too, which are left out: other (1)" in done.stderr
    for nothing in ("nothing/*.jsonl", "nothing.jsonl"):
        assert pi_run("coverage", "spec.yaml", nothing).returncode == 2
    Path("empty").mkdir()
    assert "there is no log of spec in it" in pi_run("coverage", "spec.yaml", "empty").stderr


def test_a_log_that_breaks_off_counts_as_far_as_it_goes(pi_run: PiRun, spec: WriteSpec) -> None:
    path = spec(text=HEAD + model(call("a"), "{text: a}") + ECHO)
    run_spec(path, options=RunOptions(log="run.jsonl"))
    data = Path("run.jsonl").read_bytes()
    Path("torn.jsonl").write_bytes(data[: int(len(data) * 0.8)])
    Path("broken.jsonl").write_bytes(data.replace(b'"seq":4', b'"seq":9'))

    torn = pi_run("coverage", str(path), "torn.jsonl")
    broken = pi_run("coverage", str(path), "broken.jsonl")

    assert (torn.returncode, "was cut off by a crash" in torn.stderr) == (0, True)
    assert "tool echo" not in torn.stdout
    assert broken.returncode == 6


@pytest.mark.parametrize("plan", [{}, {"version": 1, "tools": 3}, {"model": "x", "hooks": []}])
def test_a_plan_that_is_no_spec_is_an_error(plan: Any, pi_run: PiRun, spec: WriteSpec) -> None:
    path = spec()
    run_spec(path, options=RunOptions(log="run.jsonl"))
    first, _, rest = Path("run.jsonl").read_text(encoding="utf-8").partition("\n")
    start = json.loads(first) | {"plan": plan, "inputs": {}}
    Path("run.jsonl").write_text(f"{json.dumps(start)}\n{rest}", encoding="utf-8")

    for command_line in (("coverage", str(path), "run.jsonl"), ("script", "run.jsonl")):
        done = pi_run(*command_line)
        assert done.returncode in (0, 6), done.stderr
        assert "bug" not in done.stderr


# --- forms ----------------------------------------------------------------------------------------


def test_the_table_says_what_is_missing_and_where(pi_run: PiRun, spec: WriteSpec) -> None:
    spec("agent.yaml", text=HEAD + model("{text: a}") + "expect: [{contains: a}]\n")
    path = spec(text=HEAD + model(call("a"), "{text: a}") + ECHO + "  - agent: agent.yaml\n")
    run_spec(path, options=RunOptions(log="run.jsonl"))

    done = pi_run("coverage", "spec.yaml", "run.jsonl", "--fail-under", "25")

    assert (
        done.stdout
        == """\
Spec        Parts   Miss  Cover   Missing
-----------------------------------------
spec.yaml       3      2    33%   10, 11
agent.yaml      1      1     0%   5
-----------------------------------------
TOTAL           4      3    25%

spec.yaml:10: tools[1]: tool other: it never ran
spec.yaml:11: tools[2]: tool agent.yaml: it never ran
agent.yaml:5: expect[0]: expectation contains a: it was never held against a run
"""
    )
    assert done.returncode == 0
    failed = pi_run("coverage", "spec.yaml", "run.jsonl", "--fail-under", "25.1")
    assert failed.returncode == 1
    assert "25% of spec.yaml is covered, and 25.1% is asked for" in failed.stderr
    omitted = pi_run("coverage", "spec.yaml", "run.jsonl", "--omit", "tool", "--format", "github")
    assert omitted.stdout.splitlines() == [
        "::warning file=agent.yaml,line=5,col=10::expect[0]: expectation contains a: "
        "it was never held against a run"
    ]


def test_json_has_each_part_with_its_place(pi_run: PiRun, spec: WriteSpec) -> None:
    path = spec(more="expect: [{contains: hello}]\n")
    run_spec(path, options=RunOptions(log="run.jsonl"))

    told = json.loads(pi_run("coverage", "spec.yaml", "run.jsonl", "--format", "json").stdout)

    assert told == {
        "spec": "spec.yaml",
        "logs": ["run.jsonl"],
        "parts": 1,
        "exercised": 1,
        "percent": 100.0,
        "items": [
            {
                "file": "spec.yaml",
                "line": 4,
                "column": 10,
                "path": "expect[0]",
                "kind": "expectation",
                "name": "contains hello",
                "spec": "spec.yaml",
                "parts": {"held": True},
                "passed": True,
                "failed": False,
            }
        ],
    }


def test_a_spec_with_nothing_to_exercise_is_covered(pi_run: PiRun, spec: WriteSpec) -> None:
    run_spec(spec(), options=RunOptions(log="run.jsonl"))

    done = pi_run("coverage", "spec.yaml", "run.jsonl", "--fail-under", "100")

    assert done.returncode == 0
    assert missing(coverage("spec.yaml", ["run.jsonl"]).as_json()) == []


@pytest.mark.parametrize(
    ("percent", "told"), [(0, "0%"), (0.1, "1%"), (49.6, "50%"), (99.9, "99%"), (100, "100%")]
)
def test_no_percentage_says_more_than_is_so(percent: float, told: str) -> None:
    assert percent_of(percent) == told


def test_all_kinds_can_be_left_out() -> None:
    option = next(one for one in command.params if one.name == "omit")

    assert getattr(option.type, "choices", None) == KINDS


# --- long logs ------------------------------------------------------------------------------------


def test_memory_does_not_grow_with_the_log(spec: WriteSpec) -> None:
    spec("agent.yaml")
    more = "follow_ups: {tasks: [{id: all, agent: agent.yaml, for_each: '[1]'}]}\n"
    run_spec(spec(more=more), options=RunOptions(log="run.jsonl"))
    lines = [
        json.loads(line) for line in Path("run.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    first = next(n for n, line in enumerate(lines) if line["type"] == "task_start" and n > 3)
    last = max(n for n, line in enumerate(lines) if line["type"] == "task_end")

    def item(number: int) -> Iterator[dict[str, Any]]:
        for line in lines[first : last + 1]:
            own = {"agent": f"main/agent#{number}"} if "agent" in line else {"iteration": number}
            yield {**line, **own}

    def peak(items: int) -> int:
        """The most bytes that are held while a log with so many items is read."""
        events = itertools.chain(
            lines[:first], *(item(n) for n in range(1, items + 1)), lines[last + 1 :]
        )
        with Path("long.jsonl").open("w", encoding="utf-8") as file:
            file.writelines(json.dumps({**e, "seq": n}) + "\n" for n, e in enumerate(events))
        tracemalloc.start()
        coverage("spec.yaml", ["long.jsonl"])
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(1)
    assert peak(500) < peak(50) * 1.5
