import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.error import SpecError, UsageError
from runner.spec.decode import to_json
from runner.spec.load import load, load_plan, read_data
from runner.spec.loaded import Loaded
from runner.spec.model import Spec
from runner.spec.model.tool import CommandTool, UseTool

LoadSpec = Callable[..., Loaded]
HEAD = "model: {script: []}\nprompt: Hello\n"
EVERYTHING = """\
$schema: ../schemas/spec.schema.json
version: 1
name: triage
description: 1.10
inputs:
  issue: {type: string, description: The issue's text}
  depth: {type: integer, default: 2, enum: [1, 2, 3]}
  country: {default: NO}
  code: {default: 010, enum: [010, 1.10]}
env: [CI_PROJECT, {env: OTHER, default: x}]
model:
  provider: openai
  id: gpt-5-mini
  base_url: http://127.0.0.1:8080/v1
  api_key: {env: OPENAI_API_KEY, default: none}
  temperature: 0
  max_output_tokens: 2000
  reasoning: off
  timeout: {connect: 10, idle: 60}
  retry: {attempts: 4, max_delay: 60}
  fallback: [{provider: anthropic, id: claude-haiku-4-5}]
  price: {input: 0.25, output: 2.0, cache_read: 0.025, cache_write: 0.3}
  options: {top_p: 0.9, x-kept: yes}
system_prompt: |
  You sort issues of {{ env.CI_PROJECT }}. Go {{ inputs.depth }} levels deep.
prompt: "{{ inputs.issue }} of {{ run.name }} {{ run.id }} in {{ spec.dir }}"
messages:
  - {role: user, text: 010}
  - role: assistant
    content: [{type: text, text: a}, {type: tool_call, id: c, name: n, arguments: {b: [1]}}]
    usage: {input: 1}
  - {role: tool_result, tool_call_id: c, content: [], details: {d: null}}
tools:
  - read_file
  - {use: shell, allow: ["git log *"], timeout: 30}
  - python: json:dumps
  - name: count_words
    description: Count the words of a file.
    parameters: {type: object, properties: {path: {type: string}}, required: [path]}
    command: [wc, -w, "{{ args.path }}"]
    idempotent: true
    execution: sequential
tool_execution: sequential
max_parallel_tools: 3
steering:
  mode: one_at_a_time
  interrupt: true
  messages: [{after_turn: 0, text: A.}, {after_tool: read_file, text: B.}]
follow_ups:
  mode: all
  messages: [{text: Anything else?}]
  tasks:
    - id: summary
      prompt: "{{ tasks.main.text }}"
      when: "'bug' in tasks.main.text"
      repeat: {until: "'DONE' in task.text and tasks.main.status == 'ok'", max: 3}
      expect: [{matches: "^.{1,200}$"}]
      on_error: continue
    - id: each
      for_each: tasks.summary.output.files
      prompt: "{{ item }} of {{ tasks.summary.text }}"
      max_parallel: 2
hooks:
  transform_context: [{trim: {max_tokens: 8000}}, {python: "json:dumps"}]
  before_tool_call:
    - {deny: {tool: shell, when: "'rm ' in args.command", reason: No deleting.}}
    - {set: {tool: weather, args: {units: metric}}}
    - {command: [audit], timeout: 10, on_error: block}
  after_tool_call: [{redact: {pattern: 'sk-\\w+', with: '[key]'}}, {truncate: {max_chars: 20000}}]
  stop_after_turn: [{when: "'DONE' in turn.text"}]
  steering_messages: [{command: [inbox]}]
permissions: {allow: ["read_file", "shell(git *)"], ask: [shell], deny: ["shell(rm *)"]}
workspace: .
limits: {turns: null, tool_calls: 0, seconds: 600, tokens: 200000, cost_usd: 0.50}
output: {schema: {type: object, properties: {label: {type: string}}}, retries: 1}
expect:
  - contains: label
  - tool_called: {name: read_file, args: {path: a.txt}, times: 1}
  - tool_called: read_file
  - tool_not_called: shell
  - {equals: {label: bug}}
  - {equals: 010}
  - json_schema: {type: object}
  - that: "result.turns <= 4 and result.cost_usd < 0.01"
log: {path: "runs/{{ run.name }}.jsonl", deltas: false, redact: ['\\d{16}'], redact_known: false}
x-note: {anything: [at, all]}
"""


