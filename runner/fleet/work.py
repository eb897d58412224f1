"""What a batch is to do: its specs, the rows of its inputs, and the runs that these come to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runner import json_text
from runner.api import Compiled, RunOptions, compile_spec
from runner.api.plan_json import without_rates
from runner.error import Fault, LogError, SpecError, UsageError
from runner.fleet.contract import Job, Outcome
from runner.fleet.outcome import outcome_of
from runner.fleet.rows import BadRow, Row, read_rows
from runner.fleet.table import Table
from runner.spec.decode import to_json

MAX_TOLD = 20
"""How many different faults of rows are listed."""
KEY_BYTES = 10
"""Bytes of a key, each of which is two hexadecimal digits."""
_DIGITS = 2 * KEY_BYTES
_SHORT = 12
"""Bytes of a hash by which rows are known to be the same: there may be millions of them."""


@dataclass(slots=True)
class Work:
    """All runs of a batch."""

    specs: list[Compiled]
    rows: str | None = None
    """The file of inputs; None for one row without any."""
    repeat: int = 1
    """How often each row is run."""
    shard: tuple[int, int] = (1, 1)
    """Which part of the runs, and of how many."""
    count: int = 0
    """How many runs there are, those of other shards left out."""
    doubles: int = 0
    """Rows that say the same as one before, and are not run again."""
    unpriced: list[str] = field(default_factory=list)
    """The specs with a model of which no price is known."""
    digests: list[str] = field(default_factory=list)
    """Of each spec: the same where it says the same."""

    @classmethod
    def of(
        cls,
        specs: Sequence[str],
        options: RunOptions,
        *,
        rows: str | None = None,
        repeat: int = 1,
        shard: tuple[int, int] = (1, 1),
    ) -> Work:
        """Load the specs, and look at all rows.

        Args:
            specs: Their files.
            options: How they are to be run, with the inputs that all runs have.
            rows: The file of their other inputs.
            repeat: How often each row is run.
            shard: Which part of the runs, and of how many.

        Raises:
            SpecError: with all that is wrong with the specs.
            UsageError: with what is wrong with the rows, or where there is nothing to do.
        """
        work = cls(_compiled(specs, options), rows, repeat, shard)
        work.digests = [_digest_of(each) for each in work.specs]
        work._look()
        return work

    def jobs(self) -> Iterator[Job]:
        """The runs, in the order of the rows; each is made when it is asked for.

        Raises:
            LogError: where the rows can't be read any more.
        """
        index, (part, parts) = 0, self.shard
        seen = Table(_SHORT)
        for row in self._rows():
            for place in range(len(self.specs)):
                inputs = self._inputs(place, row)
                if isinstance(row, BadRow) or isinstance(inputs, list):
                    raise LogError(f"{self.rows}:{row.line}: it has changed since it was checked")
                identity = self._identity(place, inputs)
                if seen.get(short := identity.digest()[:_SHORT]) is not None:
                    continue
                seen.put(short, row.line)
                row_key = self._row_key(place, inputs)
                for number in range(1, self.repeat + 1):
                    if index % parts == part - 1:
                        yield Job(_key(identity, number), row_key, place, row.line, number, inputs)
                    index += 1

    def outcome(self, job: Job, **said: Any) -> Outcome:
        """What came of a run, of which `said` is known."""
        return outcome_of(job, self.specs[job.spec].loaded.name, self.shown(job), **said)

    def shown(self, job: Job) -> dict[str, Any]:
        """The inputs of a run as people may see them."""
        declared = self.specs[job.spec].loaded.inputs
        return {
            name: f"[secret:{name}]" if declared[name].secret else value
            for name, value in job.inputs.items()
        }

    def secrets(self, job: Job) -> dict[str, Any]:
        """The inputs of a run that no one is to see."""
        declared = self.specs[job.spec].loaded.inputs
        return {name: value for name, value in job.inputs.items() if declared[name].secret}

    def rows_digest(self) -> str | None:
        """Of the file of inputs; None where there is none."""
        if self.rows is None:
            return None
        with open(self.rows, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    # --- rows -------------------------------------------------------------------------------------

    def _rows(self) -> Iterator[Row | BadRow]:
        return iter([Row(0)]) if self.rows is None else read_rows(self.rows)

    def _look(self) -> None:
        """Read all rows: count the runs, and tell all that is wrong with them at once."""
        faults = _RowFaults(self.rows or "the inputs")
        seen = Table(_SHORT)
        held: set[int] = set()
        rows = 0
        for row in self._rows():
            rows += 1
            for place in range(len(self.specs)):
                inputs = self._inputs(place, row)
                if isinstance(inputs, list):
                    column = row.column if isinstance(row, BadRow) else 1
                    faults.add(row.line, column, inputs)
                    continue
                seen.put(self._identity(place, inputs).digest()[:_SHORT], row.line)
                if place not in held:
                    held.add(place)
                    self._hold_whole(place, inputs)
        faults.tell()
        if not rows:
            raise UsageError(f"{self.rows}: it has no rows; each is the inputs of one run")
        whole = len(seen) * self.repeat
        self.doubles = rows * len(self.specs) - len(seen)
        part, parts = self.shard
        self.count = len(range(part - 1, whole, parts))
        if not self.count:
            raise UsageError(f"there are {whole} runs, so shard {part}/{parts} has none; use fewer")

    def _hold_whole(self, place: int, inputs: dict[str, Any]) -> None:
        """Prepare one run, so that what ails all of them is told before the first."""
        compiled = self.specs[place]
        options = RunOptions(
            values=inputs,
            prompt=compiled.options.prompt,
            log="none",
            environ=compiled.options.environ,
            require_expect=compiled.options.require_expect,
        )
        plan = compiled.prepare(options).plan
        if any(model.price is None for model in (plan.options.model, *plan.options.fallback)):
            self.unpriced.append(compiled.loaded.file)

    def _inputs(self, place: int, row: Row | BadRow) -> dict[str, Any] | list[str]:
        """The inputs of a row for a spec, or what is wrong with them."""
        if isinstance(row, BadRow):
            return [row.message] if place == 0 else []
        compiled = self.specs[place]
        options, declared = compiled.options, compiled.loaded.inputs
        given = row.values.keys() | row.texts.keys()
        values = {k: v for k, v in options.values.items() if k not in given} | row.values
        texts = {k: v for k, v in options.texts.items() if k not in given}
        for name, text in row.texts.items():
            known = declared.get(name)
            # A table has a cell for every input, and no other way to leave one out.
            if text or known is None or (known.type == "string" and known.default is None):
                texts[name] = text
        try:
            return compiled.loaded.bind_inputs(values, texts)
        except UsageError as error:
            which = f"{compiled.loaded.file}: " if len(self.specs) > 1 else ""
            return [which + line for line in str(error).splitlines()]

    # --- keys -------------------------------------------------------------------------------------

    def _identity(self, place: int, inputs: Mapping[str, Any]) -> Any:
        """A hash of a spec and its inputs, to which more can be added."""
        return hashlib.sha256(self.digests[place].encode() + json_text.canonical(inputs))

    def _row_key(self, place: int, inputs: Mapping[str, Any]) -> str:
        name = self.specs[place].loaded.name
        return hashlib.sha256(json_text.canonical([name, inputs])).hexdigest()[:_DIGITS]


def _key(identity: Any, number: int) -> str:
    own = identity.copy()
    own.update(b"#%d" % number)
    return str(own.hexdigest()[:_DIGITS])


def _compiled(specs: Sequence[str], options: RunOptions) -> list[Compiled]:
    compiled: list[Compiled] = []
    faults: list[Fault] = []
    others: list[str] = []
    for path in dict.fromkeys(specs):
        try:
            compiled.append(compile_spec(path, options))
        except SpecError as error:
            faults += error.faults
        except UsageError as error:
            others.append(str(error))
    if others:
        raise UsageError("\n".join([*others, *map(str, faults)]))
    if faults:
        raise SpecError(faults)
    return compiled


def _digest_of(compiled: Compiled) -> str:
    """Of all that a spec says, and of what changes it; not of how its text is laid out."""
    loaded = compiled.loaded
    said = [[each.name, without_rates(to_json(each.spec))] for each in loaded.everything()]
    return hashlib.sha256(json_text.canonical([said, compiled.options.prompt])).hexdigest()


class _RowFaults:
    """Gathers what is wrong with rows: each sentence once, with how often it holds."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._places: dict[str, tuple[int, int, int]] = {}
        self.found = 0

    def add(self, line: int, column: int, messages: list[str]) -> None:
        """These are wrong with the row at a place."""
        for message in messages:
            self.found += 1
            *first, count = self._places.get(message, (line, column, 0))
            if count or len(self._places) < MAX_TOLD:
                self._places[message] = first[0], first[1], count + 1

    def tell(self) -> None:
        """Raise them as one, if there are any.

        Raises:
            UsageError: with a line each.
        """
        if not self.found:
            return
        lines = []
        for message, (line, column, count) in self._places.items():
            more = f" (and so {count - 1:,} times more)" if count > 1 else ""
            place = f"{self._path}:{line}:{column}" if line else self._path
            lines.append(f"{place}: {message}{more}")
        told = sum(count for _, _, count in self._places.values())
        if told < self.found:
            lines.append(f"{self._path}: and {self.found - told:,} more faults")
        raise UsageError("\n".join(lines))


def default_name(work: Work) -> str:
    """What a batch is called: as its spec is, or as the first of several and how many more."""
    name = work.specs[0].loaded.name
    return name if len(work.specs) == 1 else f"{name}-and-{len(work.specs) - 1}"
