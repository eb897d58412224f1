"""Which files are tests, and what is told of them."""

import os
import xml.etree.ElementTree as ET
from collections.abc import Callable

import pytest

pytest_plugins = ["pytester"]

Write = Callable[..., None]

WELL = "expect: [{contains: well}]\n"
BAD = "expect:\n  - contains: well\n  - contains: bad\n"

FOREIGN = {
    "compose": 'version: "3.8"\nname: shop\nservices: {web: {image: nginx}}\n',
    "workflow": "name: CI\non: push\nenv: {A: b}\njobs: {}\n",
    "eslint": "root: true\nextends: eslint:recommended\nenv: {node: true}\nrules: {}\n",
    "llm template": "model: gpt-5-mini\nprompt: Sum it up.\nsystem: Be short.\n",
    "GitHub prompt": "name: a\nmodel: openai/gpt-5\nmessages: [{role: user}]\n",
    "logging": "version: 1\nformatters: {}\nhandlers: {}\nroot: {}\n",
    "chart": "apiVersion: v2\nname: a\nversion: 1.0.0\n",
    "list": "- model: {}\n- prompt: a\n",
    "nested": "a:\n  version: 1\n  model: {}\n  prompt: a\n",
    "JSON": '{"version": 1, "services": {}}\n',
    "broken": "a: [\n",
    "empty": "",
}


def test_a_spec_that_expects_something_is_a_test(pytester: pytest.Pytester, write: Write) -> None:
    write(
        contains=WELL,
        output="output: {schema: {type: string}}\nexpect: [{that: 'result.turns == 1'}]\n",
        task="follow_ups: {tasks: [{id: a, when: 'false', prompt: a, expect: [{contains: a}]}]}\n",
    )
    result = pytester.runpytest("-v")

    assert "contains.yaml::expect PASSED" in result.stdout.str()
    assert "output.yaml::expect FAILED" in result.stdout.str()
    assert "task.yaml::expect PASSED" in result.stdout.str()
    result.assert_outcomes(passed=2, failed=1)


@pytest.mark.parametrize("text", FOREIGN.values(), ids=FOREIGN)
def test_other_yaml_is_left_alone(pytester: pytest.Pytester, text: str) -> None:
    (pytester.path / "other.yaml").write_text(text, encoding="utf-8")
    (pytester.path / "other.yml").write_bytes(text.encode() + b"\xff")

    assert pytester.runpytest().ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert pytester.runpytest("other.yaml").ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + "version: 1\nmodel: {provider: scripted, script: [{text: well}]}\n"
        "prompt: a\nexpect: [{contains: well}]\n",
        "model:\r\n  provider: scripted\r\n  script: [{text: well}]\r\n"
        "prompt: a\r\nexpect: [{contains: well}]\r\n",
        '"model" : {provider: scripted, script: [{text: well}]}\n'
        "'prompt': a\n'expect': [{contains: well}]\n",
        '{"model": {"provider": "scripted", "script": [{"text": "well"}]},\n'
        '"prompt": "a", "expect": [{"contains": "well"}]}\n',
    ],
    ids=["byte order mark", "CRLF and no version", "quoted", "flow"],
)
def test_a_spec_is_told_however_it_is_written(pytester: pytest.Pytester, text: str) -> None:
    (pytester.path / "a.yml").write_bytes(text.encode())

    pytester.runpytest().assert_outcomes(passed=1)


@pytest.mark.timeout(20)
def test_pipes_are_not_waited_for(pytester: pytest.Pytester, write: Write) -> None:
    write(good=WELL)
    for name in ("a.yaml", "good.jsonl"):
        os.mkfifo(pytester.path / name)

    pytester.runpytest().assert_outcomes(passed=1)


