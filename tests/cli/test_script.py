"""`pi-run script`: what a model said in a run, said again by the scripted model."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner.api import RunOptions, check, run_spec
from runner.api.recorded_reply import CallIds, Pieces, reply
from runner.api.scripting import Script, script, written
from runner.bundled import folder as bundled
from runner.engine.message import no_usage
from runner.log.canonical import canonical
from runner.log.read import read
from runner.spec.decode import to_json
from runner.spec.load import load
from runner.spec.template import Template

PiRun = Callable[..., Any]
WriteSpec = Callable[..., Path]

EXAMPLES = [path for path in sorted(bundled("specs").glob("*.yaml")) if "local" not in path.stem]
OF_A_PLAN = frozenset(("spec", "plan"))
"""What the script itself changes in a log."""


def events_of(path: str) -> list[dict[str, Any]]:
    events = list(canonical(event for _, event in read(path)))
    events[0] = {key: value for key, value in events[0].items() if key not in OF_A_PLAN}
    return events


def script_of(pi_run: PiRun, *arguments: str) -> Any:
    """The script of a log, written into script.yaml."""
    done = pi_run("script", *arguments)
    assert done.returncode == 0, done.stderr
    Path("script.yaml").write_text(done.stdout, encoding="utf-8")
    return done


def run(pi_run: PiRun, spec: Path, log: str, *arguments: str) -> Any:
    done = pi_run("run", str(spec), "--log", log, "--quiet", *arguments)
    assert Path(log).exists(), done.stderr
    return done


def hold_that_it_says_the_same(spec: Path) -> str:
    """Run a spec, then again with its own log's script. Gives the script."""
    first = run_spec(spec, options=RunOptions(log="first.jsonl"))
    text = written(script("first.jsonl"))
    Path("script.yaml").write_text(text, encoding="utf-8")
    sets = [("model.provider", "scripted"), ("model.script", "{file: script.yaml}")]
    faults = check(str(spec), RunOptions(sets=sets))
    assert [fault for fault in faults if not fault.warning] == []
    again = run_spec(spec, options=RunOptions(log="again.jsonl", sets=sets))
    assert again.exit_code == first.exit_code
    assert events_of("again.jsonl") == events_of("first.jsonl")
    return text


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.usefixtures("folder")
def test_each_example_runs_the_same_from_its_script(example: Path) -> None:
    hold_that_it_says_the_same(example)


TOOL = """\
prompt: Go on.
tools:
  - name: echo
    description: Say it.
    parameters: {type: object}
    command: [printf, "%s", "{{ args.text }}"]
"""
SCRIPTS = {
    "an answer": "[{text: hello}]",
    "no words": "[{text: ''}]",
    "thinking and pieces": "[{thinking: Let me see., text: Hello there, deltas: 4}]",
    "a template that is text": "[{text: \"{{ '{{' }} inputs.x }} {{ '{%' }} if\"}]",
    "a template and a CR": "[{text: \"{{ '{{ a }}' }}\\r\\n{{ '{%' }} raw %}{{ '{' }}\\r\"}]",
    "calls": "[{tool_calls: [{name: echo, arguments: {text: a}}, {name: nobody}]}, {text: done}]",
    "ids": "[{tool_calls: [{name: echo, id: call_2}, {name: echo, id: x}]}, "
    "{tool_calls: [{name: echo, arguments: {text: b}}]}, {text: done}]",
    "raw arguments": "[{tool_calls: [{name: echo, arguments: '{\"text\": 1'}]}, "
    '{tool_calls: [{name: echo, arguments: \'{"text" : "a"}\'}, {name: echo, arguments: ""}]}, '
    "{text: done}]",
    "numbers": "[{tool_calls: [{name: echo, arguments: {a: 1.0, b: 1e+30, c: -0.0, d: '1.10'}}]}, "
    "{text: '010'}]",
    "usage": "[{text: a, usage: {input: 20, output: 6, cache_read: 3, reasoning: 2}}]",
    "retries": "[{error: overloaded, status: 529, times: 2}, {text: hello}]",
    "a retry after content": "[{text: par, error: gone, status: 500}, {text: whole}]",
    "an error that is final": "[{error: no such model, status: 404}]",
    "an error that is not retried": "[{text: so far, error: gone, status: 500, stop: error}]",
    "a kind of error": "[{error: timeout}, {error: network}, {text: hello}]",
    "attempts used up": "[{error: busy, status: 503, times: 4}]",
    "cut": "[{text: 'so much', stop: length}]",
    "calls cut": "[{tool_calls: [{name: echo, arguments: {text: a}}], stop: length}, {text: done}]",
    "aborted": "[{text: partial, stop: aborted}]",
    "the same again": "[{tool_calls: [{name: echo, arguments: {text: a}}], repeat: 4}, {text: a}]",
    "exhausted": "[{tool_calls: [{name: echo, arguments: {text: a}}]}]",
    "odd letters": '[{text: "a\\u2028b\\x85c\\0d\\ud800e\\ufefff\\u202eg"}, {text: "yes"}]',
}


