import json
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

PiRun = Callable[..., "subprocess.CompletedProcess[str]"]
Write = Callable[..., Path]

SCRIPTED = "version: 1\nmodel: {provider: scripted, script: [%s]}\nprompt: Hello\n"
CALL = "{text: a, tool_calls: [{name: look, arguments: {}}]}, {text: 'it is {{ last.text }}'}"
LOOK = "tools: [{name: look, description: Look., command: [./look.sh]}]\n"


def script(folder: Path, text: str) -> None:
    file = folder / "look.sh"
    file.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    file.chmod(0o755)


def test_runs_that_are_the_same_are_0(pi_run: PiRun, spec: Write, folder: Path) -> None:
    spec()
    done = pi_run("doctor", "spec.yaml", "--runs", "3")

    assert (done.returncode, done.stdout) == (0, "ok: 3 runs, all the same\n")
    assert not (folder / ".pi-run").exists()


def test_a_tool_that_gives_something_else_is_the_only_source(
    pi_run: PiRun, spec: Write, folder: Path
) -> None:
    script(folder, "echo x >> seen; wc -l < seen")
    spec(text=SCRIPTED % CALL, more=LOOK)
    done = pi_run("doctor", "spec.yaml", "--format", "json")

    told = json.loads(done.stdout)
    assert (done.returncode, told["same"]) == (1, False)
    (source,) = told["sources"]
    assert (source["kind"], source["name"], source["turn"]) == ("tool", "look", 1)
    assert (source["a"].strip(), source["b"].strip()) == ("1", "2")


def test_a_template_that_differs_is_named(pi_run: PiRun, spec: Write) -> None:
    spec(more="system_prompt: You are {{ run.id }}.\n")
    done = pi_run("doctor", "spec.yaml")

    assert done.returncode == 1
    assert done.stdout.startswith("differs: spec system_prompt, before the first turn\n")
    assert "run.id" in done.stdout
    assert done.stdout.count("differs:") == 1


def test_a_hook_that_changes_its_mind_is_named_and_not_its_tool(
    pi_run: PiRun, spec: Write, folder: Path
) -> None:
    script(folder, "echo fine")
    (folder / "hook.py").write_text(
        "import pathlib\n"
        "def judge(call):\n"
        "    seen = pathlib.Path('judged')\n"
        "    if seen.exists():\n"
        "        return {'action': 'block', 'reason': 'again'}\n"
        "    seen.touch()\n",
        encoding="utf-8",
    )
    hooks = "hooks: {before_tool_call: [{python: './hook.py:judge'}]}\n"
    spec(text=SCRIPTED % CALL, more=LOOK + hooks)
    done = pi_run("doctor", "spec.yaml", "--format", "json")

    (source,) = json.loads(done.stdout)["sources"]
    assert (source["kind"], source["name"]) == ("hook", "before_tool_call")


def test_runs_that_fail_alike_end_like_them(pi_run: PiRun, spec: Write) -> None:
    spec(text=SCRIPTED % "{error: No such model., status: 404}")
    done = pi_run("doctor", "spec.yaml")

    assert done.returncode == 3
    assert "No such model." in done.stderr


def test_a_wrong_spec_is_2(pi_run: PiRun, spec: Write) -> None:
    spec(more="promt: x\n")

    assert pi_run("doctor", "spec.yaml").returncode == 2
    assert pi_run("doctor", "gone.yaml").returncode == 2


def test_what_is_missing_is_told_and_nothing_is_run(
    pi_run: PiRun, spec: Write, folder: Path
) -> None:
    spec(
        text="version: 1\n"
        "model:\n"
        "  provider: openai\n"
        "  id: x\n"
        "  base_url: http://127.0.0.1:1/v1\n"
        "  api_key: {env: A_KEY_THAT_IS_NOT_SET}\n"
        "  fallback: [{provider: anthropic, id: y, api_key: {file: key.txt}}]\n"
        "prompt: '{{ env.A_NAME_THAT_IS_NOT_SET }}'\n"
        "env: [A_NAME_THAT_IS_NOT_SET]\n"
        "tools: [{name: a, description: A., command: [a-program-that-is-not-there]}]\n"
    )
    (folder / "key.txt").write_text("", encoding="utf-8")
    done = pi_run("doctor", "spec.yaml")

    assert done.returncode == 1
    assert done.stderr == ""
    kinds = {
        (need["kind"], need["name"])
        for need in json.loads(pi_run("doctor", "spec.yaml", "--format", "json").stdout)["needs"]
        if need["problem"]
    }
    assert kinds == {
        ("environment", "A_NAME_THAT_IS_NOT_SET"),
        ("key", "A_KEY_THAT_IS_NOT_SET"),
        ("key", "key.txt"),
        ("server", "http://127.0.0.1:1/v1"),
        ("command", "a-program-that-is-not-there"),
    }
    assert "spec.yaml:5:13: model.base_url: server " in done.stdout


def test_what_is_there_is_ok(pi_run: PiRun, spec: Write) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        spec(
            text="version: 1\n"
            "model:\n"
            "  provider: openai\n"
            "  id: x\n"
            f"  base_url: http://127.0.0.1:{server.getsockname()[1]}/v1\n"
            "  api_key: {env: THE_KEY}\n"
            "prompt: Hello\n"
            "tools: [{name: a, description: A., command: [sh]}]\n"
        )
        done = pi_run("doctor", "spec.yaml", "--no-run", env={"THE_KEY": "abcdefgh"})

    assert (done.returncode, done.stderr) == (0, "")
    assert [line.partition(": ")[0] for line in done.stdout.splitlines()] == ["ok"] * 3
    assert "abcdefgh" not in done.stdout


def test_a_spec_that_needs_nothing(pi_run: PiRun, spec: Write) -> None:
    spec()
    done = pi_run("doctor", "spec.yaml", "--no-run")

    assert (done.returncode, done.stdout) == (0, "ok: it needs no key, program or server\n")
