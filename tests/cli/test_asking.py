"""Questions on a terminal: each line that is typed is for one reader only."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

SPEC = """\
version: 1
model:
  provider: scripted
  script:
    - tool_calls: [{name: mark, arguments: {}}]
    - text: "{{ messages | map(attribute='text') | join(' / ') }}"
    - text: "then {{ last.text }}"
prompt: Hello
tools:
  - {name: mark, description: Make a mark., command: [touch, mark]}
permissions: {ask: [mark]}
"""
PiRun = Callable[..., "subprocess.CompletedProcess[str]"]
PERMISSION = "may this be run?"
AT_REST = "press Enter to end:"


class Typist:
    """Types at a terminal of its own that the command runs on, when it was asked to."""

    def __init__(self, command: str, folder: Path, *words: str) -> None:
        self._leader, follower = os.openpty()
        self.said = ""
        """What was said since the last question."""
        self.said_before = ""
        self.process = subprocess.Popen(
            [command, *words],
            cwd=folder,
            env={**os.environ, "TERM": "dumb"},
            stdin=follower,
            stdout=follower,
            stderr=follower,
            start_new_session=True,
        )
        os.close(follower)

    def answer(self, question: str, typed: str) -> None:
        """Wait until something was asked, and type."""
        while question not in self.said:
            self.said += os.read(self._leader, 4096).decode()
        self.said_before, _, self.said = self.said.partition(question)
        assert AT_REST not in self.said_before
        os.write(self._leader, f"{typed}\n".encode())

    def rest(self) -> str:
        """All that is said from here on to the end."""
        with suppress(OSError):  # all of its other ends are closed
            while data := os.read(self._leader, 4096):
                self.said += data.decode()
        self.process.wait(timeout=30)
        return self.said

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._leader)


@pytest.fixture
def typist(command: str, folder: Path) -> Iterator[Callable[..., Typist]]:
    made: list[Typist] = []

    def make(spec: str, *words: str) -> Typist:
        (folder / "ask.yaml").write_text(spec, "utf-8")
        if words[:1] not in (("resume",), ("replay",)):
            words = ("ask.yaml", "--log", "none", *words)
        made.append(Typist(command, folder, *words))
        return made[0]

    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize("answer", ["y", "n"])
def test_a_permission_is_asked_for(
    typist: Callable[..., Typist], folder: Path, answer: str
) -> None:
    typing = typist(SPEC)
    typing.answer(PERMISSION, answer)
    assert "Hello" in typing.rest()
    assert typing.process.returncode == 0
    assert (folder / "mark").exists() == (answer == "y")


@pytest.mark.parametrize("answer", ["y", "n"])
def test_an_answer_steers_nothing(typist: Callable[..., Typist], folder: Path, answer: str) -> None:
    typing = typist(SPEC, "--interactive")
    typing.answer(PERMISSION, answer)
    typing.answer(AT_REST, "more")
    typing.answer(AT_REST, "")
    said = typing.rest()
    assert (folder / "mark").exists() == (answer == "y")
    assert "then more" in said
    assert typing.process.returncode == 0


EDIT = """\
version: 1
model:
  provider: scripted
  script:
    - tool_calls:
        - {name: edit_file, arguments: {path: a.txt, edits: [{old: two, new: "2\\e[2J"}]}}
        - {name: write_file, arguments: {path: b.txt, content: new}}
    - text: done
prompt: Hello
tools: [edit_file, write_file]
permissions: {ask: ["*"]}
"""


def test_a_change_is_shown_before_it_is_made(typist: Callable[..., Typist], folder: Path) -> None:
    (folder / "a.txt").write_text("one\ntwo\nthree\n", "utf-8")
    typing = typist(EDIT)
    typing.answer(PERMISSION, "y")
    typing.answer(PERMISSION, "n")
    assert '{"path":"a.txt"}' in typing.said_before
    for each in ("  | -two", "  | +2\\u001b[2J", "  |  three"):
        assert each in typing.said_before.replace("\r", "")
    assert "  | +new" in typing.rest()
    assert (folder / "a.txt").read_text("utf-8") == "one\n2\x1b[2J\nthree\n"
    assert not (folder / "b.txt").exists()


ASK_USER = """\
version: 1
model:
  provider: scripted
  script:
    - tool_calls:
        - {name: ask_user, arguments: {question: "Which\\e[2J?", choices: [red, blue]}}
        - {name: ask_user, arguments: {question: And why?}}
    - text: "{{ messages[-2].text }} {{ last.text }}"
prompt: Hello
tools: [ask_user]
"""


def test_a_model_asks_and_is_answered(typist: Callable[..., Typist], folder: Path) -> None:
    typing = typist(ASK_USER)
    typing.answer("  | 2. blue", "2")
    assert "Which\\u001b[2J?" in typing.said_before
    typing.answer("  | And why?", "it is calm")
    assert "blue it is calm" in typing.rest()


GOES_ON = """\
version: 1
model:
  provider: scripted
  script:
    - tool_calls: [{name: look}]
    - tool_calls: [{name: mark}]
    - text: "{{ last.text }}"
prompt: Hello
tools:
  - {name: look, description: Look., command: [echo, seen]}
  - {name: mark, description: Make a mark., command: [touch, mark]}
permissions: {allow: [look], ask: [mark]}
limits: {turns: %s}
"""


@pytest.mark.parametrize(
    ("turns", "words"),
    [
        ("1", ("resume", "log.jsonl", "--set", "limits.turns=5")),
        ("5", ("replay", "log.jsonl", "--from-turn", "2", "--log", "none")),
    ],
)
def test_who_goes_on_with_a_run_is_asked_as_well(
    typist: Callable[..., Typist], pi_run: PiRun, folder: Path, turns: str, words: tuple[str, ...]
) -> None:
    (folder / "ask.yaml").write_text(GOES_ON % turns, "utf-8")
    done = pi_run("ask.yaml", "--log", "log.jsonl")
    assert done.returncode == (4 if turns == "1" else 0)
    assert not (folder / "mark").exists()

    person = typist(GOES_ON % turns, *words)
    person.answer(PERMISSION, "y")
    person.rest()
    assert person.process.returncode == 0
    assert (folder / "mark").exists()