def test_each_expectation_that_is_not_met_is_shown(pytester: pytest.Pytester, write: Write) -> None:
    write(bad=BAD + "  - tool_called: add\n")
    result = pytester.runpytest()

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "_* bad.yaml: expect _*",
            ">   - contains: bad",
            "E   contains: 'bad' is not in 'all is well'",
            "",
            "bad.yaml:6: expectation not met",
            "",
            ">   - tool_called: add",
            "E   tool_called: add was to be called; it was called never; *",
            "",
            "bad.yaml:7: expectation not met",
            "",
            "log: */bad-1.jsonl",
            "FAILED bad.yaml::expect - 2 of 3 expectations not met: contains: *",
        ],
    )


def test_an_expectation_is_shown_where_it_stands(pytester: pytest.Pytester, write: Write) -> None:
    write(base=BAD)
    (pytester.path / "over.yaml").write_text("extends: base.yaml\nprompt: b\n", encoding="utf-8")
    result = pytester.runpytest("over.yaml", "--tb=line")

    result.stdout.fnmatch_lines(["base.yaml:6: expectation not met: contains: *"])


def test_a_run_that_ends_badly_fails(pytester: pytest.Pytester, write: Write) -> None:
    write(short=WELL + "follow_ups: {messages: [{text: more}]}\n")

    result = pytester.runpytest()
    result.stdout.fnmatch_lines(["E   the run ended as error: *", "short.yaml:1: error"])


def test_a_broken_spec_fails_with_all_its_faults(pytester: pytest.Pytester, write: Write) -> None:
    write(broken="promt: a\nexpect: [{contain: a}]\n", good=WELL)
    (pytester.path / "syntax.yaml").write_text("version: 1\nmodel: {\nexpect: [\n", "utf-8")
    result = pytester.runpytest()

    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        [
            "E   broken.yaml:4:1: promt: unknown key; did you mean *",
            "broken.yaml:4: promt",
            'E   broken.yaml:5:11: expect[[]0[]].contain: unknown key; did you mean "contains"?',
            "E   syntax.yaml:4:1: *: this is not well-formed YAML: *",
        ]
    )


def test_what_is_missing_fails(pytester: pytest.Pytester, write: Write) -> None:
    write(env="env: [NOT_SET]\nsystem_prompt: '{{ env.NOT_SET }}'\n" + WELL)
    write(inputs="inputs: {text: {type: string}}\n" + WELL)
    (pytester.path / "key.yaml").write_text(
        "model: {provider: openai, id: a, api_key: {env: NO_SUCH_KEY}}\nprompt: a\n" + WELL, "utf-8"
    )
    result = pytester.runpytest()

    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(
        [
            "E   env.yaml:*: the environment name NOT_SET is not set; *",
            'E   the input "text" is missing; *',
            "a spec that `extends` this one can give its inputs a `default`*",
            "E   *NO_SUCH_KEY*",
        ]
    )


