"""A log of which one line was changed does not replay, and the line, or what it changes, is named.

What a change may be overlooked in is told below, each with its reason: all else is noticed.
"""

import asyncio
import copy
import json
import os
import random
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner.api import RunOptions, run_spec
from runner.api.replay import replay
from runner.api.resume import ResumeOptions, Resumption
from runner.bundled import folder
from runner.error import PiRunError
from runner.json_text import line

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"
Event = dict[str, Any]
Where = tuple[str | int, ...]

LONGEST = 150
"""Lines of a log that is changed: in longer ones there is nothing else, only more of it."""


# --- logs -----------------------------------------------------------------------------------------


class Log:
    """A log of a run that was really made."""

    def __init__(self, name: str, events: list[Event]) -> None:
        self.name = name
        self.events = events

    def __repr__(self) -> str:
        return self.name


RESUMED = """\
version: 1
model: {provider: scripted, script: [{tool_calls: [{name: ok}, {name: ok}], repeat: 2}, {text: b}]}
prompt: Go
limits: {turns: 1}
tools: [{name: ok, description: Ok., command: ["true"]}]
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[Log]:
    """Those of the examples, of the conformance cases' runs, and of runs that were resumed."""
    top = tmp_path_factory.mktemp("logs")
    here = Path.cwd()
    found: list[Log] = []
    try:
        for spec in sorted(folder("specs").glob("*.yaml")):
            if "local" not in spec.stem:
                found += run_in(fresh(top, spec.stem), f"{spec} --log out.jsonl")
        for case in sorted(CASES.glob("*/*/case.yaml")):
            name = f"{case.parent.parent.name}-{case.parent.name}"
            place = fresh(top, name)
            shutil.copytree(case.parent, place, dirs_exist_ok=True)
            for step in yaml.safe_load(case.read_text(encoding="utf-8"))["steps"]:
                if set(step) & {"edit", "signal", "during", "stdin", "stdin_open", "env"}:
                    break
                found += run_in(place, step["run"].removeprefix("pi-run "))
        found += resumed(fresh(top, "resumed"))
    finally:
        os.chdir(here)
    return [log for log in found if len(log.events) <= LONGEST]


def fresh(top: Path, name: str) -> Path:
    place = top / name
    place.mkdir()
    os.chdir(place)
    return place


def run_in(place: Path, words: str) -> list[Log]:
    """Run what a case runs, if it is a spec with a log of its own."""
    given = shlex.split(words)
    log = next((word for word in given if word.endswith(".jsonl")), None)
    known = {"--log", "--frozen", "-i", "--set", "--yes", "--quiet", "--format"}
    flags = {word for word in given if word.startswith("-")}
    if not given[0].endswith(".yaml") or log is None or flags - known:
        return []
    texts = dict(word.split("=", 1) for word in given if re.fullmatch(r"\w+=[^@].*", word))
    frozen, yes = "--frozen" in flags, "--yes" in flags
    options = RunOptions(texts=texts, log=log, frozen=frozen, yes=yes)
    if "--set" in flags:
        options = RunOptions(sets=list(texts.items()), log=log)
    try:
        run_spec(given[0], options=options)
    except PiRunError:
        return []  # a case of what is refused
    return [Log(f"{place.name}/{log}", read(place / log))]


def read(path: Path) -> list[Event]:
    return [json.loads(text) for text in path.read_bytes().split(b"\n") if text]


def resumed(place: Path) -> Iterator[Log]:
    """A run that went on after a limit, and one after it was killed in a call."""
    (place / "spec.yaml").write_text(RESUMED, encoding="utf-8")
    log = place / "limit.jsonl"
    run_spec(place / "spec.yaml", options=RunOptions(log=str(log)))
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
    killed = place / "killed.jsonl"
    start = next(n for n, text in enumerate(lines) if '"tool_execution_end"' in text)
    killed.write_text("".join(lines[:start]), encoding="utf-8")
    for path in (log, killed):
        going_on = Resumption(path, ResumeOptions(sets=[("limits.turns", "9")]))
        asyncio.run(going_on.run())
        yield Log(path.name, read(path))


