"""What a function that is a tool may know of the call it works for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.engine.contract import Cancellation, ToolResult, Update
from runner.json_text import parse
from runner.toolkit.result import json_of
from runner.toolkit.surroundings import Surroundings
from runner.toolkit.workspace import Workspace

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from runner.process import Child, Finished
    from runner.toolkit.web import Web

MAX_OUTPUT = 8 << 20
"""Bytes that are kept of what a program says."""


@dataclass(frozen=True, slots=True, eq=False)
class ToolContext:
    """The call that a function works for, if it has a parameter of this type."""

    tool_call_id: str
    """The call's id, as it stands in the log."""
    tool_name: str
    """The tool's name, as the model knows it."""
    _surroundings: Surroundings
    _on_update: Update
    _cancellation: Cancellation
    _loop: AbstractEventLoop
    """The run's own, which the function itself may be apart from."""
    _more_environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def workspace(self) -> Path:
        """The folder that the tool is to stay inside."""
        return self._surroundings.workspace

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment for child processes: what any needs, and what the spec gives the tool."""
        return {**self._surroundings.environment(), **self._more_environment}

    @property
    def options(self) -> Mapping[str, Any]:
        """What the tool's entry in the spec says of it besides what any tool may say."""
        return self._surroundings.options

    @property
    def read_only(self) -> bool:
        """Whether the run may change nothing."""
        return self._surroundings.read_only

    @property
    def output_schema(self) -> Mapping[str, Any] | None:
        """The JSON Schema that the agent's answer is to fit, if there is one."""
        return self._surroundings.output_schema

    @property
    def files(self) -> Workspace:
        """The files of the workspace, of which no path leads out of it."""
        outputs = self._surroundings.outputs
        return Workspace(self.workspace, outputs.folder if outputs is not None else None)

    @property
    def web(self) -> Web:
        """HTTP, of the public internet alone if the tool's options don't say more."""
        from runner.toolkit.address import AddressGuard
        from runner.toolkit.web import Web

        options = self.options
        guard = AddressGuard(
            allow_private=bool(options.get("allow_private")),
            allow_hosts=options.get("allow_hosts") or (),
        )
        return Web(guard, same_host=bool(options.get("same_host")))

    @property
    def cancelled(self) -> bool:
        """Whether to stop and to return what there is so far. True at a timeout or an abort."""
        return self._cancellation.cancelled

    @property
    def earlier(self) -> Any:
        """The details of this tool's last result in the conversation; None where there is none.

        They are in the log, so a tool that keeps what it knows there still knows it after a resume.
        """
        from runner.engine.session import current

        session = current.get(None)
        for message in reversed(session.history) if session is not None else ():
            own = message["role"] == "tool_result" and message["tool_name"] == self.tool_name
            if own and not message["is_error"] and message.get("details") is not None:
                return message["details"]
        return None

    def update(self, content: Any) -> None:
        """Tell how far the work is, from any thread: a text, or anything else that is JSON."""
        self._on_update(content if isinstance(content, str) else parse(json_of(content)))

    async def ask(self, question: str) -> str | None:
        """Ask who sits at the terminal, and give what is typed; None where nobody can be asked."""
        from runner.apart import await_in

        asking = self._surroundings.ask
        return None if asking is None else await await_in(self._loop, lambda: asking(question))

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
        merged: bool = False,
    ) -> Finished:
        """Run a program in the workspace, and in the sandbox if the spec asks for one.

        When the call is to stop, the program is ended with all that it started, and what it said
        until then is given.

        Args:
            argv: The program and its arguments. No shell is between.
            stdin: What it reads.
            environment: All of its environment; by default `environment`.
            merged: Whether what it says on stderr is taken as said on stdout, in order.

        Raises:
            StartError: if it can't be started.
        """
        from runner.apart import await_in
        from runner.process import Child

        if self.cancelled:
            raise RuntimeError("the call is to stop")
        confine = self._surroundings.confine

        async def work() -> Finished:
            child = Child(
                argv if confine is None else confine(argv),
                cwd=self.workspace,
                env=self.environment if environment is None else environment,
                stdin=stdin,
                max_output=MAX_OUTPUT,
                merged=merged,
            )
            return await self._ended(child)

        # In the loop that no function holds up, so that the program is always ended.
        return await await_in(self._loop, work)

    async def output(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
    ) -> ToolResult:
        """As `run`, but gives a result: all that the program said, and how it failed if it did."""
        from runner.process import StartError

        try:
            done = await self.run(argv, stdin=stdin, environment=environment, merged=True)
        except StartError as error:
            return ToolResult(str(error), is_error=True)
        code = done.exit_code
        if code == 0:
            return ToolResult(done.stdout, {"exit_code": 0})
        how = f"exit code {code}" if code > 0 else f"signal {-code}"
        said = f"{done.stdout.rstrip()}\n" if done.stdout.strip() else ""
        return ToolResult(f"{said}It ended with {how}.", {"exit_code": code}, is_error=True)

    async def _ended(self, child: Child) -> Finished:
        import asyncio
        import signal

        from runner.process import Finished

        running = asyncio.ensure_future(child.run())
        off = self._cancellation.on_cancel(running.cancel)
        try:
            return await running
        except asyncio.CancelledError:
            said, told = child.stdout, child.stderr
            left_out = said.left_out + told.left_out
            return Finished(-signal.SIGTERM, said.text, told.text, left_out, timed_out=False)
        finally:
            off()