@pytest.mark.parametrize("replies", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_a_script_gives_the_same_events(replies: str, spec: WriteSpec) -> None:
    # Retries wait, but not for long.
    model = f"model: {{provider: scripted, script: {replies}, retry: {{max_delay: 0.01}}}}\n"

    hold_that_it_says_the_same(spec(text="version: 1\n" + model + TOOL))


def test_it_reads_as_a_person_would_write_it(spec: WriteSpec) -> None:
    text = """\
version: 1
model:
  provider: scripted
  retry: {max_delay: 0}
  script:
    - {error: overloaded, times: 2}
    - thinking: I look.
      text: "Two lines:\\n\\n  - one\\n"
      tool_calls: [{name: echo, arguments: {text: "yes", n: "1.10"}}]
      usage: {input: 3}
    - {tool_calls: [{name: echo}], repeat: 2}
    - text: "Cost: 3 # USD"
prompt: Go
tools:
  - {name: echo, description: Say it., command: [echo]}
"""

    assert (
        hold_that_it_says_the_same(spec(text=text))
        == """\
# What the model of spec says: an entry a model call.
- {error: overloaded, times: 2}
- thinking: I look.
  text: |
    Two lines:

      - one
  tool_calls: [{name: echo, arguments: {text: yes, n: "1.10"}}]
  usage: {input: 3}
- tool_calls: [{name: echo}]
  repeat: 2
- text: "Cost: 3 # USD"
"""
    )


# --- other models ---------------------------------------------------------------------------------


def test_a_fallback_model_has_a_script_of_its_own(pi_run: PiRun, spec: WriteSpec) -> None:
    text = """\
version: 1
model:
  provider: scripted
  retry: {attempts: 2, max_delay: 0}
  script: [{error: busy, status: 503, repeat: 2}, {error: no key, status: 401}]
  fallback:
    - {provider: scripted, id: other, script: [{text: I stand in., repeat: 2}]}
"""
    path = spec(text=text + TOOL + "follow_ups: {messages: [{text: More}]}\n")
    run(pi_run, path, "first.jsonl")
    first = script_of(pi_run, "first.jsonl")
    Path("script.yaml").rename("main.yaml")
    script_of(pi_run, "first.jsonl", "--fallback", "0")
    sets = ("model.script={file: main.yaml}", "model.fallback[0].script={file: script.yaml}")
    run(pi_run, path, "again.jsonl", "--set", sets[0], "--set", sets[1])

    assert "model.fallback[0] of main has a script of its own: --fallback 0" in first.stderr
    assert events_of("again.jsonl") == events_of("first.jsonl")


def test_a_fallback_that_was_not_asked_is_an_error(pi_run: PiRun, spec: WriteSpec) -> None:
    run(pi_run, spec(), "run.jsonl")

    done = pi_run("script", "run.jsonl", "--fallback", "0")

    assert done.returncode == 2
    assert "the fallback model 0 was not asked; no fallback model was" in done.stderr


def test_an_agent_has_a_script_of_its_own(pi_run: PiRun, spec: WriteSpec) -> None:
    agent = spec("reader.yaml")
    more = "follow_ups: {tasks: [{id: read, agent: reader.yaml, for_each: '[1, 2]'}]}\n"
    run(pi_run, spec(more=more), "run.jsonl")

    main = script_of(pi_run, "run.jsonl")
    other = script_of(pi_run, "run.jsonl", "--agent", "main/reader#2")

    assert "main/reader#1, main/reader#2 have scripts of their own: --agent main/reader#1" in (
        main.stderr
    )
    assert other.stdout.endswith("- text: hello\n")
    assert pi_run("check", str(agent), "--set", "model.script={file: script.yaml}").returncode == 0


def test_an_unknown_agent_is_an_error(pi_run: PiRun, spec: WriteSpec) -> None:
    run(pi_run, spec(), "run.jsonl")

    done = pi_run("script", "run.jsonl", "--agent", "reader#1")

    assert done.returncode == 2
    assert "run.jsonl: no agent reader#1 asked its model; known: main" in done.stderr


# --- logs -----------------------------------------------------------------------------------------


def test_a_log_is_found_by_its_name(pi_run: PiRun, spec: WriteSpec) -> None:
    assert pi_run(str(spec())).returncode == 0
    log = next(Path(".pi-run/logs").glob("*.jsonl"))
    start = json.loads(log.read_text(encoding="utf-8").partition("\n")[0])

    for name in ("last", start["run_id"], start["run_id"][:6], str(log)):
        assert "- text: hello" in pi_run("script", name).stdout
    assert pi_run("script", "nothing.jsonl").returncode == 2


def edit(log: str, change: Callable[[dict[str, Any]], Any], into: str) -> None:
    """Change each event of a log; one that becomes None is the end."""
    lines = []
    for line in Path(log).read_text(encoding="utf-8").splitlines():
        if (event := change(json.loads(line))) is None:
            break
        lines.append(json.dumps(event))
    Path(into).write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_what_a_script_cannot_say_is_named(pi_run: PiRun, spec: WriteSpec) -> None:
    run(pi_run, spec(), "run.jsonl")

    def signed(event: dict[str, Any]) -> dict[str, Any]:
        message = event.get("message", {})
        if event["type"] == "message_end" and message["role"] == "assistant":
            message["content"] = [
                {"type": "text", "text": "hello", "signature": "abc"},
                {"type": "thinking", "text": "late"},
                {"type": "image", "mime_type": "image/png", "data": ""},
                {"type": "provider", "provider": "openai", "data": {}},
            ]
            message["paused"] = True
        if event["type"] == "run_end":
            event["redactions"] = 2
        return event

    edit("run.jsonl", signed, "signed.jsonl")
    done = script_of(pi_run, "signed.jsonl")

    assert done.stdout.endswith("- thinking: late\n  text: hello\n")
    for what in (
        "signatures",
        "images",
        "blocks of the provider's own",
        "the order of blocks",
        "pauses",
        "the pieces that an answer came in",
    ):
        assert f"pi-run: a script can't say {what}: m2\n" in done.stderr
    assert "2 values were taken out of the log" in done.stderr


def test_a_log_without_an_end_gives_what_it_has(pi_run: PiRun, spec: WriteSpec) -> None:
    replies = "[{tool_calls: [{name: echo}]}, {text: done, deltas: 2}]"
    text = f"version: 1\nmodel: {{provider: scripted, script: {replies}}}\n{TOOL}"
    run(pi_run, spec(text=text), "run.jsonl")

    def cut(event: dict[str, Any]) -> dict[str, Any] | None:
        told = event["type"] == "message_end" and event["message"]["content"]
        return None if told and told[0].get("text") == "done" else event

    edit("run.jsonl", cut, "cut.jsonl")
    with Path("cut.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"seq":')
    done = script_of(pi_run, "cut.jsonl")

    assert done.stdout.endswith("says: an entry a model call.\n- tool_calls: [{name: echo}]\n")
    assert "the last, was cut off by a crash" in done.stderr
    assert "the log breaks off before its run ended" in done.stderr


@pytest.mark.parametrize(
    "ending", ["{text: par, stop: aborted}", "{text: par, error: gone, status: 404}"]
)
def test_what_a_resume_left_behind_is_left_out(ending: str, pi_run: PiRun, spec: WriteSpec) -> None:
    replies = f"[{{tool_calls: [{{name: echo}}]}}, {ending}, {{text: done}}]"
    text = f"version: 1\nmodel: {{provider: scripted, script: {replies}}}\n{TOOL}"
    path = spec(text=text)
    assert run(pi_run, path, "run.jsonl").returncode == 3
    assert pi_run("resume", "run.jsonl").returncode == 0

    done = script_of(pi_run, "run.jsonl")
    again = run(pi_run, path, "again.jsonl", "--set", "model.script={file: script.yaml}")

    assert done.stdout.endswith("- tool_calls: [{name: echo}]\n- text: done\n")
    assert (again.returncode, again.stdout) == (0, "done\n")


def test_a_log_without_deltas_has_a_script_too(spec: WriteSpec) -> None:
    replies = "[{text: in pieces, deltas: 3, tool_calls: [{name: echo}]}, {text: done}]"
    model = f"version: 1\nmodel: {{provider: scripted, script: {replies}}}\n"
    text = hold_that_it_says_the_same(spec(text=model + TOOL + "log: {deltas: false}\n"))

    assert "deltas" not in text


def test_a_script_that_no_spec_could_have_is_an_error(pi_run: PiRun, spec: WriteSpec) -> None:
    run(pi_run, spec(), "run.jsonl")

    def long(event: dict[str, Any]) -> dict[str, Any]:
        if event["type"] == "message_end" and event["message"]["role"] == "assistant":
            event["message"]["content"][0]["text"] = "x" * (1 << 20)
        return event

    edit("run.jsonl", long, "long.jsonl")
    done = pi_run("script", "long.jsonl")

    assert (done.returncode, done.stdout) == (2, "")
    assert "would be larger than 1 MiB" in done.stderr


# --- any text -------------------------------------------------------------------------------------

ODD = (
    *("yes", "1.10", "010", "null", "~", "1e5", "0x1f", "---", "<<", "2024-01-01", "12:30:00"),
    *("::set-output", "\n::a", "##[group]", "{% endraw %}{{ a }}", "{{{%{#", "{#{{#}"),
)
TEXTS = st.one_of(
    st.text(),
    st.text(" \n\t\r#:-?,[]{}&*!|>'\"%@`a0.\\~=<xn\ud800\u2028\x85\x00\ufeff"),
    st.sampled_from(ODD),
)
VALUES = st.recursive(
    st.one_of(TEXTS, st.integers(), st.booleans(), st.none(), st.floats(allow_nan=False)).filter(
        lambda value: value not in (float("inf"), float("-inf"))
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
BLOCKS = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, TEXTS),
    st.builds(lambda text: {"type": "thinking", "text": text}, TEXTS),
    st.builds(
        lambda name, arguments: {
            "type": "tool_call",
            "id": "x",
            "name": name,
            "arguments": arguments,
        },
        TEXTS,
        st.dictionaries(TEXTS, VALUES, max_size=3) | TEXTS,
    ),
)


def as_read(value: Any) -> Any:
    """A value as a log gives it: halves of a character that meet are one."""
    return json.loads(json.dumps(value))


def said(messages: list[Mapping[str, Any]], entries: Any) -> Iterator[tuple[Any, Any]]:
    """What was said, and what a script says."""
    for message, entry in zip(messages, entries, strict=True):
        text, thinking = (
            "".join(block["text"] for block in message["content"] if block["type"] == kind)
            for kind in ("text", "thinking")
        )
        yield text, Template(entry.get("text") or "", "script").render({})
        yield thinking, entry.get("thinking") or ""
        calls = [block for block in message["content"] if block["type"] == "tool_call"]
        for call, made in zip(calls, entry["tool_calls"], strict=True):
            yield call["name"], made["name"]
            yield json.dumps(call["arguments"]), json.dumps(made["arguments"])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.lists(BLOCKS, min_size=1, max_size=4), min_size=1, max_size=3))
def test_any_text_is_read_from_a_script_as_it_was(tmp_path: Path, contents: list[Any]) -> None:
    messages: list[Mapping[str, Any]] = [
        as_read({"content": blocks, "stop_reason": "stop", "usage": dict(no_usage())})
        for blocks in contents
    ]
    entries = [reply(message, Pieces(), CallIds([]), lambda _: None) for message in messages]
    (tmp_path / "script.yaml").write_text(
        written(Script("spec", "main", entries)), encoding="utf-8", newline=""
    )
    (tmp_path / "spec.yaml").write_text(
        "version: 1\nmodel: {provider: scripted, script: {file: script.yaml}}\nprompt: Go\n",
        encoding="utf-8",
    )

    replies = to_json(load(tmp_path / "spec.yaml").spec.model.script)

    for wanted, found in said(messages, replies):
        assert found == wanted
