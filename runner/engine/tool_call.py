"""A tool call: its seven steps."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, cast

from runner.engine.call_time import CallTime, call_time
from runner.engine.contract import Cancellation, Tool, ToolResult, Update
from runner.engine.event import Event, Result
from runner.engine.hook import Hook, HookStopped
from runner.engine.hook_call import call_hook, hook_failed
from runner.engine.limit import MadeCall
from runner.engine.message import ToolCallBlock
from runner.engine.options import Ending
from runner.engine.session import Session, agents_below
from runner.engine.tool_outcome import (
    ENDING,
    SKIPPED,
    UNFIT,
    check_result,
    failed,
    not_run,
    outcome,
)
from runner.error import describe
from runner.json_text import canonical, line

_BEFORE = ("block", "reason", "arguments", "stop", "allow")
_AFTER = ("content", "details", "is_error", "terminate")


class Call:
    """One tool call on its way.

    Its methods never raise for what a tool or a hook does: where that ends the run,
    ``session.stopping`` or the session's cancellation says so.
    """

    def __init__(self, session: Session, block: ToolCallBlock) -> None:
        self.session = session
        self.id = block["id"]
        self.name = block["name"]
        self.said = block["arguments"]
        """The arguments as the model gave them."""
        self.tool: Tool | None = session.tools.get(self.name)
        self.arguments: dict[str, Any] = {}
        self.result = ToolResult("")
        self._made: MadeCall | None = None
        self._counted = b""
        """The call and its result, as they count for ``repeats``."""
        self._agents: set[object] = set()
        self._seconds = 0.0
        self._stopped: str | None = None

    # --- steps 1 to 4 -----------------------------------------------------------------------------

    def start(self) -> None:
        """Step 1: the call is told."""
        self._made = self.session.meter.add_call(self.name, self.said)
        self.session.emit(
            {
                "type": "tool_execution_start",
                "tool_call_id": self.id,
                "tool_name": self.name,
                "arguments": self.said,
            }
        )

    async def prepare(self) -> ToolResult | None:
        """Steps 1 to 4. Gives the result of a call that is not to be run."""
        self.start()
        await self.session.settle()
        refused = self._refused_late() or self._find() or self._check_said()
        return refused or await self._before()

    async def go(self, refused: ToolResult | None = None) -> None:
        """Steps 5 to 7, but for the result's message; of a call that is refused, the last."""
        if refused is None:
            session = self.session
            await session.clock.turn_of(session.path, "tool_execution_begin", self.id)
        refused = refused or self._refused_late() or self._take_place()
        if refused is None and self._made is not None:
            self._made.ran = True
        await self._finish(refused or await self._execute(), ran=refused is None)

    def _refused_late(self) -> ToolResult | None:
        """Why a call that has not begun is not run any more, if so."""
        session = self.session
        if session.cancellation.cancelled:
            self._stopped = session.cancellation.reason
            return failed(not_run(self._stopped))
        if session.stopping is not None:
            return failed(ENDING)
        return failed(SKIPPED) if session.interrupted else None

    def _find(self) -> ToolResult | None:
        """Step 2."""
        if self.tool is not None:
            return None
        names = ", ".join(self.session.tools) or "none"
        return failed(f'There is no tool "{self.name}". The tools are: {names}.')

    def _take_place(self) -> ToolResult | None:
        reached = self.session.meter.take_call()
        if reached is None:
            return None
        return failed(f"Not run: the run's limit of {reached.allowed} tool calls is reached.")

    def _check_said(self) -> ToolResult | None:
        """Step 3."""
        if isinstance(self.said, str):
            return failed(
                "The arguments are not a JSON object, and the tool was not run. "
                f"Send one JSON object. They were: {self.said:.200}"
            )
        return self._check(self.said)

    def _check(self, arguments: dict[str, Any]) -> ToolResult | None:
        try:
            wrong = cast("Tool", self.tool).check(arguments)
        except Exception as error:
            wrong = [describe(error)]
        if wrong:
            return failed("\n- ".join([UNFIT, *wrong]))
        self.arguments = arguments
        return None

    async def _before(self) -> ToolResult | None:
        """Step 4."""
        hooks = self.session.hooks["before_tool_call"]
        judged = {}
        for hook in hooks:
            passed = await self._ask(hook)
            judged[id(hook)] = self.arguments
            if isinstance(passed, ToolResult):
                return passed
            if passed:
                break
        for hook in hooks:
            # What it let pass may not be what is to be run.
            if hook.has_last_word and judged.get(id(hook)) != self.arguments:
                passed = await self._ask(hook)
                if isinstance(passed, ToolResult):
                    return passed
        return None

    async def _ask(self, hook: Hook) -> ToolResult | bool:
        """The result of a call that a hook refuses; else whether no other is to be asked."""
        call = {
            "tool_name": self.name,
            "tool_call_id": self.id,
            # A copy: what stands in the history is not changed by a hook.
            "arguments": deepcopy(self.arguments),
        }
        try:
            decision = _decision(await call_hook(self.session, hook, call), _BEFORE)
            if decision.get("allow"):
                return True
            refused = self._follow(decision)
        except HookStopped:
            return self._refused_late() or False
        except Exception as error:
            decided = hook_failed(self.session, "before_tool_call", hook, error, self.id)
            refused = self._failed("before_tool_call", error, decided)
        return refused or False

    def _follow(self, decision: Mapping[str, Any]) -> ToolResult | None:
        """Do what a hook before the call decided."""
        if decision.get("block"):
            reason = str(decision.get("reason") or "a hook blocked it")
            stop = {"stop": True} if decision.get("stop") else {}
            self._decided("before_tool_call", "block", reason=reason, **stop)
            if stop:
                self.session.stopping = Ending("denied", f"{self.name}: {reason}")
            return failed(f"Not run: {reason}")
        arguments = decision.get("arguments")
        if arguments is None:
            return None
        if not isinstance(arguments, dict):
            raise TypeError(f"arguments must be an object, not {arguments!r:.80}")
        line(arguments)
        self._decided("before_tool_call", "rewrite", arguments=arguments)
        return self._check(arguments)

    def _failed(self, point: str, error: Exception, decided: str) -> ToolResult | None:
        """What a hook's failure makes of the call."""
        text = f"The hook {point} failed: {describe(error)}"
        if decided == "warn":
            return None
        if decided == "fail":
            self.session.stopping = Ending("error", f"the hook {point} failed: {describe(error)}")
        return failed(text)

    def _decided(self, point: str, action: str, **more: Any) -> None:
        event = {"type": "hook_decision", "hook": point, "tool_call_id": self.id, "action": action}
        self.session.emit(cast("Event", event | more))

    # --- step 5 -----------------------------------------------------------------------------------

    async def _execute(self) -> ToolResult:
        """Step 5: run the tool, for no longer than it may."""
        session, tool = self.session, cast("Tool", self.tool)
        # What the tool sees, and what stops it: a tool may look at the one and stop by itself.
        cancellation, stop = Cancellation(), Cancellation()

        def cancel(reason: str) -> None:
            cancellation.cancel(reason)
            stop.cancel(reason)

        time = CallTime(
            session.clock, tool.timeout, lambda: cancel(f"timed out after {tool.timeout:g} s")
        )
        work = asyncio.ensure_future(self._work(tool, cancellation, time))
        off = session.cancellation.on_cancel(
            lambda: cancel(session.cancellation.reason or "aborted")
        )
        await session.attend(work, stop, agents=self._agents)
        off()
        self._seconds = time.end()
        self._stopped = cancellation.reason
        return outcome(work, cancellation.reason)

    async def _work(self, tool: Tool, cancellation: Cancellation, time: CallTime) -> ToolResult:
        agents_below.set(self._agents)
        call_time.set(time)
        # A copy: what stands in the history is not changed by a tool.
        arguments = deepcopy(self.arguments)
        updates = self._updates(asyncio.get_running_loop())
        try:
            result: Any = await tool.execute(self.id, arguments, updates, cancellation)
        except SystemExit as error:
            # It would end the event loop, and with it every run.
            raise RuntimeError(f"it tried to end the program, exit code {error.code}") from error
        if not isinstance(result, ToolResult):
            raise TypeError(f"the tool gave no ToolResult, but {result!r:.80}")
        check_result(result)
        return result

    def _updates(self, loop: asyncio.AbstractEventLoop) -> Update:
        here = threading.get_ident()

        def tell(update: Any) -> None:
            if self.id in self.session.pending_calls:
                self.session.emit(
                    {
                        "type": "tool_execution_update",
                        "tool_call_id": self.id,
                        "tool_name": self.name,
                        "update": update,
                    }
                )

        def update(content: Any) -> None:
            line(content)
            if threading.get_ident() == here:
                tell(content)
            else:
                with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens
                    loop.call_soon_threadsafe(tell, content)

        return update

    # --- steps 6 and 7 ----------------------------------------------------------------------------

    async def _finish(self, result: ToolResult, *, ran: bool) -> None:
        """Steps 6 and 7, but for the result's message."""
        session = self.session
        self.result = result
        await session.clock.turn_of(session.path, "tool_execution_end", self.id)
        if ran:
            await self._after()
        self._counted = canonical([self.name, self.said, self.result.blocks()])
        session.pending_calls.discard(self.id)
        end: dict[str, Any] = {
            "type": "tool_execution_end",
            "tool_call_id": self.id,
            "tool_name": self.name,
            "result": self._told(),
            "is_error": self.result.is_error,
            "seconds": round(self._seconds, 3),
        }
        if self.result.terminate:
            end["terminate"] = True
        if self._stopped is not None:
            end["stopped"] = self._stopped
        session.emit(cast("Event", end))
        session.schedule(tool=self.name)
        await session.settle()

    async def _after(self) -> None:
        for hook in self.session.hooks["after_tool_call"]:
            call = {
                "tool_name": self.name,
                "tool_call_id": self.id,
                "arguments": deepcopy(self.arguments),
                "result": {
                    "content": deepcopy(self.result.blocks()),
                    "details": deepcopy(self.result.details),
                    "is_error": self.result.is_error,
                },
            }
            try:
                self._replace(_decision(await call_hook(self.session, hook, call), _AFTER))
            except Exception as error:
                decided = hook_failed(self.session, "after_tool_call", hook, error, self.id)
                self.result = self._failed("after_tool_call", error, decided) or self.result

    def _replace(self, decision: Mapping[str, Any]) -> None:
        """Replace what a hook after the call decided, field by field."""
        if not decision:
            return
        old = self.result
        new = ToolResult(
            decision.get("content", old.content),
            decision.get("details", old.details),
            bool(decision.get("is_error", old.is_error)),
            bool(decision.get("terminate", old.terminate)),
        )
        check_result(new)
        self.result = new
        self._decided("after_tool_call", "replace")

    def _told(self) -> Result:
        result: Result = {"content": self.result.blocks()}
        if self.result.details is not None:
            result["details"] = self.result.details
        return result

    def tell_result(self) -> None:
        """The result's message joins the history; the call counts for ``repeats``."""
        session = self.session
        message: dict[str, Any] = {
            "id": "",
            "role": "tool_result",
            "tool_call_id": self.id,
            "tool_name": self.name,
            "is_error": self.result.is_error,
            "content": self.result.blocks(),
        }
        if self.result.details is not None:
            message["details"] = self.result.details
        session.turn_results.append(session.add(cast("Any", message)))
        session.call_ended(self._counted)


def _decision(given: Any, known: Sequence[str]) -> Mapping[str, Any]:
    """What a hook gave, checked: nothing, or a map of known keys."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"a hook gives nothing or a map, not {given!r:.80}")
    if unknown := [key for key in given if key not in known]:
        raise ValueError(f'unknown key "{unknown[0]}" in a decision; known: {", ".join(known)}')
    return given
