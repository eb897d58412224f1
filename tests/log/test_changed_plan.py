"""What a log's plan says that its run was made of is noticed when it was changed."""

import json
from pathlib import Path
from typing import Any

import pytest

from runner.api import RunOptions, run_spec
from runner.api.replay import replay
from runner.error import LogError
from runner.json_text import line

SPEC = """\
version: 1
inputs: {who: {default: you}}
model:
  provider: scripted
  script:
    - {tool_calls: [{name: look, arguments: {n: 1}}]}
    - {text: '{"n": 1}'}
    - {text: more}
    - {text: done}
    - {text: late}
system_prompt: Be short.
prompt: Go, {{ inputs.who }}
messages:
  - {role: user, content: [{type: text, text: Earlier.}]}
  - {role: assistant, content: [{type: text, text: Yes.}]}
tools:
  - name: look
    description: Look.
    parameters: {type: object, properties: {n: {type: integer}}}
    command: [echo, seen]
  - {agent: ./other.yaml}
output: {schema: {type: object, properties: {n: {type: integer}}}}
steering: {messages: [{after_tool: look, text: Mind that.}]}
follow_ups:
  tasks:
    - {id: again, prompt: Once more, repeat: {until: "'done' in task.text", max: 3}}
    - {id: never, prompt: No, when: "tasks.again.text == 'no'"}
    - {id: other, agent: ./other.yaml}
expect: [{contains: well}]
"""
OTHER = """\
version: 1
model: {provider: scripted, script: [{text: well}]}
system_prompt: You are another.
prompt: Say something.
"""
TOOL = "resolved.tools.0"
OTHER_PLAN = "resolved.agents.follow_ups/tasks[2]/agent"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "spec.yaml").write_text(SPEC, encoding="utf-8")
    (tmp_path / "other.yaml").write_text(OTHER, encoding="utf-8")
    path = tmp_path / "log.jsonl"
    result = run_spec(tmp_path / "spec.yaml", options=RunOptions(log=str(path)))
    assert result.status == "ok", result
    assert replay(path).difference is None
    return path


def change(log: Path, where: str, value: Any) -> None:
    """Give a place in the plan another value; none at all, where that is ``...``."""
    first, rest = log.read_text(encoding="utf-8").split("\n", 1)
    start = json.loads(first)
    *above, last = [
        int(key) if key.isdigit() else key.replace("/", ".") for key in where.split(".")
    ]
    place = start["plan"]
    for key in above:
        place = place[key]
    if value is ...:
        del place[last]
    else:
        assert place.get(last) != value if isinstance(place, dict) else place[last] != value
        place[last] = value
    log.write_text(line(start) + "\n" + rest, encoding="utf-8")


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("prompt", "Go, me"),
        ("system_prompt", "Be long."),
        ("messages.0.content.0.text", "Later."),
        ("messages", []),
        ("model.id", "other"),
        (f"{TOOL}.name", "see"),
        (f"{TOOL}.description", "See."),
        (f"{TOOL}.parameters", {"type": "object"}),
        ("output.schema.properties.n.type", "string"),
        ("output", ...),
        ("steering.messages", []),
        ("steering.messages.0.text", "Mind this."),
        ("limits.turns", 2),
        ("limits.tool_calls", 0),
        ("follow_ups.tasks.0.prompt", "Once less"),
        ("follow_ups.tasks.0.repeat.max", 1),
        ("follow_ups.tasks.0.repeat.until", "true"),
        ("follow_ups.tasks.1.when", "true"),
        ("follow_ups.tasks.1.id", "ever"),
        ("expect.0.contains", "ill"),
        ("expect", []),
        (f"{OTHER_PLAN}.prompt", "Say nothing."),
        (f"{OTHER_PLAN}.system_prompt", "You are the same."),
    ],
)
def test_what_the_run_was_made_of(log: Path, where: str, value: Any) -> None:
    change(log, where, value)

    assert replay(log).difference is not None


@pytest.mark.parametrize(
    ("where", "value", "says"),
    [
        ("resolved", ..., "plan.resolved is missing"),
        ("resolved", 7, "plan.resolved is no object"),
        ("resolved.env", [], "plan.resolved.env is no object"),
        ("resolved.env", {"HOME": 7}, "plan.resolved.env.HOME is no text"),
        ("resolved.tools", [], "plan.resolved.tools has 0 tools, and the plan has 2"),
        (TOOL, 7, "plan.resolved.tools[0] is no object"),
        (f"{TOOL}.parameters", ..., "tools[0].parameters is missing, or of another type"),
        ("resolved.agents", [], "plan.resolved.agents is no object"),
        ("resolved.agents", {}, 'agents lacks "tools[1].agent", which the plan uses'),
        (OTHER_PLAN, 7, '["follow_ups.tasks[2].agent"] is no object'),
        (OTHER_PLAN, {}, '["follow_ups.tasks[2].agent"] is no spec'),
        (f"{OTHER_PLAN}.resolved", ..., '["follow_ups.tasks[2].agent"].resolved is missing'),
        ("resolved.flags", 7, "plan.resolved.flags is no object"),
        ("resolved.flags", {"set": [["a"]]}, "flags.set is no list of changes"),
        ("resolved.flags", {"model": 7}, "flags.model is no text"),
        ("inputs", {}, "inputs.who is none of the plan's inputs"),
        ("name", "other", 'spec.name is "spec", and the plan\'s is "other"'),
        ("limits.turns", "many", "limits.turns"),
    ],
)
def test_what_is_no_plan_is_told(log: Path, where: str, value: Any, says: str) -> None:
    change(log, where, value)

    with pytest.raises(LogError) as raised:
        replay(log)

    assert f"{log}: line 1: " in str(raised.value)
    assert says in str(raised.value)


def test_what_a_newer_version_has_besides_is_let_be(log: Path) -> None:
    first, rest = log.read_text(encoding="utf-8").split("\n", 1)
    start = json.loads(first)
    start["mood"] = start["plan"]["resolved"]["mood"] = "good"
    log.write_text(line(start) + "\n" + rest, encoding="utf-8")

    assert replay(log).difference is None
