"""Whatever stands in a spec, all that comes out is a spec or an error for a person to read."""

import json
import random
from pathlib import Path

import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from runner.error import UsageError
from runner.spec.decode import to_json
from runner.spec.load import load, load_plan
from runner.spec.template import Template

SPECS = [path.read_bytes() for path in sorted((Path(__file__).parents[2] / "specs").glob("*.yaml"))]
EVERYTHING = b"""\
inputs: {a: {type: integer, default: 1, enum: [1, 2]}, b: {}}
env: [HOME, {env: X, default: y}]
model: &m {script: [{text: "{{ last.text }}", tool_calls: [{name: n}], repeat: 2}], retry: {}}
prompt: "{{ inputs.a }} {{ env.HOME }}"
messages: [{role: user, text: 010}, {role: assistant, content: [{type: text, text: x}]}]
tools: [shell, {use: shell, allow: [a]}, {python: "json:dumps"}, &t {name: c, description: d,
  parameters: {type: object, properties: {p: {type: string}}}, command: [wc, "{{ args.p }}"]}]
steering: {messages: [{after_turn: 1, text: A}]}
follow_ups: {tasks: [{id: t, prompt: "{{ tasks.main.text }}", when: "1 < 2", repeat: {until:
  "task.text", max: 3}}]}
hooks: {before_tool_call: [{deny: {tool: x, when: "args.a"}}], after_tool_call: [{redact:
  {pattern: 'a+', with: b}}]}
permissions: {allow: ["shell(git *)"], unattended: stop}
limits: {turns: null, cost_usd: .5, <<: {depth: 1}}
output: {schema: {type: object}}
expect: [{contains: a}, {that: "result.turns < 3"}, {tool_called: {name: x, args: {<<: *t}}}]
log: {path: "{{ run.name }}"}
"""
OFTEN = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
SNIPPETS = [
    *(b"{{ }} {% !! &a *a <<: ? - : | > ' \" \\ # null ~ .nan 1e999 [ ] { } ./".split()),
    *(b"\t", b"\n", b"---\n", b"...\n", b"%YAML 1.2\n", b"\r", b"\xff", b"\0", b"\xef\xbb\xbf"),
    *(b"extends: s.yaml\n", b"{file: s.yaml}", b"{file: .}", b"9" * 5000, rb'"\ud800"'),
    "\u2028".encode(),
]


def hold(folder: Path, data: bytes) -> None:
    path = folder / "s.yaml"
    path.write_bytes(data)
    try:
        loaded = load(path)
    except UsageError as error:
        told = str(error).splitlines() or [""]
    else:
        assert load_plan(json.loads(json.dumps(to_json(loaded.spec)))).spec == loaded.spec
        told = [str(fault) for fault in loaded.missing_environment({})]
    assert all(0 < len(line) < 1200 for line in told)


@OFTEN
@given(st.binary(max_size=200))
@example(b"a: *a")
@example(b"? ? ? ?")
@example(b"{<<: {<<: [{}]}}")
@example(b"- - - -\n -")
@example(b"!<x> a")
@example(b"%TAG ! x\n--- !y z")
@example(b"%FOO\n---\na")
@example(b'"\\x')
def test_bytes(tmp_path: Path, data: bytes) -> None:
    hold(tmp_path, data)


@OFTEN
@given(st.text(alphabet=st.sampled_from("ab:-{}[]#&*!|>'\"%@`,? \n\t<~.0"), max_size=80))
def test_what_looks_like_yaml(tmp_path: Path, text: str) -> None:
    hold(tmp_path, text.encode())
    hold(tmp_path, b"model: {script: []}\nprompt: " + text.encode())


@OFTEN
@given(st.sampled_from([EVERYTHING, *SPECS]), st.integers(0, 2**32), st.integers(1, 6))
def test_specs_with_slips(tmp_path: Path, data: bytes, seed: int, slips: int) -> None:
    chance = random.Random(seed)
    for _ in range(slips):
        at = chance.randrange(len(data) + 1)
        to = min(len(data), at + chance.choice((0, 0, 1, 3, 20)))
        other = chance.randrange(len(data) + 1)
        piece = chance.choice((b"", data[other : other + 12], chance.choice(SNIPPETS)))
        data = data[:at] + piece + data[to:]
    hold(tmp_path, data)


WORDS = [
    *("model", "prompt", "tools", "hooks", "limits", "inputs", "expect", "script", "text", "name"),
    *("type", "default", "file", "python", "command", "agent", "deny", "when", "tasks", "id"),
    *("env", "messages", "role", "content", "x-a"),
]


def values() -> st.SearchStrategy[object]:
    keys = st.sampled_from(WORDS)
    leaves = (
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | keys
    ) | st.sampled_from(["{{ inputs.a }}", "{{ x", "./s.yaml", "./a.py:f", "(", "[", "main"])
    return st.recursive(
        leaves,
        lambda below: st.lists(below, max_size=4) | st.dictionaries(keys, below, max_size=6),
        max_leaves=25,
    )


@OFTEN
@given(st.dictionaries(st.sampled_from(list(yaml.safe_load(EVERYTHING))), values()))
def test_values_of_any_kind_under_known_keys(tmp_path: Path, spec: dict[str, object]) -> None:
    hold(tmp_path, yaml.safe_dump(spec, allow_unicode=True).encode("utf-8", "replace"))


@OFTEN
@given(st.lists(st.sampled_from(["limits", "turns", ".", "[0]", "[", '"', "=", "{", "x", "1"])))
def test_changes(tmp_path: Path, pieces: list[str]) -> None:
    (tmp_path / "s.yaml").write_bytes(EVERYTHING)
    told = "--set "
    try:
        load(tmp_path / "s.yaml", sets=["".join(pieces)])
    except UsageError as error:
        told = str(error)
    assert told.startswith("--set ")


@OFTEN
@given(st.text(max_size=60))
@example("$ { } ${x} }} %} #} $(id) {")
def test_a_text_without_braces_is_itself(text: str) -> None:
    plain = text.replace("{", "(")
    assert Template(plain, "x").render({}) == plain


@OFTEN
@given(st.text(alphabet=st.sampled_from("{}%#()[]'\"abx|.+-* 1_\n"), max_size=60))
def test_templates(tmp_path: Path, text: str) -> None:
    value = json.dumps("{{" + text).encode()
    hold(tmp_path, b"model: {script: []}\nprompt: " + value + b"\n")
    hold(tmp_path, b"model: {script: []}\nexpect: [{that: " + json.dumps(text).encode() + b"}]\n")
