"""The fixtures `run_spec` and `log_snapshot`."""

import sys
from collections.abc import Callable

import pytest

from runner import RunResult, SpecError, UsageError
from runner.api import RunOptions
from runner.pytest_plugin import RunSpec

pytest_plugins = ["pytester"]

Write = Callable[..., None]

NAMED = "inputs: {who: {type: string, default: me}}\n"
SNAPSHOT = """\
def test_it(run_spec, log_snapshot):
    result = run_spec("a.yaml")
    assert result.log == log_snapshot
"""


def test_run_spec_runs_a_spec_beside_the_test(pytester: pytest.Pytester, write: Write) -> None:
    folder = pytester.mkpydir("inner")
    write("'{{ inputs.who }}'", a=NAMED)
    (pytester.path / "a.yaml").rename(folder / "a.yaml")
    (folder / "test_a.py").write_text(
        "def test_it(run_spec, tmp_path):\n"
        "    assert run_spec('a.yaml', who='you').text == 'you'\n"
        "    assert run_spec('a.yaml', inputs={'who': 'they'}).text == 'they'\n"
        "    assert sorted(p.name for p in tmp_path.iterdir()) == ['a-2.jsonl', 'a.jsonl']\n",
        encoding="utf-8",
    )

    pytester.runpytest("inner/test_a.py").assert_outcomes(passed=1)


def test_run_spec_gives_a_result_with_a_log(
    pytester: pytest.Pytester, write: Write, run_spec: RunSpec
) -> None:
    write(a="expect: [{contains: bad}]\n")
    result = run_spec(pytester.path / "a.yaml")

    assert isinstance(result, RunResult)
    assert (result.status, result.path) == ("failed", "a.yaml")
    assert result.log is not None
    with open(result.log, encoding="utf-8") as log:
        assert '"t":' not in log.readline()


def test_run_spec_takes_options(pytester: pytest.Pytester, write: Write, run_spec: RunSpec) -> None:
    write("'{{ inputs.who }}{{ last.text }}'", a=NAMED)
    options = RunOptions(prompt=" well", values={"who": "all"}, log="own.jsonl")
    result = run_spec(pytester.path / "a.yaml", options=options)

    assert (result.text, result.log) == ("all well", "own.jsonl")


def test_run_spec_raises_what_is_wrong(
    pytester: pytest.Pytester, write: Write, run_spec: RunSpec
) -> None:
    write(a=NAMED, broken="promt: a\n")
    with pytest.raises(UsageError, match='no input is called "whom"'):
        run_spec(pytester.path / "a.yaml", whom="you")
    with pytest.raises(SpecError) as caught:
        run_spec(pytester.path / "broken.yaml")
    assert len(caught.traceback) == 2  # the test, and run_spec itself, which hides


def test_a_snapshot_is_a_log_in_canonical_form(pytester: pytest.Pytester, write: Write) -> None:
    write(a="")
    pytester.makepyfile(test_a=SNAPSHOT)
    missing = pytester.runpytest()
    missing.assert_outcomes(failed=1)
    missing.stdout.fnmatch_lines(["*pytest --snapshot-update writes it, unless CI is set*"])
    pytester.runpytest("--snapshot-update").assert_outcomes(passed=1)

    snapshot = pytester.path / "__snapshots__" / "test_a" / "test_it.jsonl"
    written = snapshot.read_text(encoding="utf-8")
    assert written.startswith('{"seq":0,"type":"run_start"')
    assert '"run_id"' not in written
    pytester.runpytest().assert_outcomes(passed=1)


def test_record_writes_a_snapshot_where_there_is_none(
    pytester: pytest.Pytester, write: Write
) -> None:
    write(a="")
    pytester.makepyfile(test_a=SNAPSHOT)
    pytester.runpytest("--record", "test_a.py").assert_outcomes(passed=1)
    write("another", a="")

    pytester.runpytest("--record", "test_a.py").assert_outcomes(failed=1)


def test_a_snapshots_difference_is_told_by_turn_and_path(
    pytester: pytest.Pytester, write: Write
) -> None:
    write(a="")
    pytester.makepyfile(test_a=SNAPSHOT)
    pytester.runpytest("--snapshot-update").assert_outcomes(passed=1)
    spec = pytester.path / "a.yaml"
    spec.write_text("# A comment.\n" + spec.read_text("utf-8"), encoding="utf-8")
    pytester.runpytest().assert_outcomes(passed=1)
    write("all is bad", a="")
    result = pytester.runpytest("-vv")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E*turn 1:",
            "E*message_end.message.content[[]0[]].text",
            "E*- all is well",
            "E*+ all is bad",
        ]
    )


def test_no_snapshot_is_written_while_ci_is_set(
    pytester: pytest.Pytester, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(a="")
    pytester.makepyfile(
        test_a=SNAPSHOT + "\ndef test_other(run_spec, log_snapshot):\n"
        "    assert run_spec('a.yaml') == log_snapshot\n"
    )
    pytester.runpytest("--snapshot-update").assert_outcomes(passed=2)
    folder = pytester.path / "__snapshots__" / "test_a"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    write("all is bad", a="")
    pytester.makepyfile(test_a=SNAPSHOT + SNAPSHOT.replace("test_it", "test_new"))
    monkeypatch.setenv("CI", "1")

    for option in ("--snapshot-update", "--record"):
        pytester.runpytest(option, "test_a.py").assert_outcomes(failed=2)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_an_edited_snapshot_is_told(pytester: pytest.Pytester, write: Write) -> None:
    write(a="")
    pytester.makepyfile(test_a=SNAPSHOT)
    pytester.runpytest("--snapshot-update").assert_outcomes(passed=1)
    snapshot = pytester.path / "__snapshots__" / "test_a" / "test_it.jsonl"
    snapshot.write_text("<<<<<<< HEAD\n" + snapshot.read_text("utf-8"), encoding="utf-8")
    result = pytester.runpytest()

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*the snapshot's line 1 is not JSON: *"])


@pytest.mark.slow
def test_snapshots_work_under_xdist(pytester: pytest.Pytester, write: Write) -> None:
    write(a="")
    pytester.makepyfile(test_a=SNAPSHOT, test_b=SNAPSHOT)

    pytester.runpytest_subprocess("-n", "2", "--snapshot-update").assert_outcomes(passed=2)
    pytester.runpytest_subprocess("-n", "2").assert_outcomes(passed=2)


def test_without_syrupy_only_its_fixture_fails(
    pytester: pytest.Pytester, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(a="expect: [{contains: well}]\n")
    pytester.makepyfile(test_a=SNAPSHOT)
    turned_off = pytester.runpytest("-p", "no:syrupy")
    turned_off.assert_outcomes(passed=1, errors=1)
    monkeypatch.delitem(sys.modules, "runner.pytest_plugin.snapshot", raising=False)
    monkeypatch.setitem(sys.modules, "syrupy.assertion", None)
    result = pytester.runpytest("-p", "no:syrupy")

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*log_snapshot needs the plug-in syrupy; pip install *"])


def test_the_plug_in_imports_nothing_heavy(pytester: pytest.Pytester) -> None:
    code = (
        "import pytest, sys; before = set(sys.modules); import runner.pytest_plugin; "
        "print(sorted(set(sys.modules) - before))"
    )
    result = pytester.run(sys.executable, "-c", code)

    result.stdout.fnmatch_lines(
        [
            "[[]'runner', 'runner.pytest_plugin', 'runner.pytest_plugin.detect', "
            "'runner.pytest_plugin.run'[]]"
        ]
    )