def outcome(path: Path) -> tuple[int, Any]:
    """How `pi-run replay` ends: its exit code, and the error or the difference."""
    try:
        found = replay(path)
    except PiRunError as error:
        return error.exit_code, error
    return (0 if found.difference is None else 1), found.difference


def text_of(events: list[Event]) -> str:
    return "".join(line(event) + "\n" for event in events)


def test_each_replays_as_it_is(logs: list[Log], tmp_path: Path) -> None:
    assert logs
    for log in logs:
        (tmp_path / "log.jsonl").write_text(text_of(log.events), encoding="utf-8")
        assert outcome(tmp_path / "log.jsonl") == (0, None), log.name


# --- what may be overlooked -----------------------------------------------------------------------

DIFFERS = "it differs from run to run"
ONCE = "it came from outside, and stands in no other place of the log"
MAY_DIFFER = {
    r"\w+\.t": DIFFERS,
    r"\w+\.seconds": DIFFERS,
    r"run_start\.(run_id|started_at|runner_version|spec\.path)": DIFFERS,
    r"run_start\.spec\.sha256": "a comment in a spec is no change of it",
    r"run_start\.spec": "all in it but the name may differ",
    r"run_start\.inputs\..*": "texts are rendered in the plan; only later templates read inputs",
    r"run_(start|resume)\.plan\b.*": "it is what the run is driven by; see the tests below",
    r"hook_decision\.arguments\b.*": ONCE,
    r"hook_decision\.on_error": ONCE,
    r"model_retry\.error": ONCE,
    r"message_end\.message\.error\b.*": ONCE,
    r"message_queued\.source": ONCE,
    r"tool_execution_end\.stopped": ONCE,
    r"run_end\.redactions": "what was taken out of the log is not in it",
}
LINES_THAT_MAY_GO = {
    "run_end": "a log that breaks off replays as far as it goes",
    "run_resume": "after a kill no other line tells that the run went on",
    "hook_decision": "a call and its result are told as a hook left them",
    "tool_execution_update": ONCE,
}


def overlooked(event: Event, where: Where, value: Any) -> str | None:
    """Why a change of a field may be overlooked; None where it must not be."""
    if where == ("type",):
        empty = "it says nothing" if says_nothing(event) else None
        return empty or LINES_THAT_MAY_GO.get(event["type"])
    path = ".".join(map(str, (event["type"], *where)))
    found = (why for pattern, why in MAY_DIFFER.items() if re.fullmatch(pattern, path))
    return next(found, None)


def says_nothing(event: Event) -> bool:
    """Whether a line is the piece that arguments are empty: without any they are, too."""
    return event.get("delta", {}).get("arguments") in ("", "{}") and "id" not in event["delta"]


def is_more_of(old: Any, new: Any) -> bool:
    """Whether a value has all that another has, and unknown fields besides."""
    return isinstance(old, dict) and isinstance(new, dict) and old.items() <= new.items()


# --- changes --------------------------------------------------------------------------------------


def places(value: Any, where: Where = ()) -> Iterator[Where]:
    """Each place in a value."""
    keys = value if isinstance(value, dict) else range(len(value) if isinstance(value, list) else 0)
    for key in keys:
        yield (*where, key)
        yield from places(value[key], (*where, key))


def at(value: Any, where: Where) -> Any:
    for key in where:
        value = value[key]
    return value


def other(value: Any, chance: random.Random) -> Any:
    """Another value: like it, or of another type."""
    like: list[Any] = []
    match value:
        case bool():
            like = [not value]
        case str():
            like = [f"{value}x", "", value[1:], "ok"]
        case int() | float():
            like = [value + 1, value - 1, value + 1000, value + 0.5]
        case list():
            like = [[], [value], [*value, *value[:1]], value[1:]]
        case dict():
            like = [{}, {**value, "x": 1}]
    odd = [None, "x", 7, True, [], {}, ["x"], {"x": 1}]
    text = line({"": value})
    return chance.choice([one for one in like * 3 + odd if line({"": one}) != text])


