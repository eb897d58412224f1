import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

PiRun = Callable[..., "subprocess.CompletedProcess[str]"]
Write = Callable[..., Path]
Terminal = Callable[..., str]

FAILS = "expect: [{contains: bye}]\n"
ENDS_IN_ERROR = """\
version: 1
model: {provider: scripted, script: [{error: bad_request}]}
prompt: Hello
"""
TOOL = """\
version: 1
model: {provider: scripted, script: [{text: I look., tool_calls: [{name: look}]}, {text: done}]}
prompt: Hello
tools:
  - python: ./tools.py:look
"""


# --- the result -----------------------------------------------------------------------------------


def test_stdout_is_the_final_text(pi_run: PiRun, spec: Write) -> None:
    spec()
    done = pi_run("spec.yaml")

    assert (done.returncode, done.stdout) == (0, "hello\n")
    assert "log: .pi-run/logs/spec-" in done.stderr


def test_run_is_the_command_of_a_first_word_that_is_none(pi_run: PiRun, spec: Write) -> None:
    spec("check")

    assert pi_run("./check", "--quiet").stdout == "hello\n"
    assert pi_run("--quiet", "./check").stdout == "hello\n"
    assert pi_run("run", "check", "-q").stdout == "hello\n"


def test_json_is_one_object(pi_run: PiRun, spec: Write) -> None:
    spec(more=FAILS)
    done = pi_run("spec.yaml", "--format", "json", "--log", "none")

    result = json.loads(done.stdout)
    assert done.returncode == result["exit_code"] == 1
    assert (result["status"], result["text"], result["log"]) == ("failed", "hello", None)
    assert [e["passed"] for e in result["expectations"]] == [False]


def test_jsonl_is_the_log(pi_run: PiRun, spec: Write, folder: Path) -> None:
    spec()
    done = pi_run("spec.yaml", "--format", "jsonl", "--log", "out.jsonl")

    assert done.stdout == (folder / "out.jsonl").read_text(encoding="utf-8")


def test_log_to_stdout_is_the_log_alone(pi_run: PiRun, spec: Write, folder: Path) -> None:
    spec()
    done = pi_run("spec.yaml", "--log", "-")

    types = [json.loads(line)["type"] for line in done.stdout.splitlines()]
    assert (types[0], types[-1]) == ("run_start", "run_end")
    assert [path.name for path in folder.iterdir()] == ["spec.yaml"]


@pytest.mark.parametrize("form", ["text", "json"])
def test_an_error_leaves_no_text_on_stdout(pi_run: PiRun, spec: Write, form: str) -> None:
    spec(text=ENDS_IN_ERROR)
    done = pi_run("spec.yaml", "--log", "none", "--format", form)

    assert done.returncode == 3
    assert re.search(r"^pi-run: .*bad_request", done.stderr, re.M)
    assert (done.stdout == "") == (form == "text")


def test_a_failed_expectation_is_told_with_its_place(pi_run: PiRun, spec: Write) -> None:
    spec(more=FAILS)
    done = pi_run("spec.yaml", "--log", "none")

    assert (done.returncode, done.stdout) == (1, "hello\n")
    told = re.findall("^pi-run: .*", done.stderr, re.M)
    assert len(told) == 1
    assert re.search(r"expectation not met: contains: .*bye.*spec\.yaml:4:\d+$", told[0])


# --- what is told on stderr -----------------------------------------------------------------------


def test_progress_is_plain_lines(pi_run: PiRun, spec: Write, folder: Path) -> None:
    spec(text=TOOL)
    (folder / "tools.py").write_text(
        'def look() -> str:\n    """Look."""\n    return "seen"\n', encoding="utf-8"
    )
    done = pi_run("spec.yaml", "--log", "none")

    lines = [re.sub(r"\d+\.\d+ s", "T", line) for line in done.stderr.splitlines()]
    assert lines == [
        "spec: started with scripted",
        "turn 1",
        "  I look.",
        "  [1] look {}",
        "  [1] look done in T",
        "turn 2",
        "ok: 2 turns, 1 tool call, T",
    ]
    assert "    seen" in pi_run("spec.yaml", "--log", "none", "--verbose").stderr.splitlines()