def test_everything(load_spec: LoadSpec) -> None:
    loaded = load_spec(EVERYTHING)
    spec = loaded.spec

    assert (loaded.name, loaded.file, loaded.warnings) == ("triage", "s.yaml", [])
    assert loaded.sha256 == hashlib.sha256(EVERYTHING.encode()).hexdigest()
    assert spec.description == "1.10"
    assert [known.default for known in spec.inputs.values()] == [None, 2, "NO", "010"]
    assert spec.inputs["code"].enum == ["010", "1.10"]
    assert spec.model.temperature == 0
    assert spec.model.reasoning == "off"
    assert spec.model.options == {"top_p": 0.9, "x-kept": "yes"}
    assert spec.messages[0].text == "010"
    assert [type(tool) for tool in spec.tools[:2]] == [str, UseTool]
    assert isinstance(spec.tools[3], CommandTool)
    assert spec.hooks.after_tool_call[0].redact is not None
    assert spec.hooks.after_tool_call[0].redact.with_ == "[key]"
    assert (spec.limits.turns, spec.limits.tool_calls, spec.limits.repeats) == (None, 0, 10)
    assert [spec.expect[4].equals, spec.expect[5].equals] == [{"label": "bug"}, "010"]


def test_json_and_back(load_spec: LoadSpec) -> None:
    spec = load_spec(EVERYTHING).spec
    data = json.loads(json.dumps(to_json(spec)))

    assert load_plan(data).spec == spec
    assert data["limits"]["turns"] is None
    assert data["limits"]["repeats"] == 10
    assert data["model"]["timeout"] == {"connect": 10, "idle": 60}
    assert data["hooks"]["after_tool_call"][0]["redact"] == {"pattern": r"sk-\w+", "with": "[key]"}


def test_defaults(load_spec: LoadSpec) -> None:
    loaded = load_spec(HEAD)

    assert loaded.name == "s"
    assert [str(warning) for warning in loaded.warnings] == [
        "s.yaml:1:1: expect: nothing is expected of it; add `expect` or `output`"
    ]
    assert to_json(loaded.spec.limits) == {
        "turns": 50,
        "tool_calls": 500,
        "repeats": 10,
        "depth": 3,
    }
    assert loaded.spec.model.provider == "scripted"


def test_a_plan_that_is_no_spec() -> None:
    with pytest.raises(SpecError, match=r'^plan:1:1: modle: unknown key; did you mean "model"\?'):
        load_plan({"modle": {}, "model": {"script": []}})


@pytest.mark.parametrize(
    ("stem", "name"), [("My Spec", "my-spec"), ("_a.b", "a-b"), ("ü", "spec"), ("a_b-1", "a_b-1")]
)
def test_a_name_made_of_the_stem(folder: Path, stem: str, name: str) -> None:
    (folder / f"{stem}.yaml").write_text(HEAD, encoding="utf-8")
    assert load(f"{stem}.yaml").name == name


# --- extends --------------------------------------------------------------------------------------


def test_maps_merge_and_all_else_replaces(load_spec: LoadSpec) -> None:
    spec = load_spec(
        "extends: [one.yaml, two.yaml]\nlimits: {turns: 3}\ntools: [c]\n",
        {
            "one.yaml": HEAD
            + "name: one\nlimits: {turns: 1, depth: 1, tool_calls: 1}\ntools: [a]\n",
            "two.yaml": "name: two\nlimits: {turns: 2, depth: 2}\ndescription: d\n",
        },
    ).spec

    assert spec.name == "two"
    assert (spec.limits.turns, spec.limits.depth, spec.limits.tool_calls) == (3, 2, 1)
    assert spec.tools == ["c"]
    assert spec.prompt == "Hello"
    assert spec.extends is None


