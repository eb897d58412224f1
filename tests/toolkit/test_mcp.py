"""MCP servers as tools: one of ours that lies, hangs, floods and dies."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.engine.contract import Cancellation, ToolResult
from runner.toolkit.mcp.child import ServerProcess
from runner.toolkit.mcp.names import legal_names
from runner.toolkit.mcp.server import McpError, McpServer, ServerOptions
from runner.toolkit.mcp.stdio import StdioPeer
from runner.toolkit.mcp.tool import McpTool, mcp_tool

ODD = Path(__file__).with_name("odd_server.py")
MARK = "MCP_TEST_OF"


def alive(mark: str) -> list[str]:
    """The command lines of all processes that were started with this mark in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            ours = mark.encode() in (folder / "environ").read_bytes()
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            # A zombie of a container whose process 1 reaps nobody has no command line.
            if ours and line:
                found.append(line)
        except OSError:
            continue
    return found


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[str]:
    """In the environment of all that a test starts; at its end nothing of that is left."""
    yield str(tmp_path)
    late = time.monotonic() + 5
    while alive(str(tmp_path)) and time.monotonic() < late:
        time.sleep(0.02)
    assert alive(str(tmp_path)) == []


Talk = Callable[[McpServer, dict[str, McpTool]], Awaitable[Any]]


class Odd:
    """The server in one of its modes, and what came of it."""

    def __init__(self, tmp_path: Path, mark: str) -> None:
        self.folder = tmp_path
        self.notes = tmp_path / "notes"
        self.updates: list[Any] = []
        self.mark = mark

    def options(self, **more: Any) -> ServerOptions:
        return ServerOptions("odd", self.folder, **more)

    def run(self, talk: Talk, mode: str = "", **more: Any) -> Any:
        """Start it, talk to it, close it."""

        async def connect() -> StdioPeer:
            argv = [sys.executable, "-S", str(ODD), mode, str(self.notes)]
            env = {"PATH": os.environ["PATH"], MARK: self.mark}
            return StdioPeer(ServerProcess(argv, self.folder, env))

        async def main() -> Any:
            server = McpServer(self.options(**more), connect)
            try:
                await server.start()
                names = [listed.name for listed in server.listing.tools]
                legal = legal_names("odd", names, ())
                tools = {
                    one.name: mcp_tool(server, one, legal[one.name]) for one in server.listing.tools
                }
                return await talk(server, tools)
            finally:
                await server.close()

        return asyncio.run(main())

    async def call(self, tool: McpTool, **arguments: Any) -> ToolResult:
        return await tool.execute("call_1", arguments, self.updates.append, Cancellation())

    def result_of(self, name: str, **arguments: Any) -> ToolResult:
        """What one call comes to."""

        async def talk(server: McpServer, tools: dict[str, McpTool]) -> ToolResult:
            return await self.call(tools[name], **arguments)

        result: ToolResult = self.run(talk)
        return result

    async def noted(self, text: str) -> None:
        """Wait until the server has noted this."""
        async with asyncio.timeout(10):
            while text not in self.notes.read_text("utf-8"):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.01)

    def start_error(self, mode: str, **more: Any) -> str:
        async def talk(server: McpServer, tools: dict[str, McpTool]) -> None:
            raise AssertionError("it started")

        with pytest.raises(McpError) as caught:
            self.run(talk, mode, **more)
        return str(caught.value)


@pytest.fixture
def odd(tmp_path: Path, mark: str) -> Odd:
    return Odd(tmp_path, mark)


def text_of(result: ToolResult) -> str:
    return "".join(b["text"] for b in result.blocks() if b["type"] == "text")


# --- calls ----------------------------------------------------------------------------------------


def test_tool_is_called_by_its_own_name_and_has_the_servers_schema(odd: Odd) -> None:
    async def talk(server: McpServer, tools: dict[str, McpTool]) -> None:
        echo = tools["echo"]
        assert (echo.name, echo.description) == ("odd_echo", "Does echo.")
        assert echo.parameters["required"] == ["text"]
        assert len(echo.check({})) == 1
        assert text_of(await odd.call(echo, text="há\n€")) == "há\n€"

    odd.run(talk)