def test_quiet_tells_nothing_but_errors(pi_run: PiRun, spec: Write) -> None:
    spec(more=FAILS)

    assert pi_run("spec.yaml", "--quiet").stderr.count("\n") == 1
    assert pi_run("spec.yaml", "--quiet", "--set", "expect=[]").stderr == ""


# --- several runs ---------------------------------------------------------------------------------


def test_several_specs_give_a_line_each_and_the_highest_code(pi_run: PiRun, spec: Write) -> None:
    spec("good.yaml")
    spec("bad.yaml", FAILS)
    spec("broken.yaml", text=ENDS_IN_ERROR)
    done = pi_run("good.yaml", "bad.yaml", "broken.yaml", "good.yaml", "--log", "none")

    assert done.returncode == 3
    results = [line.split(",")[0] for line in done.stdout.splitlines()]
    assert results == ["good.yaml: ok", "bad.yaml: failed", "broken.yaml: error", "good.yaml: ok"]
    assert "pi-run: bad.yaml: expectation not met" in done.stderr
    assert "4 runs: 2 ok, 1 failed, 1 error" in done.stderr


def test_one_wrong_spec_means_that_none_is_run(pi_run: PiRun, spec: Write, folder: Path) -> None:
    spec("good.yaml")
    spec("wrong.yaml", "promt: x\n")
    done = pi_run("good.yaml", "wrong.yaml", "nowhere.yaml")

    assert (done.returncode, done.stdout) == (2, "")
    assert "wrong.yaml:4:1: promt: " in done.stderr
    assert "nowhere.yaml" in done.stderr
    assert not (folder / ".pi-run").exists()


def test_a_quoted_pattern_is_looked_for(pi_run: PiRun, spec: Write) -> None:
    spec("a.yaml")
    spec("b.yaml")

    assert len(pi_run("*.yaml", "--log", "none").stdout.splitlines()) == 2
    done = pi_run("specs/*.yaml")
    assert done.returncode == 2
    assert done.stderr.startswith("pi-run: specs/*.yaml: no file fits this pattern")


def test_logs_of_several_runs_are_numbered(pi_run: PiRun, spec: Write, folder: Path) -> None:
    spec()
    done = pi_run("spec.yaml", "--repeat", "2", "--log", "logs/out.v1.jsonl", "--format", "json")

    names = [f"logs/out.v1-{number}.jsonl" for number in (1, 2)]
    assert [json.loads(line)["log"] for line in done.stdout.splitlines()] == names
    assert all((folder / name).exists() for name in names)


COUNTING = """\
version: 1
model: {provider: scripted, script: [{tool_calls: [{name: count}]}, {text: "{{ last.text }}"}]}
prompt: Hello
tools:
  - {name: count, description: Count., command: [sh, -c, "echo x >> count; wc -l < count"]}
expect: [{matches: "[234]$"}]
"""


@pytest.mark.parametrize(("rate", "code"), [("0.75", 0), ("0.76", 1), ("1", 1), ("0", 0)])
def test_the_rate_of_good_runs_decides(pi_run: PiRun, spec: Write, rate: str, code: int) -> None:
    spec(text=COUNTING)
    done = pi_run("spec.yaml", "--repeat", "4", "--min-pass", rate, "--log", "none")

    assert done.returncode == code
    assert "spec.yaml: 3 of 4 runs passed, " in done.stderr


# --- for a CI -------------------------------------------------------------------------------------


def test_junit_tells_each_run(pi_run: PiRun, spec: Write, folder: Path) -> None:
    spec("good.yaml")
    spec("bad.yaml", FAILS)
    pi_run("good.yaml", "bad.yaml", "--repeat", "2", "--log", "none", "--junit", "junit.xml")

    cases = list(ElementTree.parse(folder / "junit.xml").getroot().iter("testcase"))
    assert [case.get("name") for case in cases] == ["good #1", "good #2", "bad #1", "bad #2"]
    assert [len(case.findall("failure")) for case in cases] == [0, 0, 1, 1]