def test_paths_are_relative_to_the_file_that_names_them(load_spec: LoadSpec, folder: Path) -> None:
    loaded = load_spec(
        "extends: base/b.yaml\ntools: [{python: './t.py:f'}]\n",
        {
            "base/b.yaml": "extends: ../root.yaml\nprompt: {file: p.md}\nlog: {path: a}\n",
            "base/p.md": "{{ run.name }}\n",
            "root.yaml": "model: {script: {file: script.json}}\nhooks: {convert_to_llm: [{python: "
            "'./t.py:f'}]}\nsystem_prompt: {file: base/p.md}\n",
            "script.json": '[{"text": "a\\ud800"}]',
            "t.py": "",
        },
    )

    assert loaded.spec.prompt == loaded.spec.system_prompt == "{{ run.name }}\n"
    assert loaded.spec.model.script is not None
    assert loaded.spec.model.script[0].text == "a\ud800"
    assert loaded.folder_of("log.path") == str(folder / "base")
    assert loaded.folder_of("prompt") == str(folder / "base")
    assert loaded.folder_of("tools[0].python") == str(folder)
    assert loaded.resolve("hooks.convert_to_llm[0].python", "../x") == str(folder.parent / "x")
    assert loaded.where("log.path") == "base/b.yaml:3:13: log.path"
    assert str(loaded.fault("tools[0]", "no", key=True)) == "s.yaml:2:9: tools[0]: no"
    assert str(loaded.fault("log.path", "no", key=True)) == "base/b.yaml:3:7: log.path: no"
    assert str(loaded.fault("limits.turns", "no")) == "s.yaml:1:1: limits.turns: no"
    assert str(loaded.fault("model.script[0].text", "no")) == "script.json:1:1: " + (
        "model.script[0].text: no"
    )