def test_images_are_passed_on_and_what_no_model_reads_is_noted(odd: Odd) -> None:
    image, broken, audio, link, resource = odd.result_of("image").blocks()
    assert image["type"] == "image"
    assert image["mime_type"] == "image/png"
    assert [block["type"] for block in (broken, audio, link, resource)] == ["text"] * 4
    assert text_of(odd.result_of("image")).startswith("[an image, image/png, that is no base64]")
    assert text_of(odd.result_of("image")).endswith("[resource r: x://r]a resource")


def test_error_of_a_tool_is_one_for_the_model(odd: Odd) -> None:
    result = odd.result_of("fail")
    assert (result.is_error, text_of(result)) == (True, "it did not work")


def test_error_of_the_protocol_has_the_servers_words(odd: Odd) -> None:
    with pytest.raises(Exception, match="no such thing"):
        odd.result_of("error")


def test_answer_that_is_no_mcp_is_told(odd: Odd) -> None:
    with pytest.raises(McpError, match="odd: it answered with what is no MCP: content"):
        odd.result_of("lie")


def test_structured_result_is_held_against_its_schema(odd: Odd) -> None:
    result = odd.result_of("structured")
    assert result.is_error
    assert result.details == {"n": "no integer"}
    assert "does not fit the schema" in text_of(result)


def test_progress_becomes_updates(odd: Odd) -> None:
    odd.result_of("progress")
    assert odd.updates == [{"progress": n, "total": 3.0, "message": "on"} for n in (1.0, 2.0, 3.0)]


def test_flood_of_progress_is_thinned_out(odd: Odd) -> None:
    assert text_of(odd.result_of("flood")) == "did flood"
    assert 20 <= len(odd.updates) < 500


def test_message_without_end_ends_the_server(odd: Odd) -> None:
    with pytest.raises(McpError, match="it sent a message of more than 16777216 bytes"):
        odd.result_of("huge")


def test_roots_are_the_workspace(odd: Odd) -> None:
    roots = json.loads(text_of(odd.result_of("roots")))
    assert roots == {"roots": [{"uri": odd.folder.as_uri(), "name": "workspace"}]}


def test_storm_of_questions_and_notices_is_answered_at_a_pace(odd: Odd) -> None:
    assert text_of(odd.result_of("storm")) == "120 were answered"


def test_cancelled_call_is_cancelled_there_too(odd: Odd) -> None:
    async def talk(server: McpServer, tools: dict[str, McpTool]) -> None:
        call = asyncio.ensure_future(odd.call(tools["hang"]))
        await odd.noted("call hang")
        call.cancel()
        await asyncio.wait({call})
        assert call.cancelled()
        # The server is as good as before.
        assert text_of(await odd.call(tools["echo"], text="x")) == "x"

    odd.run(talk)
    assert "cancelled" in odd.notes.read_text("utf-8")


def test_calls_run_at_once(odd: Odd) -> None:
    async def talk(server: McpServer, tools: dict[str, McpTool]) -> list[ToolResult]:
        hanging = asyncio.ensure_future(odd.call(tools["hang"]))
        try:
            echo = tools["echo"]
            return await asyncio.gather(*(odd.call(echo, text=str(n)) for n in range(20)))
        finally:
            hanging.cancel()
            await asyncio.wait({hanging})

    results = odd.run(talk)
    assert [text_of(result) for result in results] == [str(n) for n in range(20)]


# --- starts and ends ------------------------------------------------------------------------------


def test_server_that_dies_is_started_again_once(odd: Odd) -> None:
    async def talk(server: McpServer, tools: dict[str, McpTool]) -> None:
        with pytest.raises(McpError) as caught:
            await odd.call(tools["die"])
        assert (
            "whether it was done is unknown; it was ended by signal 9; it said: I can't go on"
            in (str(caught.value))
        )
        assert text_of(await odd.call(tools["echo"], text="again")) == "again"
        with pytest.raises(McpError, match="signal 9"):
            await odd.call(tools["die"])
        with pytest.raises(McpError, match="it died twice, and is not started again"):
            await odd.call(tools["echo"], text="again")

    odd.run(talk)
    assert odd.notes.read_text("utf-8").count("start") == 2