def test_a_junit_file_that_cant_be_written_is_found_first(pi_run: PiRun, spec: Write) -> None:
    spec()
    done = pi_run("spec.yaml", "--junit", "spec.yaml/junit.xml")

    assert (done.returncode, done.stdout) == (6, "")
    assert done.stderr.startswith("pi-run: spec.yaml/junit.xml: ")


def test_actions_get_annotations_and_a_summary(pi_run: PiRun, spec: Write, folder: Path) -> None:
    spec(more=FAILS)
    env = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": "summary.md"}
    done = pi_run("spec.yaml", "--log", "none", env=env)

    assert re.search(r"^::error file=spec\.yaml,line=4,col=\d+::.*bye", done.stderr, re.M)
    assert "| spec | failed |" in (folder / "summary.md").read_text(encoding="utf-8")


def test_a_summary_that_cant_be_written_fails_nothing(pi_run: PiRun, spec: Write) -> None:
    spec()
    env = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": "spec.yaml/summary.md"}
    done = pi_run("spec.yaml", "--log", "none", env=env)

    assert done.returncode == 0
    assert "pi-run: spec.yaml/summary.md: " in done.stderr


# --- options --------------------------------------------------------------------------------------


def test_a_flag_beats_the_environment(pi_run: PiRun, spec: Write, folder: Path) -> None:
    spec()
    env = {"PI_RUN_LOG": "env.jsonl", "PI_RUN_FORMAT": "json", "PI_RUN_QUIET": "1"}

    assert json.loads(pi_run("spec.yaml", env=env).stdout)["log"] == "env.jsonl"
    assert pi_run("spec.yaml", "--log", "flag.jsonl", "--format", "text", env=env).stdout
    assert (folder / "flag.jsonl").exists()


ECHO = """\
version: 1
inputs: {a: {type: string, default: none}, b: {type: string, default: none}}
model: {provider: scripted, script: [{text: "{{ inputs.a }} {{ inputs.b }}"}]}
prompt: Hello
"""


def test_inputs_of_the_environment_stand_a_line_each(pi_run: PiRun, spec: Write) -> None:
    spec(text=ECHO)
    env = {"PI_RUN_INPUT": "a=one word\nb=x=y"}

    assert pi_run("spec.yaml", "--quiet", env=env).stdout == "one word x=y\n"


def test_a_given_input_beats_the_file(pi_run: PiRun, spec: Write, folder: Path) -> None:
    spec(text=ECHO)
    (folder / "in.yaml").write_text("a: 1.10\nb: file\n", encoding="utf-8")
    done = pi_run("spec.yaml", "--inputs", "in.yaml", "-i", "b=flag", "--quiet")

    assert done.stdout == "1.10 flag\n"


def test_variables_of_a_file_reach_tools_and_real_ones_beat_them(
    pi_run: PiRun, spec: Write, folder: Path
) -> None:
    spec(text=TOOL.replace("done", "'{{ last.text }}'"))
    (folder / "tools.py").write_text(
        'import os\ndef look() -> str:\n    """Look."""\n'
        '    return os.environ["MADE_UP"] + os.environ["REAL_ONE"]\n',
        encoding="utf-8",
    )
    (folder / ".env").write_text("MADE_UP=a\nREAL_ONE=b\n", encoding="utf-8")
    done = pi_run("spec.yaml", "--env-file", ".env", "--quiet", env={"REAL_ONE": "c"})

    assert done.stdout == "ac\n"


def test_stdin_is_read_where_it_is_asked_for(pi_run: PiRun, spec: Write) -> None:
    spec(text='version: 1\nmodel: {provider: scripted, script: [{text: "{{ last.text }}"}]}\n')

    assert pi_run("spec.yaml", "--prompt", "-", "--quiet", input="ü\n").stdout == "ü\n"


