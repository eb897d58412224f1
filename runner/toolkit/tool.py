"""What all tools have in common: what a model reads of them, and the check of its arguments."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from runner.engine.contract import Cancellation, ToolResult, Update
from runner.error import UsageError
from runner.toolkit.quick_check import surely_fits

if TYPE_CHECKING:
    from runner.schema.check import SchemaCheck

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What all providers take for a tool's name."""


class ToolOptions(TypedDict, total=False):
    """What any tool may be told besides what it is."""

    label: str | None
    """The name for people; the tool's name where there is none."""
    execution: Literal["parallel", "sequential"]
    idempotent: bool
    """Whether it may be run again when it is unknown whether it ran; default: no."""
    timeout: float | None
    """Seconds after which a call is cancelled; None, the default, for no bound."""
    read_only: bool
    """Whether it changes nothing, so that a read-only run may call it; default: no."""


class SchemaTool(ABC):
    """A tool whose arguments are checked by its JSON Schema. Subclasses say what it does.

    Args:
        name: Unique in its agent: 1 to 64 of ``a-z``, ``A-Z``, ``0-9``, ``_`` and ``-``.
        description: For the model.
        parameters: JSON Schema (Draft 2020-12) of an object.
        options: See `ToolOptions`.

    Raises:
        UsageError: if no provider would take the name, or an option is none.
    """

    def __init__(
        self,
        name: str,
        description: str,
        parameters: Mapping[str, Any],
        **options: Unpack[ToolOptions],
    ) -> None:
        if not _LEGAL_NAME.fullmatch(name):
            raise UsageError(
                f'"{name}" is no name for a tool; 1 to 64 letters, digits, _ and - are'
            )
        self.name = name
        self.description = description
        self.parameters = parameters
        self.label = options.get("label") or name
        self.execution = options.get("execution", "parallel")
        self.idempotent = options.get("idempotent", False)
        self.timeout = options.get("timeout")
        self.read_only = options.get("read_only", False)
        if self.execution not in ("parallel", "sequential"):
            raise UsageError(f"{name}: execution is parallel or sequential, not {self.execution!r}")
        if self.timeout is not None and not self.timeout > 0:
            raise UsageError(f"{name}: timeout is more than 0 seconds, not {self.timeout!r}")

    def check(self, arguments: dict[str, Any]) -> Sequence[str]:
        """All ways in which arguments don't fit the parameters, as sentences for the model."""
        # Most calls are right and most schemas plain, which needs no import of jsonschema.
        if surely_fits(arguments, self.parameters):
            return ()
        return self._schema_check.violations(arguments)

    @cached_property
    def _schema_check(self) -> SchemaCheck:
        from runner.schema.check import SchemaCheck

        return SchemaCheck(self.parameters)

    @abstractmethod
    async def execute(
        self,
        tool_call_id: str,
        params: dict[str, Any],
        on_update: Update,
        cancellation: Cancellation,
    ) -> ToolResult:
        """Do it; see `runner.engine.contract.Tool`."""