def test_server_that_ends_at_once_says_why(odd: Odd) -> None:
    assert odd.start_error("exit") == (
        "the MCP server odd: it ended before it had started; it ended with exit code 7; "
        "it said: the key is missing"
    )


def test_server_that_says_nothing_is_given_up(odd: Odd) -> None:
    assert "it did not start within 0.3 s" in odd.start_error("silent", start_timeout=0.3)


def test_server_that_floods_its_stdout_is_ended(odd: Odd) -> None:
    assert "bytes on its stdout are no message" in odd.start_error("noise")


def test_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    async def connect() -> StdioPeer:
        return StdioPeer(ServerProcess(["no-such-program"], tmp_path, {"PATH": "/usr/bin"}))

    async def main() -> None:
        await McpServer(ServerOptions("odd", tmp_path), connect).start()

    with pytest.raises(McpError, match=r'"no-such-program" can.t be started: there is no such'):
        asyncio.run(main())


def test_server_that_takes_no_notice_is_killed(odd: Odd) -> None:
    async def talk(server: McpServer, tools: dict[str, McpTool]) -> None:
        await odd.call(tools["spawn"])

    odd.run(talk, "stubborn")


def test_what_a_server_left_running_ends_with_it(odd: Odd) -> None:
    child = text_of(odd.result_of("spawn"))
    assert alive(odd.mark) == []
    assert int(child) > 1


# --- what is listed -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        ("many", "it lists more than 10000 tools"),
        ("circle", "the pages of its tools lead in a circle"),
        ("endless", "its tools take more than 200 pages"),
        ("deep", "it sent a message that is nested too deeply"),
        ("liar", "it answered with what is no MCP: tools"),
    ],
)
def test_list_without_end_or_sense_is_no_start(odd: Odd, mode: str, why: str) -> None:
    assert why in odd.start_error(mode)


def test_names_are_made_legal_and_unique(odd: Odd) -> None:
    async def talk(server: McpServer, tools: dict[str, McpTool]) -> list[str]:
        assert server.listing.unusable == [("a.b", "it is listed twice")]
        return [tool.name for tool in tools.values()]

    dotted, spaced, plain, long, red, foreign = odd.run(talk, "odd names")
    assert plain == "odd_a_b"
    assert dotted.startswith("odd_a_b_")
    assert len({dotted, spaced, plain}) == 3
    assert len(long) == 64
    assert red == "odd___31mred"
    assert foreign == "odd__n_code"


def test_schema_that_no_model_can_be_given_leaves_its_tool_out(odd: Odd) -> None:
    async def talk(server: McpServer, tools: dict[str, McpTool]) -> None:
        assert list(tools) == ["good", "draft7"]
        reasons = dict(server.listing.unusable)
        assert "no valid JSON Schema" in reasons["invalid"]
        assert "more than 100000 characters" in reasons["huge"]
        assert "nested too deeply" in reasons["deep"]
        # What an older draft means is for the server to hold.
        assert tools["draft7"].check({"a": 1}) == ()

    odd.run(talk, "odd schemas")


def test_include_and_exclude_choose_by_name_and_pattern(odd: Odd) -> None:
    async def names(server: McpServer, tools: dict[str, McpTool]) -> list[str]:
        return list(tools)

    assert odd.run(names, include=["e*", "die"], exclude=["env"]) == ["echo", "die", "error"]
    error = odd.start_error("", include=["ecko"])
    assert error == 'the MCP server odd: it has no tool "ecko"; did you mean "echo"?'


def test_names_are_the_same_whatever_their_order() -> None:
    names = ["a.b", "a_b", "a b", "c"]
    assert legal_names("s", names, {"s_c"}) == {
        name: legal_names("s", names[::-1], {"s_c"})[name] for name in names
    }
    assert legal_names("s", names, ())["a_b"] == "s_a_b"