def test_a_spec_that_expects_nothing_fails_where_it_is_named_and_in_a_ci(
    pytester: pytest.Pytester, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(quiet="", good=WELL)

    everything = pytester.runpytest()
    everything.assert_outcomes(passed=1)
    told = "pi-run: not tested, since nothing is expected: quiet.yaml"
    everything.stdout.fnmatch_lines([told])
    named = pytester.runpytest("quiet.yaml")
    named.assert_outcomes(failed=1)
    named.stdout.fnmatch_lines(["E   nothing is expected of it; add `expect` or *--record"])
    monkeypatch.setenv("CI", "true")
    pytester.runpytest().assert_outcomes(passed=1, failed=1)
    (pytester.path / "over.yaml").write_text(f"extends: quiet.yaml\n{WELL}", encoding="utf-8")
    pytester.runpytest().assert_outcomes(passed=2, deselected=1)


def test_a_part_of_others_is_left_to_their_tests(pytester: pytest.Pytester, write: Write) -> None:
    needs = "inputs: {text: {type: string}}\noutput: {schema: {type: string}}\n"
    write("'\"well\"'", agent=needs, base=needs, judge=needs, alone=needs)
    write(chain=f"tools: [{{agent: agent.yaml}}]\n{WELL}")
    write("'\"well\"'", sub="output: {schema: {type: string}}\n")
    write(task="follow_ups: {tasks: [{id: a, agent: sub.yaml}]}\n" + WELL)
    (pytester.path / "over.yaml").write_text(
        "extends: base.yaml\ninputs: {text: {default: hello}}\n", encoding="utf-8"
    )
    (pytester.path / "judge.yaml").unlink()
    result = pytester.runpytest("-v")

    # What can be run by itself is a test, whoever else uses it; what nobody uses is one, too.
    result.assert_outcomes(passed=4, failed=1, deselected=2)
    assert "alone.yaml::expect FAILED" in result.stdout.str()
    assert "sub.yaml::expect PASSED" in result.stdout.str()
    pytester.runpytest("base.yaml", "over.yaml").assert_outcomes(passed=1, failed=1)


def test_pytest_can_choose_among_them(pytester: pytest.Pytester, write: Write) -> None:
    write(a_good=WELL, b_bad=BAD, c_bad=BAD)

    pytester.runpytest("-k", "good").assert_outcomes(passed=1, deselected=2)
    pytester.runpytest("b_bad.yaml::expect").assert_outcomes(failed=1)
    pytester.runpytest("-x").assert_outcomes(passed=1, failed=1)
    write(b_bad=WELL)
    pytester.runpytest("--lf").assert_outcomes(passed=1)
    result = pytester.runpytest("--collect-only", "-q")
    result.stdout.fnmatch_lines(["a_good.yaml::expect", "b_bad.yaml::expect"])


def test_a_pattern_says_which_files_are_specs(pytester: pytest.Pytester, write: Write) -> None:
    write(a=WELL, b=WELL)

    pytester.runpytest("-o", "pi_run_specs=a*.yaml").assert_outcomes(passed=1)
    pytester.runpytest("-o", "pi_run_specs=a*.yaml", "b.yaml").assert_outcomes(passed=1)


def test_it_can_be_turned_off(pytester: pytest.Pytester, write: Write) -> None:
    write(a=WELL)

    result = pytester.runpytest("-p", "no:pi_run")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_junit_has_them(pytester: pytest.Pytester, write: Write) -> None:
    write(good=WELL, bad=BAD)
    pytester.runpytest("--junitxml=junit.xml")

    root = ET.parse(pytester.path / "junit.xml").getroot()
    cases = {case.get("classname"): case for case in root.iter("testcase")}
    assert list(cases) == ["bad.yaml", "good.yaml"]
    failure = cases["bad.yaml"].find("failure")
    assert failure is not None
    assert failure.get("message") == (
        "expectation not met: contains: 'bad' is not in 'all is well'"
    )
    assert "bad.yaml:6: expectation not met" in str(failure.text)


def test_a_good_run_leaves_nothing_behind(
    pytester: pytest.Pytester, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = pytester.mkdir("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    write(good=WELL)
    before = set(pytester.path.glob("*"))
    pytester.runpytest("-p", "no:cacheprovider").assert_outcomes(passed=1)

    assert set(pytester.path.glob("*")) == before
    assert list(folder.iterdir()) == []


@pytest.mark.slow
def test_it_works_under_xdist(pytester: pytest.Pytester, write: Write) -> None:
    write(**{f"good{n}": WELL for n in range(3)}, bad=BAD)
    write(part="inputs: {text: {type: string}}\n" + WELL)
    (pytester.path / "over.yaml").write_text(
        "extends: part.yaml\ninputs: {text: {default: hello}}\n", encoding="utf-8"
    )
    result = pytester.runpytest_subprocess("-n", "2")

    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(
        [
            "E   contains: 'bad' is not in 'all is well'",
            "FAILED bad.yaml::expect - expectation not met: contains: *",
        ]
    )