@pytest.mark.parametrize("rate", ["nan", "inf", "-inf", "-0.1", "1.1", "all"])
def test_a_rate_is_from_0_to_1(pi_run: PiRun, spec: Write, rate: str) -> None:
    spec()
    by_flag = pi_run("spec.yaml", "--min-pass", rate)
    by_variable = pi_run("spec.yaml", env={"PI_RUN_MIN_PASS": rate})

    for done in (by_flag, by_variable):
        assert (done.returncode, done.stdout) == (2, "")
        assert "invalid value for '--min-pass'" in done.stderr


def test_so_many_runs_are_a_slip(pi_run: PiRun, spec: Write) -> None:
    spec()
    done = pi_run("spec.yaml", "--repeat", "1000000000")

    assert done.returncode == 2
    assert "1<=x<=100000" in done.stderr


REFUSED = """\
version: 1
model:
  provider: scripted
  script:
    - tool_calls:
        - {name: mail, arguments: {to: a}}
        - {name: mail, arguments: {to: 7}}
        - {name: post}
        - {name: mail, arguments: {to: b}}
    - {text: hello}
prompt: Hello
tools:
  - name: mail
    description: Mail.
    parameters: {type: object, properties: {to: {type: string}}, required: [to]}
    command: [echo, "{{ args.to }}"]
permissions: {allow: [mail], deny: ["mail(a)"]}
expect:
"""


@pytest.mark.parametrize(
    ("expectation", "told"),
    [
        ("{tool_called: {name: mail, times: 1}}", None),
        ("{tool_called: {name: mail, args: {to: b}, order: 4}}", None),
        ("{tool_called: {name: mail, times: 3, refused: true}}", None),
        ("{that: \"result.tool_calls | selectattr('ran') | list | length == 1\"}", None),
        (
            "{tool_called: {name: mail, args: {to: a}}}",
            'mail with {"to":"a"} was to be called; it was called never; the calls were: '
            'mail({"to":"a"}), not run, mail({"to":7}), not run, post({}), not run, '
            'mail({"to":"b"})',
        ),
        ("{tool_called: post}", "post was to be called; it was called never; the calls were: "),
        # That it was asked for is what was not expected.
        ("{tool_not_called: post}", "post was called once, first as post({}), not run"),
    ],
)
def test_a_call_that_was_refused_is_not_one_that_was_expected(
    pi_run: PiRun, spec: Write, expectation: str, told: str | None
) -> None:
    spec(text=REFUSED + f"  - {expectation}\n")
    done = pi_run("spec.yaml", "--log", "log.jsonl", "--quiet")
    assert done.returncode == (0 if told is None else 1), done.stderr
    assert (told or "") in done.stderr
    assert pi_run("replay", "log.jsonl").returncode == 0


WRONG = """\
version: 1
inputs: {a: {type: string, default: x}}
model: {provider: scripted, id: "m", script: [{text: hello}]}
prompt: Hello
"""


@pytest.mark.parametrize(
    ("old", "new", "code", "place"),
    [
        ("prompt: Hello", "prompt: |\n  Hello {{ inputs.a.b }}", 2, "4:9: prompt"),
        ("prompt:", 'system_prompt: "{{ inputs.a.b }}"\nprompt:', 2, "4:16: system_prompt"),
        ('"m"', '"{{ inputs.a.b }}"', 2, "3:33: model.id"),
        ("hello", '"{{ inputs.a.b }}"', 3, "3:46: model.script"),
        (
            "prompt:",
            'messages: [{role: user, text: "{{ inputs.a.b }}"}]\nprompt:',
            2,
            "4:31: messages[0].text",
        ),
    ],
)
def test_a_template_that_fails_is_told_with_its_place(
    pi_run: PiRun, spec: Write, old: str, new: str, code: int, place: str
) -> None:
    spec(text=WRONG.replace(old, new))
    done = pi_run("spec.yaml", "--log", "none", "--quiet")
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.endswith(f"spec.yaml:{place}: 'str object' has no attribute 'b'\n")
