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
PERMISSION = "may this be run?"
AT_REST = "press Enter to end:"


class Typist:
    """Types at a terminal of its own that the command runs on, when it was asked to."""

    def __init__(self, command: str, folder: Path, *words: str) -> None:
        self._leader, follower = os.openpty()
        self.said = ""
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
        before, _, self.said = self.said.partition(question)
        assert AT_REST not in before
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
        made.append(Typist(command, folder, "ask.yaml", "--log", "none", *words))
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