@pytest.mark.parametrize("shown", ["inner/s.yaml", "./inner/s.yaml", "../{0}/inner/s.yaml"])
def test_files_are_named_as_they_were_given(folder: Path, shown: str) -> None:
    (folder / "inner").mkdir()
    (folder / "inner/s.yaml").write_text("extends: ../b.yaml\npromt: a\n", encoding="utf-8")
    (folder / "b.yaml").write_text("modl: b\n", encoding="utf-8")
    given = shown.format(folder.name)

    with pytest.raises(SpecError) as caught:
        load(given)

    names = {fault.file for fault in caught.value.faults}
    assert names == {given, os.path.normpath(os.path.join(os.path.dirname(given), "../b.yaml"))}


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nobody.yaml", "there is no spec nobody.yaml; look at its path"),
        (".", ". is a folder; name a spec in it, such as ./spec.yaml"),
        ("/dev/null", "/dev/null is not a regular file"),
        ("a\0b", "there is no spec a\\u0000b; look at its path"),
    ],
)
def test_no_spec_at_all(folder: Path, path: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(path)
    assert str(caught.value) == message
    assert not isinstance(caught.value, SpecError)


# --- changes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "path", "value"),
    [
        ("limits.turns=3", ("limits", "turns"), 3),
        ("limits.turns=null", ("limits", "turns"), None),
        ("limits.turns=", ("limits", "turns"), None),
        ("prompt=a=b", ("prompt",), "a=b"),
        ("prompt={{ run.name }}: x", ("prompt",), "{{ run.name }}: x"),
        ("prompt=010", ("prompt",), "010"),
        ("model.provider=local", ("model", "provider"), "local"),
        ("log={deltas: false}", ("log", "deltas"), False),
        ("tools[0].timeout=5", ("tools", 0, "timeout"), 5),
        ("tools=[a]", ("tools",), ["a"]),
        (("prompt", "{{ run.name }}"), ("prompt",), "{{ run.name }}"),
        (("output", {"schema": {}}), ("output", "retries"), 2),
        ("inputs.a.default=1.10", ("inputs", "a", "default"), "1.10"),
    ],
)
def test_changes(load_spec: LoadSpec, change: Any, path: tuple[Any, ...], value: Any) -> None:
    spec = load_spec(HEAD + "tools: [{use: shell}]\ninputs: {a: {}}\n", sets=[change]).spec

    found = to_json(spec)
    for step in path:
        found = found.get(step) if isinstance(found, dict) else found[step]
    assert found == value


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("limits.turn=3", '--set limits.turn: unknown key; did you mean "turns"?'),
        ("limit.turns=3", '--set limit.turns: limit: unknown key; did you mean "limits"?'),
        (
            "limits.turns=many",
            '--set limits.turns: an integer of at least 1 is needed, not the string "many"',
        ),
        ("tools[3].timeout=5", "--set tools[3].timeout: there is no item 3; there are 1"),
        ("limits[0]=5", "--set limits[0]: there is no item 0; there are 0"),
        ("limits.turns", "--set limits.turns: it is no change; write --set limits.turns=3"),
        ("=3", "--set : it is no change; write --set limits.turns=3"),
        ("..=3", "--set ..: it is no change; write --set limits.turns=3"),
        ("a\nb=3", '--set a\\nb: ["a\\nb"]: unknown key; known: '),
        ("prompt='a", "--set prompt: this is not well-formed YAML: "),
        ("prompt={{ a }}", '--set prompt: "a" is not defined here; known: inputs, env, run, spec'),
        (
            "hooks.convert_to_llm=[{comand: [a]}]",
            "--set hooks.convert_to_llm: hooks.convert_to_llm[0].comand: unknown key; did you mean "
            '"command"?',
        ),
        ("model.api_key.file=k", "--set model.api_key.file: there is no file "),
    ],
)
def test_changes_that_are_wrong(load_spec: LoadSpec, change: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_spec(HEAD + "tools: [{use: shell}]\n", sets=[change])
    assert str(caught.value).startswith(message)
    assert not isinstance(caught.value, SpecError)
    assert "\n" not in str(caught.value)


# --- agents ---------------------------------------------------------------------------------------

REVIEWER = HEAD + "inputs: {text: {}, n: {type: integer, default: 1}}\nexpect: [{contains: a}]\n"


def test_agents(load_spec: LoadSpec) -> None:
    loaded = load_spec(
        HEAD + "tools: [{agent: a/r.yaml}]\nfollow_ups: {tasks: [{id: t, agent: a/r.yaml, inputs: "
        '{text: "{{ tasks.main.text }}", n: 2, x-why: so}}]}\n',
        {"a/r.yaml": REVIEWER + "tools: [{agent: s.yaml}]\n", "a/s.yaml": HEAD},
    )

    reviewer = loaded.agents["tools[0].agent"]
    assert loaded.agents["follow_ups.tasks[0].agent"] is reviewer
    assert (reviewer.name, reviewer.file) == ("r", "a/r.yaml")
    assert [each.file for each in loaded.everything()] == ["s.yaml", "a/r.yaml", "a/s.yaml"]


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (
            "{}",
            's.yaml:3:53: follow_ups.tasks[0].inputs: the input "text" is missing, which r.yaml '
            "needs",
        ),
        (
            "{text: a, m: 1}",
            "s.yaml:3:63: follow_ups.tasks[0].inputs.m: r.yaml has no such input; known: text, n",
        ),
        (
            "{text: a, n: two}",
            's.yaml:3:66: follow_ups.tasks[0].inputs.n: an integer is needed, not "two"',
        ),
        (
            "{text: [a]}",
            's.yaml:3:60: follow_ups.tasks[0].inputs.text: a string is needed, not ["a"]',
        ),
        ('{text: 010, n: "{{ tasks.main.output.n }}"}', None),
    ],
)
def test_what_a_task_gives_its_agent(
    faults: Callable[..., list[str]], given: str, fault: str | None
) -> None:
    text = HEAD + f"follow_ups: {{tasks: [{{id: t, agent: r.yaml, inputs: {given}}}]}}\n"
    assert faults(text, {"r.yaml": REVIEWER}) == ([fault] if fault else [])


def test_a_text_for_an_agent_is_as_written(load_spec: LoadSpec) -> None:
    loaded = load_spec(
        HEAD + "follow_ups: {tasks: [{id: t, agent: r.yaml, inputs: {text: 010, n: 010}}]}\n",
        {"r.yaml": REVIEWER},
    )
    assert loaded.spec.follow_ups.tasks[0].inputs == {"text": "010", "n": 10}


def test_an_agent_needs_a_prompt(faults: Callable[..., list[str]]) -> None:
    text = HEAD + (
        "tools: [{agent: r.yaml}]\nfollow_ups: {tasks: [{id: t, agent: r.yaml, prompt: a}]}\n"
    )
    assert faults(text, {"r.yaml": "model: {script: []}\n"}) == [
        "s.yaml:3:17: tools[0].agent: r.yaml has no prompt, which an agent needs"
    ]


