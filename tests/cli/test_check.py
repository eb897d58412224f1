import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PiRun = Callable[..., "subprocess.CompletedProcess[str]"]
Write = Callable[..., Path]

EXPECTS = "expect: [{contains: hello}]\n"


def test_a_good_spec_is_ok(pi_run: PiRun, spec: Write) -> None:
    spec(more=EXPECTS)
    done = pi_run("check", "spec.yaml")

    assert (done.returncode, done.stdout, done.stderr) == (0, "spec.yaml: ok\n", "")


def test_a_warning_is_no_fault(pi_run: PiRun, spec: Write) -> None:
    spec()
    done = pi_run("check", "spec.yaml")

    warning, ok = done.stdout.splitlines()
    assert (done.returncode, ok) == (0, "spec.yaml: ok")
    assert warning.startswith("spec.yaml:1:1: ")
    assert "warning: " in warning
    assert "expect" in warning


def test_faults_of_all_specs_come_to_stdout(pi_run: PiRun, spec: Write) -> None:
    spec("good.yaml", EXPECTS)
    spec("a.yaml", "promt: x\n")
    spec("b.yaml", "limits: {turns: many}\n")
    done = pi_run("check", "a.yaml", "good.yaml", "b.yaml")

    assert (done.returncode, done.stderr) == (2, "")
    lines = [line for line in done.stdout.splitlines() if "warning" not in line]
    assert lines[0].startswith('a.yaml:4:1: promt: unknown key; did you mean "prompt"')
    assert lines[1] == "good.yaml: ok"
    assert lines[2].startswith("b.yaml:4:17: limits.turns: ")


def test_faults_of_structure_hide_none_of_python(pi_run: PiRun, spec: Write, folder: Path) -> None:
    (folder / "t.py").write_text("def add(a: int) -> int:\n    return a\n", encoding="utf-8")
    more = """\
comand: x
tools: [{python: "t.py:ad"}, {python: "t.py:add"}, {python: "none.py:a"}]
hooks: {transform_context: [{python: "t.py:trim"}]}
"""
    spec(more=more)
    for words, name in ((["check", "spec.yaml"], "stdout"), (["spec.yaml"], "stderr")):
        done = pi_run(*words)
        assert done.returncode == 2
        places = [line.partition(": ")[0] for line in getattr(done, name).splitlines()]
        assert places == [f"spec.yaml:{at}" for at in ("4:1", "5:18", "5:61", "6:38")]


NAMES = """\
tools: [read_file, {name: mail, description: Mail., command: [echo]}]
permissions: {allow: ["mial(a)", "*", "ma*"], ask: [write_file], deny: ["shel(rm *)"]}
hooks:
  before_tool_call: [{deny: {tool: maill}}, {set: {tool: mail, args: {}}}, {allow: {tool: x}}]
steering: {messages: [{after_tool: raed_file, text: Stop.}]}
expect: [{tool_called: {name: maill}}, {tool_called: shell}, {tool_not_called: shell}]
"""


