"""Runs of specs with MCP servers: what their logs say, and that nothing is left of them."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from runner import api
from runner.api.fork import Fork, ForkOptions
from runner.api.replay import replay
from runner.api.resume import ResumeOptions, Resumption
from runner.error import RunError

ODD = Path(__file__).with_name("odd_server.py")
COMMAND = str(Path(sysconfig.get_path("scripts")) / "pi-run")
SECRET = "tok-9f8e7d6c5b4a"


def alive(mark: str) -> list[str]:
    """The command lines of all processes that have this in their environment or command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        if folder.name == str(os.getpid()):
            continue
        try:
            line = (folder / "cmdline").read_bytes()
            if line and (
                mark.encode() in line or mark.encode() in (folder / "environ").read_bytes()
            ):
                found.append(line.replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty current folder; what is started with its name is gone at the end."""
    work, temporary = tmp_path / "work", tmp_path / "tmp"
    work.mkdir()
    temporary.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("TMPDIR", str(temporary))
    for name in [name for name in os.environ if name.startswith("PI_RUN_")]:
        monkeypatch.delenv(name)
    yield work
    assert gone(str(tmp_path)) == []
    assert list(temporary.iterdir()) == []


def gone(mark: str) -> list[str]:
    """What is alive still, once it had the time to end."""
    late = time.monotonic() + 5
    while alive(mark) and time.monotonic() < late:
        time.sleep(0.02)
    return alive(mark)


def odd(folder: Path, mode: str = "", **more: Any) -> dict[str, Any]:
    command = [sys.executable, "-S", str(ODD), mode, str(folder / "notes")]
    return {"mcp": {"name": "odd", "command": command, **more}}


def spec(folder: Path, replies: list[Any], *tools: Any, name: str = "s", **more: Any) -> str:
    whole = {
        "version": 1,
        "model": {"provider": "scripted", "script": replies},
        "prompt": "Go.",
        "tools": list(tools),
        **more,
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump(whole), "utf-8")
    return str(path)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


LAST = {"text": "{{ last.text }}"}


def run(path: str, **options: Any) -> tuple[api.RunResult, list[dict[str, Any]]]:
    events: list[dict[str, Any]] = []
    result = api.run_spec(path, on_event=events.append, options=api.RunOptions(**options))
    return result, events


def of_type(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["type"] == kind]


def test_run_calls_a_server_and_its_log_replays_without_one(folder: Path) -> None:
    path = spec(folder, [call("odd_progress"), call("odd_echo", text="hi"), LAST], odd(folder))
    result, events = run(path, log="a.jsonl")
    assert (result.status, result.text) == ("ok", "hi")
    assert [e["update"]["progress"] for e in of_type(events, "tool_execution_update")] == [1, 2, 3]
    assert (folder / "notes").read_text("utf-8").count("start") == 1
    replayed = replay("a.jsonl")
    assert replayed.difference is None
    assert (folder / "notes").read_text("utf-8").count("start") == 1


def test_servers_errors_are_the_models(folder: Path) -> None:
    replies = [call("odd_fail"), call("odd_error"), call("odd_lie"), call("odd_die"), LAST]
    _, events = run(spec(folder, replies, odd(folder)), log="a.jsonl")
    ends = of_type(events, "tool_execution_end")
    assert all(end["is_error"] for end in ends)
    said = [end["result"]["content"][0]["text"] for end in ends]
    assert said[:2] == ["it did not work", "no such thing"]
    assert "what is no MCP" in said[2]
    assert "signal 9; it said: I can't go on" in said[3]
    assert replay("a.jsonl").difference is None


def test_call_that_hangs_has_its_time(folder: Path) -> None:
    entry = {**odd(folder), "timeout": 0.3}
    result, events = run(spec(folder, [call("odd_hang"), LAST], entry))
    assert result.status == "ok"
    (end,) = of_type(events, "tool_execution_end")
    assert end["stopped"] == "timed out after 0.3 s"


def test_server_that_has_to_start_and_does_not_is_the_runs_end(folder: Path) -> None:
    path = spec(folder, [LAST], odd(folder, "exit"))
    result, events = run(path, log="a.jsonl")
    assert (result.status, result.exit_code) == ("error", 3)
    assert result.error == (
        "the MCP server odd: it ended before it had started; it ended with exit code 7; "
        "it said: the key is missing"
    )
    kinds = [event["type"] for event in events]
    assert kinds == ["run_start", "tool_unavailable", "run_end"]
    assert replay("a.jsonl").difference is None


def test_server_that_need_not_start_is_told_as_unavailable(folder: Path) -> None:
    entry = odd(folder, "exit", required=False)
    result, events = run(spec(folder, [{"text": "without"}], entry), log="a.jsonl")
    assert (result.status, result.text) == ("ok", "without")
    (line,) = of_type(events, "tool_unavailable")
    assert line["tool"] == "odd"
    assert "the key is missing" in line["reason"]
    assert replay("a.jsonl").difference is None


def test_tools_that_no_model_can_be_given_are_told_as_unavailable(folder: Path) -> None:
    _, events = run(spec(folder, [{"text": "x"}], odd(folder, "odd schemas")), log="a.jsonl")
    told = [line["tool"] for line in of_type(events, "tool_unavailable")]
    assert told == ["odd: invalid", "odd: huge", "odd: deep"]
    assert replay("a.jsonl").difference is None


def test_servers_start_at_the_same_time(folder: Path) -> None:
    entries = [
        odd(folder, "silent", name=f"s{n}", required=False, start_timeout=0.5) for n in range(8)
    ]
    began = time.monotonic()
    result, events = run(spec(folder, [{"text": "x"}], *entries))
    # One after the other they would take this long by their timeouts alone.
    assert time.monotonic() - began < 8 * 0.5 + 3
    assert result.status == "ok"
    assert len(of_type(events, "tool_unavailable")) == 8


def test_server_gets_a_few_variables_and_its_own_whose_secrets_nobody_reads(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ODD_TOKEN", SECRET)
    monkeypatch.setenv("OTHER_TOKEN", "not for it")
    token = {"env": "ODD_TOKEN", "prefix": "Bearer "}
    entry = odd(folder, env={"PLAIN": "{{ run.name }}", "TOKEN": token})
    result, _ = run(spec(folder, [call("odd_env"), LAST], entry), log="a.jsonl")
    env = json.loads(result.text)
    assert env["PLAIN"] == "s"
    assert env["TOKEN"] == "Bearer [secret:ODD_TOKEN]"
    assert "PATH" in env
    assert not {"OTHER_TOKEN", "ODD_TOKEN"} & env.keys()
    assert SECRET not in Path("a.jsonl").read_text("utf-8")


def test_secret_that_a_server_tells_as_it_dies_is_told_by_nobody(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ODD_TOKEN", SECRET)
    command = ["sh", "-c", 'echo "wrong: $TOKEN" >&2; exit 1']
    entry = {"mcp": {"name": "odd", "command": command, "env": {"TOKEN": {"env": "ODD_TOKEN"}}}}
    path = spec(folder, [LAST], entry)
    result, events = run(path, log="a.jsonl")
    assert result.error is not None
    assert result.error.endswith("it said: wrong: [secret:ODD_TOKEN]")
    with pytest.raises(RunError, match=r"wrong: \[secret:ODD_TOKEN\]"):
        api.tools(path)
    said = capfd.readouterr()
    assert SECRET not in Path("a.jsonl").read_text("utf-8") + json.dumps(events) + "".join(said)


def test_sdk_that_is_not_installed_is_a_fault_of_the_spec(folder: Path) -> None:
    path = spec(folder, [LAST], odd(folder))
    code = (
        f"import sys; sys.modules['mcp'] = None; from runner import api; print(api.check({path!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "the MCP SDK is not installed; do: pip install 'pi-run[mcp]'" in done.stdout


def test_server_runs_in_the_workspace_or_where_its_spec_says(folder: Path) -> None:
    (folder / "below").mkdir()
    there, _ = run(spec(folder, [call("odd_cwd"), LAST], odd(folder)), workspace="below")
    assert there.text == str(folder / "below")
    named, _ = run(spec(folder, [call("odd_cwd"), LAST], odd(folder, cwd="below")))
    assert named.text == str(folder / "below")


def test_agents_of_a_run_have_their_own_servers(folder: Path) -> None:
    spec(folder, [call("odd_echo", text="deep"), LAST], odd(folder), name="inner")
    path = spec(folder, [call("inner"), LAST], {"agent": "inner.yaml"})
    result, _ = run(path, log="a.jsonl")
    assert result.text == "deep"
    assert replay("a.jsonl").difference is None


def test_names_of_the_specs_own_tools_are_kept(folder: Path) -> None:
    own = {"name": "odd_echo", "description": "mine", "command": ["echo", "mine"]}
    result, events = run(spec(folder, [call("odd_echo"), LAST], odd(folder), own))
    assert result.text.strip() == "mine"
    names = [tool["name"] for tool in events[0]["plan"]["resolved"]["tools"]]
    assert len(set(names)) == len(names)


def test_resumed_run_starts_its_servers_and_calls_them(folder: Path) -> None:
    replies = [call("odd_echo", text="one"), call("odd_echo", text="two"), LAST]
    path = spec(folder, replies, odd(folder), limits={"turns": 1})
    first, _ = run(path, log="a.jsonl")
    assert first.status == "limit"
    options = ResumeOptions(sets=[("limits.turns", "9")])
    resumed = asyncio.run(Resumption("a.jsonl", options).run())
    assert (resumed.status, resumed.text) == ("ok", "two")
    notes = (folder / "notes").read_text("utf-8")
    assert notes.count("start") == 2
    assert notes.count("call echo") == 2
    assert replay("a.jsonl").difference is None


def test_fork_goes_on_with_the_servers_tools(folder: Path) -> None:
    replies = [call("odd_echo", text="one"), call("odd_echo", text="two"), LAST]
    run(spec(folder, replies, odd(folder)), log="a.jsonl")
    forked = asyncio.run(Fork("a.jsonl", ForkOptions(turn=2, log="b.jsonl")).run())
    assert (forked.status, forked.text) == ("ok", "two")
    assert (folder / "notes").read_text("utf-8").count("call echo") == 3


def test_real_tools_of_a_replay_are_the_servers(folder: Path) -> None:
    run(spec(folder, [call("odd_echo", text="one"), LAST], odd(folder)), log="a.jsonl")
    assert replay("a.jsonl", real=("tools",)).difference is None
    assert (folder / "notes").read_text("utf-8").count("call echo") == 2


def test_check_starts_no_server(folder: Path) -> None:
    assert [f for f in api.check(spec(folder, [LAST], odd(folder))) if not f.warning] == []
    assert not (folder / "notes").exists()


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ({"name": "a"}, "tools[0].mcp: one of command or url is needed"),
        ({"name": "a b", "command": ["x"]}, "tools[0].mcp.name: "),
        (
            {"name": "a", "url": "http://x", "env": {"A": "b"}},
            "tools[0].mcp.env: a server at a URL",
        ),
        ({"name": "a", "command": ["x"], "headers": {"A": "b"}}, "mcp.headers: a program has no"),
        (
            {"name": "a", "comand": ["x"]},
            'tools[0].mcp.comand: unknown key; did you mean "command"?',
        ),
    ],
)
def test_faults_of_an_entry(folder: Path, entry: Mapping[str, Any], fault: str) -> None:
    faults = [str(each) for each in api.check(spec(folder, [LAST], {"mcp": entry}))]
    assert any(fault in each for each in faults)


def test_two_servers_of_one_name_are_a_fault(folder: Path) -> None:
    faults = api.check(spec(folder, [LAST], odd(folder), odd(folder)))
    assert 'there is a server "odd" already, tools[0]' in str(faults[0])


# --- nothing is left ------------------------------------------------------------------------------


async def aborted(path: str, chance: random.Random) -> str:
    control = api.Control()
    asyncio.get_running_loop().call_later(chance.random() * 0.6, control.abort)
    result = await api.run_spec_async(path, control=control)
    return result.status


def test_nothing_is_left_of_runs_that_are_aborted_at_random(folder: Path) -> None:
    replies = [call("odd_spawn"), call("odd_hang"), LAST]
    entry = odd(folder, env={"TMPDIR": str(folder.parent / "tmp")})
    path = spec(folder, replies, entry)
    chance = random.Random(7)

    async def main() -> list[str]:
        statuses: list[str] = []
        for _ in range(20):
            statuses += await asyncio.gather(*(aborted(path, chance) for _ in range(10)))
        return statuses

    assert set(asyncio.run(main())) == {"aborted"}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_servers_end_with_the_command_however_that_ends(folder: Path, number: int) -> None:
    path = spec(folder, [call("odd_spawn"), call("odd_hang"), LAST], odd(folder, "stubborn"))
    process = subprocess.Popen(
        [COMMAND, path, "--log", "a.jsonl"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    late = time.monotonic() + 30
    notes = folder / "notes"
    while time.monotonic() < late:
        if notes.exists() and "call hang" in notes.read_text("utf-8"):
            break
        time.sleep(0.02)
    process.send_signal(number)
    code = process.wait(20)
    assert code == (-9 if number == signal.SIGKILL else 128 + number)


def test_abort_while_a_server_starts_ends_the_run_at_once(folder: Path) -> None:
    path = spec(folder, [LAST], odd(folder, "silent"))

    async def main() -> api.RunResult:
        control = api.Control()
        asyncio.get_running_loop().call_later(0.3, control.abort)
        return await api.run_spec_async(path, control=control)

    began = time.monotonic()
    result = asyncio.run(main())
    assert result.status == "aborted"
    assert time.monotonic() - began < 15


def test_spec_without_a_server_imports_no_sdk(folder: Path) -> None:
    path = spec(folder, [{"text": "x"}])
    code = (
        "import sys; from runner import api; "
        f"api.run_spec({path!r}); print('mcp' in sys.modules, 'runner.toolkit.mcp' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