def changed(event: Event, where: Where, value: Any) -> Event:
    """An event with another value in a place; with none, where that is ``...``."""
    event = copy.deepcopy(event)
    above = at(event, where[:-1])
    if value is ...:
        del above[where[-1]]
    else:
        above[where[-1]] = value
    return event


EXAMPLES = settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
# What is changed is told by each failure: there is nothing to shrink.
chances = st.integers(0, 2**32 - 1).map(random.Random)


def pick(logs: list[Log], chance: random.Random) -> tuple[Log, int]:
    """A log and one of its lines; each log with as good a chance, and each type of line."""
    log = chance.choice(logs)
    kind = chance.choice(sorted({event["type"] for event in log.events}))
    return log, chance.choice([n for n, one in enumerate(log.events) if one["type"] == kind])


def hold_field(logs: list[Log], path: Path, chance: random.Random) -> None:
    log, number = pick(logs, chance)
    event = log.events[number]
    where = chance.choice(list(places(event)))
    old = at(event, where)
    new = ... if chance.random() < 0.3 else other(old, chance)
    lines = [*log.events]
    lines[number] = changed(event, where, new)
    path.write_text(text_of(lines), encoding="utf-8")
    code, found = outcome(path)
    assert code in (0, 1, 6), (code, found)
    if code == 0:
        told = f"{log.name}:{number + 1}: {event['type']}.{where}: {old!r} is {new!r}"
        assert overlooked(event, where, new) or is_more_of(old, new), told
    else:
        assert names(found, log.events, {number})


def hold_line(logs: list[Log], path: Path, chance: random.Random) -> None:
    log, number = pick(logs, chance)
    lines = text_of(log.events).splitlines(keepends=True)
    last = len(lines) - 1
    how = chance.choice(("removed", "doubled", "swapped" if number < last else "torn", "torn"))
    match how:
        case "removed":
            del lines[number]
        case "doubled":
            lines.insert(number, lines[number])
        case "swapped":
            lines[number], lines[number + 1] = lines[number + 1], lines[number]
        case "torn":
            cut = chance.randrange(len(lines[number]) - 1)
            lines[number] = lines[number][:cut] + ("" if number == last else "\n")
    path.write_text("".join(lines), encoding="utf-8")
    code, found = outcome(path)
    if number == last and how in ("removed", "torn"):
        assert code in (0, 6)  # a crash's work; of a log of one line nothing is left
    else:
        assert code in (1, 6), f"{log.name}:{number + 1}: {log.events[number]['type']} {how}"
        assert names(found, log.events, {number, number + 1})


def names(found: Any, events: list[Event], changed_lines: set[int]) -> bool:
    """Whether an error names a line that was changed, or a difference what that changes first."""
    if isinstance(found, PiRunError):
        place = re.search(r": line (\d+):", str(found))
        return place is not None and int(place[1]) - 1 in changed_lines
    if found.seq is None:
        return True  # the run goes on where its log ends
    # A line is read ahead of its turn where it decides on what comes before it, such as how the
    # run ended; then that is the first event that it changes.
    number = min(changed_lines)
    return found.seq >= number or bool(found.path) or found.type != events[number]["type"]


@settings(EXAMPLES, max_examples=250)
@given(chance=chances)
def test_a_changed_field_is_noticed(logs: list[Log], tmp_path: Path, chance: random.Random) -> None:
    hold_field(logs, tmp_path / "log.jsonl", chance)


@settings(EXAMPLES, max_examples=100)
@given(chance=chances)
def test_a_line_that_is_lost_or_out_of_place_is_noticed(
    logs: list[Log], tmp_path: Path, chance: random.Random
) -> None:
    hold_line(logs, tmp_path / "log.jsonl", chance)


@pytest.mark.slow
@pytest.mark.timeout(900)
@settings(EXAMPLES, max_examples=4000)
@given(chance=chances)
def test_any_change_is_noticed(logs: list[Log], tmp_path: Path, chance: random.Random) -> None:
    hold = chance.choice((hold_field, hold_field, hold_line))
    hold(logs, tmp_path / "log.jsonl", chance)