def test_names_of_tools_that_none_has_are_warned_of(pi_run: PiRun, spec: Write) -> None:
    spec(more=NAMES)
    wanted = [
        'spec.yaml:5:23: permissions.allow[0]: warning: no tool here is called "mial"; did you '
        'mean "mail"?',
        'spec.yaml:5:73: permissions.deny[0]: warning: no tool here is called "shel"; did you mean '
        '"shell"?',
        "spec.yaml:7:36: hooks.before_tool_call[0].deny.tool: warning: no tool here is called "
        '"maill"; did you mean "mail"?',
        'spec.yaml:7:91: hooks.before_tool_call[2].allow.tool: warning: no tool here is called "x";'
        " there are: read_file, mail",
        'spec.yaml:8:36: steering.messages[0].after_tool: warning: no tool here is called "raed_'
        'file"; did you mean "read_file"?',
        'spec.yaml:9:31: expect[0].tool_called.name: warning: no tool here is called "maill"; did '
        'you mean "mail"?',
        'spec.yaml:9:54: expect[1].tool_called: warning: no tool here is called "shell"; there '
        "are: read_file, mail",
    ]
    done = pi_run("check", "spec.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [*wanted, "spec.yaml: ok"]

    # A rule that can't apply protects nothing: a run says so too.
    done = pi_run("spec.yaml", "--log", "none")
    assert done.stderr.splitlines()[: len(wanted)] == wanted
    assert "warning" not in pi_run("spec.yaml", "--log", "none", "--quiet").stderr


def test_names_of_tools_of_agents_and_servers_are_known(pi_run: PiRun, spec: Write) -> None:
    more = """\
tools: [{agent: other.yaml}, {mcp: {name: time, command: [none]}}]
permissions: {allow: [time_now, other], deny: ["t*", mail]}
expect: [{tool_called: mail}, {tool_called: time_convert}, {tool_called: other}]
"""
    tool = "tools: [{name: mail, description: Mail., command: [echo]}]\n"
    spec("other.yaml", tool + EXPECTS)
    spec(more=more)
    (warning, ok) = pi_run("check", "spec.yaml").stdout.splitlines()
    # An agent's own calls are held against its own rules.
    assert "permissions.deny[1]" in warning
    assert ok == "spec.yaml: ok"


def test_what_is_not_there_is_told_and_the_rest_is_checked(pi_run: PiRun, spec: Write) -> None:
    spec(more=EXPECTS)
    done = pi_run("check", "nowhere.yaml", "spec.yaml")

    assert (done.returncode, done.stdout) == (2, "spec.yaml: ok\n")
    assert "nowhere.yaml" in done.stderr


def test_json_is_one_list(pi_run: PiRun, spec: Write) -> None:
    spec(more="promt: x\n" + EXPECTS)
    done = pi_run("check", "spec.yaml", "--format", "json")

    (fault,) = json.loads(done.stdout)
    assert {**fault, "message": ""} == {
        "file": "spec.yaml",
        "line": 4,
        "column": 1,
        "path": "promt",
        "severity": "error",
        "message": "",
    }


@pytest.mark.parametrize("in_actions", ["", "true"])
def test_github_gets_annotations(pi_run: PiRun, spec: Write, in_actions: str) -> None:
    spec(more="promt: x\n")
    env = {"GITHUB_ACTIONS": in_actions}

    assert (
        "::error file=spec.yaml,line=4,col=1::promt: "
        in pi_run("check", "spec.yaml", "--format", "github", env=env).stdout
    )
    told = pi_run("check", "spec.yaml", env=env).stderr
    assert ("::error file=spec.yaml,line=4,col=1::promt: " in told) == bool(in_actions)


def test_modules_that_print_do_not_reach_stdout(pi_run: PiRun, spec: Write, folder: Path) -> None:
    spec(more=EXPECTS + "tools: [{python: ./tools.py:look}]\n")
    (folder / "tools.py").write_text(
        "print('noise')\ndef look() -> str:\n    '''Look.'''\n    return ''\n", encoding="utf-8"
    )
    done = pi_run("check", "spec.yaml")

    assert (done.stdout, done.stderr) == ("spec.yaml: ok\n", "noise\n")


# At import, for help and for a check of a spec with a model that lives on the network.
NO_SOCKET = """
import sys
def refuse(event, arguments):
    if event.startswith("socket."):
        raise RuntimeError(event)
sys.addaudithook(refuse)
from runner.cli import main
main()
"""


@pytest.mark.parametrize(
    "words", ["--help", "run --help", "check spec.yaml", "tools", "schema spec"]
)
def test_no_socket_is_opened(spec: Write, folder: Path, words: str) -> None:
    spec(
        text="version: 1\nmodel: {provider: openai, id: gpt-5-mini, api_key: {env: NO_KEY, default:"
        " x}}\nprompt: Hello\n" + EXPECTS
    )
    done = subprocess.run(
        [sys.executable, "-c", NO_SOCKET, *words.split()],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