def test_a_longer_circle(faults: Callable[..., list[str]]) -> None:
    agents = {
        "a.yaml": HEAD + "tools: [{agent: b.yaml}]\n",
        "b.yaml": HEAD + "expect: [{agent: a.yaml}]\n",
    }
    assert faults(HEAD + "tools: [{agent: a.yaml}]\n", agents) == [
        "b.yaml:3:18: expect[0].agent: the specs use each other in a cycle: "
        "a.yaml → b.yaml → a.yaml"
    ]


# --- the environment ------------------------------------------------------------------------------


def test_environment_names_that_are_not_set(load_spec: LoadSpec) -> None:
    loaded = load_spec(
        "env: [A, B, C, D, E, F, {env: G, default: g}]\n"
        "model:\n  script: [{text: '{{ env.F }}'}]\n  api_key: {env: KEY}\n"
        "  fallback: [{script: [], api_key: {env: KEY2, default: k}}]\n"
        'prompt: "{{ env.A }} {{ env.A }} {{ env.B | default(1) }} {{ env.G }}"\n'
        "system_prompt: {file: p.md}\n"
        "tools: [{agent: r.yaml}]\n"
        "follow_ups: {tasks: [{id: t, prompt: x, when: \"env['E'] and env.D is defined\"}]}\n",
        {
            "p.md": "a\n{{ env.C }}\n",
            "r.yaml": HEAD + 'env: [A, H]\nsystem_prompt: "{{ env.A }} {{ env.H }}"\n',
        },
    )

    def missing(environ: dict[str, str]) -> list[str]:
        return [str(fault).split(" is not set")[0] for fault in loaded.missing_environment(environ)]

    everything = [
        "s.yaml:3:19: model.script[0].text: the environment name F",
        "s.yaml:4:18: model.api_key.env: the environment name KEY",
        "s.yaml:6:9: prompt: the environment name A",
        "p.md:2:1: system_prompt: the environment name C",
        "s.yaml:9:47: follow_ups.tasks[0].when: the environment name E",
        "r.yaml:4:16: system_prompt: the environment name H",
    ]
    assert missing({}) == everything
    assert missing({"F": "", "KEY": "", "C": "", "E": "", "H": "", "A": ""}) == []
    assert loaded.environment_values({"A": "a", "KEY": "k"}) == {"A": "a", "G": "g"}
    assert loaded.environment_values({"G": "own"}) == {"G": "own"}


# --- data -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("a.yaml", "a: no\nb: 010\n", {"a": "no", "b": 10}),
        ("a.json", '{"a": [1.5, null]}', {"a": [1.5, None]}),
        ("a.yml", "- 1\n", [1]),
    ],
)
def test_data(folder: Path, name: str, text: str, value: Any) -> None:
    (folder / name).write_text(text, encoding="utf-8")
    assert read_data(name) == value


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.yaml", "a: [", "a.yaml:2:1: a[0]: this is not well-formed YAML"),
        ("a.json", "{", "a.json:1:1: spec: it is no JSON: Expecting property name"),
        ("a.json", "[" * 100_000, "a.json:1:1: spec: it is no JSON: it is nested too deeply"),
        ("a.yaml", "a: .nan", "a.yaml:1:4: a: .nan is no number that JSON has"),
    ],
)
def test_data_that_is_none(folder: Path, name: str, text: str, message: str) -> None:
    (folder / name).write_text(text + "\n", encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        read_data(name)
    assert str(caught.value).startswith(message)


def test_no_data(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"^there is no file .*nowhere\.yaml$"):
        read_data("nowhere.yaml")


def test_nothing_heavy_is_imported_for_a_plain_spec(load_spec: LoadSpec) -> None:
    import subprocess
    import sys

    load_spec(HEAD + "output: {schema: {type: object, properties: {a: {type: string}}}}\n")
    code = (
        "import sys; from runner.spec.load import load; load('s.yaml');"
        "print(sorted({'jinja2', 'jsonschema', 'pydantic', 'httpx', 'asyncio'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_model_is_its_own_constructor() -> None:
    spec = Spec(model=load_plan({"model": {"script": []}}).spec.model)
    assert spec == load_plan({"model": {"script": []}}).spec
    assert spec.tools is not Spec(model=spec.model).tools
    with pytest.raises(TypeError, match="Spec needs model"):
        Spec()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Spec has no modle"):
        Spec(model=spec.model, modle=1)  # type: ignore[call-arg]
