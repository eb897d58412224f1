"""Built-in tools as runs have them: bounded, held to the run's rules, played back."""

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from runner import run_spec
from runner.api import RunOptions, RunResult
from runner.api.replay import replay
from runner.api.resume import ResumeOptions, Resumption
from runner.thread import run_in_loop

SCHEMA = {
    "type": "object",
    "properties": {"label": {"type": "string"}},
    "required": ["label"],
    "additionalProperties": False,
}
Turn = list[tuple[str, dict[str, Any]]] | str


class Runs:
    """Runs specs whose model calls what it is told to, and replays each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = folder / "room"
        self.workspace.mkdir()
        self.log = folder / "log.jsonl"
        self.results: list[tuple[bool, str]] = []
        """Of each call: whether it is an error, and its text."""

    def __call__(self, tools: list[Any], *turns: Turn, **more: Any) -> RunResult:
        script: list[Any] = [
            {"text": turn}
            if isinstance(turn, str)
            else {"tool_calls": [{"name": name, "arguments": args} for name, args in turn]}
            for turn in turns
        ]
        model = {"provider": "scripted", "script": script}
        spec = {"version": 1, "model": model, "prompt": "Hello", "tools": tools, **more}
        path = self.folder / "spec.yaml"
        path.write_text(json.dumps(spec), "utf-8")
        self.log.unlink(missing_ok=True)
        events: list[dict[str, Any]] = []
        options = RunOptions(log=str(self.log), workspace=str(self.workspace))
        result = run_spec(path, on_event=events.append, options=options)
        assert replay(self.log).difference is None
        ends = [event["message"] for event in events if event["type"] == "message_end"]
        self.results = [
            (message["is_error"], "".join(b.get("text", "") for b in message["content"]))
            for message in ends
            if message["role"] == "tool_result"
        ]
        return result


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


# --- finish ---------------------------------------------------------------------------------------


def test_finish_gives_the_output(runs: Runs) -> None:
    wrong: Turn = [("finish", {"label": 5})]
    result = runs(
        ["finish"], wrong, [("finish", {"label": "bug"})], "never", output={"schema": SCHEMA}
    )
    assert (result.status, result.output, result.turns) == ("ok", {"label": "bug"}, 2)
    assert json.loads(result.text) == {"label": "bug"}
    assert [is_error for is_error, _ in runs.results] == [True, False]


@pytest.mark.parametrize(
    ("schema", "answer"),
    [
        (
            {"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer"}}},
            [1],
        ),
        ({"type": "string"}, "plain"),
        ({"enum": [1, "two", None]}, "two"),
    ],
)
def test_any_answer_can_be_given(runs: Runs, schema: dict[str, Any], answer: Any) -> None:
    wrong: Turn = [("finish", {"answer": {}})]
    result = runs(["finish"], wrong, [("finish", {"answer": answer})], output={"schema": schema})
    assert (result.status, result.output) == ("ok", answer)


def test_without_a_schema_finish_gives_the_text(runs: Runs) -> None:
    result = runs(["finish"], [("finish", {"answer": "all done"})])
    assert (result.status, result.text, result.output) == ("ok", "all done", None)


def test_finish_beside_another_call_ends_nothing(runs: Runs) -> None:
    both: Turn = [("finish", {"label": "x"}), ("todo", {})]
    result = runs(["finish", "todo"], both, '{"label": "y"}', output={"schema": SCHEMA})
    assert (result.turns, result.output) == (2, {"label": "y"})


def test_a_long_answer_stays_whole(runs: Runs) -> None:
    label = "x" * 100_000
    result = runs(["finish"], [("finish", {"label": label})], output={"schema": SCHEMA})
    assert result.output == {"label": label}


# --- todo and ask_user ----------------------------------------------------------------------------

ITEMS = [{"text": "read", "status": "done"}, {"text": "write"}]


def test_a_list_is_kept_over_a_resume(runs: Runs) -> None:
    result = runs(
        ["todo"],
        [("todo", {"items": ITEMS})],
        [("todo", {})],
        "{{ last.text }}",
        limits={"turns": 1},
    )
    assert result.status == "limit"
    resumed = Resumption(runs.log, ResumeOptions(sets=[("limits.turns", "9")]))
    assert run_in_loop(resumed.run()).text == "[x] read\n[ ] write"


def test_a_list_is_its_own_agents(runs: Runs) -> None:
    runs(["todo"], [("todo", {})], [("todo", {"items": ITEMS})], [("todo", {"items": []})], "x")
    assert [text for _, text in runs.results] == [
        "The list is empty.",
        "[x] read\n[ ] write",
        "The list is empty.",
    ]


def test_nobody_can_be_asked_without_a_terminal(runs: Runs) -> None:
    runs(["ask_user"], [("ask_user", {"question": "Which?"})], "x")
    ((is_error, text),) = runs.results
    assert is_error
    assert text.startswith("Nobody can be asked")


# --- python ---------------------------------------------------------------------------------------


def test_python_runs_code_apart(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN_OF_MINE", "t")
    monkeypatch.setenv("PYTHONSTARTUP", "/x")
    (runs.workspace / "json.py").write_text("raise SystemExit('taken')", "utf-8")
    code = "import json, os, sys\nprint(os.getcwd(), sorted(os.environ), sys.stdin.read())\n"
    long = f"{code}# {'x' * 300_000}"  # no argument of a program may be as long
    runs(
        ["python"],
        [("python", {"code": code}), ("python", {"code": long}), ("python", {"code": ""})],
        [("python", {"code": "print('ü'); 1/0"}), ("python", {"code": "a\0b"})],
        "x",
    )
    plain, much, nothing, failed, broken = runs.results
    assert plain == much
    assert not plain[0]
    assert str(runs.workspace) in plain[1]
    assert "TOKEN_OF_MINE" not in plain[1]
    assert "PYTHON" not in plain[1]
    assert nothing == (False, "")
    assert failed[0]
    assert failed[1].startswith("ü\n")
    assert "ZeroDivisionError" in failed[1]
    assert broken[0]


def test_what_python_starts_ends_with_it(runs: Runs) -> None:
    code = "import subprocess as s; print(s.Popen(['sleep', '60']).pid)"
    runs([{"use": "python", "timeout": 20}], [("python", {"code": code})], "x")
    (_, text) = runs.results[0]
    stat = Path(f"/proc/{int(text)}/stat")
    assert not stat.exists() or stat.read_text("utf-8").rpartition(")")[2].split()[0] in "ZX"


# --- long outputs ---------------------------------------------------------------------------------


def left_folders() -> set[str]:
    return {str(each) for each in Path(tempfile.gettempdir()).glob("pi-run-outputs-*")}


def test_a_long_output_is_cut_and_kept_while_the_run_lasts(runs: Runs) -> None:
    before = left_folders()
    path = "$PI_RUN_OUTPUTS/call_1.txt"
    tools: list[Any] = ["shell", "read_file", "write_file"]
    tools.append({"name": "count", "description": "x", "command": ["seq", "20000"]})
    runs(
        tools,
        [("shell", {"command": "seq 20000"}), ("count", {})],
        [
            ("read_file", {"path": path, "offset": 10_000, "limit": 1}),
            ("shell", {"command": f"wc -l < {path}"}),
            ("read_file", {"path": "$PI_RUN_OUTPUTS/../x"}),
            ("read_file", {"path": "$PI_RUN_OUTPUTS/.lock/x"}),
            ("read_file", {"path": "$PI_RUN_OUTPUTS/call_9.txt"}),
        ],
        "x",
    )
    long, counted, read, wc, *outside = runs.results
    for _, text in (long, counted):
        assert len(text) < 50_200
        assert text.startswith("1\n2\n")
        assert text.endswith("19999\n20000\n")
        assert "characters are left out here; $PI_RUN_OUTPUTS/call_" in text
    assert read[1].startswith("10000\n[")
    assert wc[1].strip() == "20000"
    assert [is_error for is_error, _ in outside] == [True, True, True]
    assert left_folders() <= before


def test_what_a_killed_run_left_is_swept_away(runs: Runs) -> None:
    left = Path(tempfile.mkdtemp(prefix="pi-run-outputs-"))
    (left / ".lock").touch()
    (left / "call_1.txt").touch()
    runs(["shell"], [("shell", {"command": "seq 20000"})], "x")
    assert not left.exists()


# --- read-only runs -------------------------------------------------------------------------------

CALLS: dict[str, dict[str, Any]] = {
    "write_file": {"path": "a.txt", "content": "x"},
    "edit_file": {"path": "b.txt", "edits": [{"old": "b", "new": "x"}]},
    "shell": {"command": "touch made"},
    "python": {"code": "open('made', 'w')"},
    "fetch": {"url": "http://127.0.0.1:1/", "method": "POST"},
}


@pytest.mark.parametrize("name", CALLS)
def test_a_read_only_run_changes_nothing(runs: Runs, name: str) -> None:
    (runs.workspace / "b.txt").write_text("b", "utf-8")
    runs([name], [(name, CALLS[name])], "x", read_only=True)
    ((is_error, text),) = runs.results
    assert is_error
    assert "read-only" in text
    assert [each.name for each in runs.workspace.iterdir()] == ["b.txt"]
    assert (runs.workspace / "b.txt").read_text("utf-8") == "b"


def test_what_only_reads_is_run(runs: Runs) -> None:
    (runs.workspace / "b.txt").write_text("b", "utf-8")
    command = {"name": "cat", "description": "x", "command": ["cat", "b.txt"], "read_only": True}
    shell = {"use": "shell", "allow": ["cat *"], "read_only": True}
    calls: Turn = [
        ("read_file", {"path": "b.txt"}),
        ("list_files", {}),
        ("search_files", {"pattern": "b"}),
        ("cat", {}),
        ("shell", {"command": "cat b.txt"}),
    ]
    tools = ["read_file", "list_files", "search_files", command, shell]
    runs(tools, calls, "x", read_only=True)
    assert not any(is_error for is_error, _ in runs.results)


def test_an_agent_is_no_way_around(runs: Runs) -> None:
    inner = {
        "version": 1,
        "model": {
            "provider": "scripted",
            "script": [
                {"tool_calls": [{"name": "shell", "arguments": {"command": "touch made"}}]},
                {"text": "{{ last.text }}"},
            ],
        },
        "prompt": "x",
        "tools": ["shell"],
    }
    (runs.folder / "inner.yaml").write_text(json.dumps(inner), "utf-8")
    runs([{"agent": "./inner.yaml", "name": "inner"}], [("inner", {})], "x", read_only=True)
    assert "read-only" in runs.results[-1][1]
    assert not (runs.workspace / "made").exists()


# --- at once --------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2])
def test_no_more_calls_at_once_than_a_tool_may_have(runs: Runs, count: int) -> None:
    script = "mkdir busy.$1; ls -d busy.* | wc -l; sleep 0.05; rmdir busy.$1"
    tool = {
        "name": "work",
        "description": "x",
        "command": ["sh", "-c", script, "sh", "{{ args.n }}"],
        "concurrency": count,
    }
    calls: Turn = [("work", {"n": number}) for number in range(4)]
    runs([tool], calls, "x")
    assert {int(text) for _, text in runs.results} <= set(range(1, count + 1))


def test_the_wait_for_its_turn_is_not_a_calls_own_time(runs: Runs) -> None:
    tool = {
        "name": "work",
        "description": "x",
        "command": ["sh", "-c", "sleep 0.4; echo done"],
        "concurrency": 1,
        "timeout": 1.4,
    }
    runs([tool], [("work", {}) for _ in range(4)], "x")
    assert runs.results == [(False, "done\n")] * 4


# --- a plug-in's ----------------------------------------------------------------------------------


BROKEN = {
    "bad": "plug_in_of_a_test:no",
    "lost": "No module named",
    "leaving": "SystemExit: 9",
    "no name": "is no name for a tool",
}


def test_a_plug_in_brings_a_tool(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    info = site / "plug-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plug\nVersion: 1.0\n", "utf-8")
    points = "[pi_run.tools]\ngreet = plug_in_of_a_test:greet\nhi = plug_in_of_a_test:greet\n"
    points += "bad = plug_in_of_a_test:no\nlost = no_module_of_a_test:no\n"
    points += "leaving = plug_in_that_leaves:no\nno name = plug_in_of_a_test:greet\n"
    (site / "plug_in_that_leaves.py").write_text("raise SystemExit(9)", "utf-8")
    (info / "entry_points.txt").write_text(points, "utf-8")
    source = "def greet(name: str) -> str:\n    'Greet.'\n    return f'hello {name}'\n"
    (site / "plug_in_of_a_test.py").write_text(source, "utf-8")
    monkeypatch.syspath_prepend(str(site))
    runs(["greet", "hi"], [("greet", {"name": "you"}), ("hi", {"name": "me"})], "x")
    assert runs.results == [(False, "hello you"), (False, "hello me")]
    from runner.api import tools
    from runner.error import SpecError

    listed = {each["name"]: each for each in tools()}
    assert "parameters" in listed["read_file"]
    assert listed["greet"]["source"] == "plug-in plug_in_of_a_test:greet"
    for name, why in BROKEN.items():
        assert f'"{name}"' in listed[name]["problem"]
        assert why in listed[name]["problem"]
    with pytest.raises(SpecError, match="plug_in_of_a_test:no"):
        runs(["bad"], "x")
