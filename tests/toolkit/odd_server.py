"""An MCP server that does as its arguments and tools say: also what no server should.

It is written without the SDK, so that it can be wrong, and starts fast.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
OBJECT = {"type": "object"}
TOOLS: dict[str, dict[str, Any]] = {
    "echo": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    **dict.fromkeys(
        [
            *("die", "hang", "progress", "image", "fail", "error", "lie", "structured", "flood"),
            *("env", "roots", "huge", "cwd", "spawn", "storm"),
        ],
        OBJECT,
    ),
}
mode = sys.argv[1] if len(sys.argv) > 1 else ""
mark = Path(sys.argv[2]) if len(sys.argv) > 2 else None
writing = threading.Lock()
answers: dict[Any, Any] = {}
came = threading.Condition()


def say(text: str) -> None:
    with writing:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def send(**message: Any) -> None:
    say(json.dumps({"jsonrpc": "2.0", **message}))


def note(text: str) -> None:
    if mark is not None:
        with mark.open("a", encoding="utf-8") as file:
            file.write(text + "\n")


def text(value: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}], **more}


def listed(params: dict[str, Any]) -> dict[str, Any]:
    tools = [{"name": n, "description": f"Does {n}.", "inputSchema": s} for n, s in TOOLS.items()]
    deep: dict[str, Any] = {"type": "object"}
    if mode == "many":
        tools = [{"name": f"t{n}", "inputSchema": OBJECT} for n in range(20_000)]
    if mode == "circle":
        return {"tools": tools[:1], "nextCursor": "again"}
    if mode == "endless":
        return {"tools": tools[:1], "nextCursor": str(int(params.get("cursor", 0)) + 1)}
    if mode == "odd names":
        names = ["a.b", "a b", "a_b", "x" * 500, "\x1b[31mred", "ünïcode", "a.b"]
        tools = [{"name": name, "inputSchema": OBJECT} for name in names]
    if mode == "odd schemas":
        for _ in range(60):
            deep = {"type": "object", "properties": {"a": deep}}
        schemas: dict[str, Any] = {
            "good": OBJECT,
            "invalid": {"type": "object", "properties": {"a": {"type": "nonsense"}}},
            "huge": {"type": "object", "description": "x" * 1_000_000},
            "deep": deep,
            "draft7": {
                "$schema": "http://json-schema.org/draft-07/schema#",
                "type": "object",
                "properties": {"a": {"type": "array", "items": [{"type": "string"}]}},
            },
        }
        tools = [{"name": n, "inputSchema": s} for n, s in schemas.items()]
    if mode == "deep":
        for _ in range(200):
            deep = {"type": "object", "properties": {"a": deep}}
        tools = [{"name": "deep", "inputSchema": deep}]
    if mode == "liar":
        return {"tools": "none"}
    for tool in tools:
        if tool["name"] == "structured":
            tool["outputSchema"] = {"type": "object", "properties": {"n": {"type": "integer"}}}
    return {"tools": tools}


def ask(method: str) -> Any:
    """Ask the client."""
    with came:
        send(id="mine", method=method)
        came.wait_for(lambda: "mine" in answers, timeout=5)
        return answers.pop("mine", None)


def call(identity: Any, params: dict[str, Any]) -> dict[str, Any] | None:  # noqa: C901
    name, given = params["name"], params.get("arguments") or {}
    token = params.get("_meta", {}).get("progressToken")
    note(f"call {name}")
    match name:
        case "echo":
            return text(given["text"])
        case "die":
            print("I can't go on", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        case "hang":
            return None
        case "progress" | "flood":
            count = 3 if name == "progress" else 5_000
            for n in range(1, count + 1):
                progress = {"progressToken": token, "progress": n, "total": count, "message": "on"}
                send(method="notifications/progress", params=progress)
        case "image":
            return {
                "content": [
                    {"type": "image", "mimeType": "image/png", "data": PIXEL},
                    {"type": "image", "mimeType": "image/png", "data": "no base64!"},
                    {"type": "audio", "mimeType": "audio/wav", "data": PIXEL},
                    {"type": "resource_link", "name": "r", "uri": "x://r"},
                    {"type": "resource", "resource": {"uri": "x://t", "text": "a resource"}},
                ]
            }
        case "fail":
            return text("it did not work", isError=True)
        case "error":
            send(id=identity, error={"code": -32000, "message": "no such thing"})
            return None
        case "lie":
            return {"content": "not a list"}
        case "structured":
            return text("{}", structuredContent={"n": "no integer"})
        case "env":
            return text(json.dumps(dict(os.environ)))
        case "cwd":
            return text(os.getcwd())
        case "roots":
            return text(json.dumps(ask("roots/list")))
        case "storm":
            for n in range(120):
                send(id=f"storm {n}", method="roots/list" if n % 2 else "sampling/createMessage")
                send(method="notifications/tools/list_changed")
                send(id=10_000 + n, result={})
            with came:
                came.wait_for(lambda: len(answers) == 120, timeout=10)
            return text(f"{len(answers)} were answered")
        case "huge":
            say("x" * (1 << 25))
        case "spawn":
            child = subprocess.Popen(["sleep", "600"])
            return text(str(child.pid))
    return text(f"did {name}")


def handle(message: dict[str, Any]) -> None:
    method, identity = message.get("method"), message.get("id")
    params = message.get("params") or {}
    if method is None:
        with came:
            answers[identity] = message.get("result", message.get("error"))
            came.notify()
    elif method == "notifications/cancelled":
        note("cancelled")
    elif method == "initialize":
        result = {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "odd", "version": "1"},
        }
        send(id=identity, result=result)
    elif method == "tools/list":
        send(id=identity, result=listed(params))
    elif method == "tools/call":
        answer = call(identity, params)
        if answer is not None:
            send(id=identity, result=answer)
    elif identity is not None:
        send(id=identity, error={"code": -32601, "message": "Method not found"})


def main() -> None:
    note(f"start {os.getpid()}")
    if mode == "exit":
        print("the key is missing", file=sys.stderr)
        sys.exit(7)
    if mode == "silent":
        time.sleep(600)
    if mode == "noise":
        while True:
            say("this is no message " * 50)
    if mode == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin:
        threading.Thread(target=handle, args=[json.loads(line)], daemon=True).start()
    if mode == "stubborn":
        time.sleep(600)
    note("end")


main()
