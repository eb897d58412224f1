"""The examples of docs/ and README.md, run as they stand.

A fenced block of yaml, python or sh whose first line is ``# NAME`` is a file. A console block has
commands after ``$``, each with all that it prints below it: ``…`` stands for what differs from run
to run, on a line of its own for any lines. A spec that needs a key says so in its first line; of
those a page only runs `pi-run check`.
"""

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NEEDS_A_KEY = "needs a key"
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"# ([\w./-]+\.(?:yaml|py|sh))\b(.*)")
_PROVIDER = re.compile(r"provider: (?!scripted)[a-z]|--model (?!scripted)")


@dataclass
class Block:
    """A fenced block of a page."""

    language: str
    text: str

    @property
    def name(self) -> str | None:
        """Of the file that it is."""
        found = _NAME.match(self.text)
        return found[1] if found else None

    @property
    def needs_a_key(self) -> bool:
        return NEEDS_A_KEY in self.text.partition("\n")[0]

    def commands(self) -> Iterator[tuple[str, str]]:
        """Each command with what it prints."""
        for part in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


def blocks(page: Path) -> list[Block]:
    return [Block(*found) for found in _FENCE.findall(page.read_text(encoding="utf-8"))]


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of someone who tries an example in an empty folder, without progress."""
    monkeypatch.chdir(tmp_path)
    ours = ("PI_RUN_", "GITHUB_", "PYTEST_")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    return {
        **kept,
        **dict.fromkeys(KEYS, "a-key"),
        "PATH": path,
        "COLUMNS": "80",
        "PI_RUN_QUIET": "1",
    }


def write_files(page: Path) -> None:
    """Write the files of a page into the current folder."""
    for block in blocks(page):
        if block.name:
            file = Path(block.name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")


def output_of(command: str, environ: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        ["sh", "-c", command],
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    return done.returncode, done.stdout


def fits(output: str, wanted: str) -> bool:
    """Whether an output is what a page shows."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == "…\n" else ".*?".join(map(re.escape, line.split("…")))
        for line in wanted.splitlines(keepends=True)
    )
    return re.fullmatch(pattern, output) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_of_a_page_do_what_it_says(page: Path, environ: dict[str, str]) -> None:
    if page.stem == "README":
        Path("specs").symlink_to(ROOT / "specs")
    write_files(page)
    for block in blocks(page):
        if block.language == "yaml" and block.needs_a_key:
            code, output = output_of(f"pi-run check {block.name}", environ)
            assert code == 0, output
        if block.language == "python" and not block.name:
            Path("example.py").write_text(block.text, encoding="utf-8")
            code, output = output_of(f"{sys.executable} example.py", environ)
            assert code == 0, output
            assert f"# {output.rstrip()}\n" in block.text
        if block.language == "console":
            for command, wanted in block.commands():
                code, output = output_of(command, environ)
                assert fits(output, wanted), f"$ {command}\n{output}"
                assert code == 0, f"$ {command}\nended with {code}, and the page doesn't say so"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_example_is_left_out(page: Path) -> None:
    found = blocks(page)
    shown = "".join(block.text for block in found if block.language != "yaml")
    for block in found:
        if block.language == "yaml":
            assert block.name, f"a file has no name:\n{block.text}"
            if _PROVIDER.search(block.text):
                assert block.needs_a_key, f"{block.name} doesn't say that it {NEEDS_A_KEY}"
            others = "".join(other.text for other in found if other is not block)
            used = block.needs_a_key or block.name in shown or block.name in others
            assert used, f"{block.name} is never run"
    real = {block.name for block in found if block.needs_a_key}
    for block in found:
        for command, _ in block.commands() if block.language == "console" else ():
            if real.intersection(command.split()):
                assert command.startswith("pi-run check "), f"{command} would ask a real model"


def test_the_index_names_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = {page.name for page in PAGES if page.parent.name == "docs"} - {"index.md"}

    assert {page for page in pages if f"]({page})" not in index} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize(
    ("wanted", "output", "fit"),
    [
        ("a\n", "a\n", True),
        ("a\n", "a\nb\n", False),
        ("in … s\n", "in 0.01 s\n", True),
        ("in … s\n", "in 0.01 s\nand more s\n", False),
        ("a\n…\nb\n", "a\n1\n2\nb\n", True),
        ("a\n…\nb\n", "a\nb\n", True),
        ("a\n…\nb\n", "a\nc\n", False),
        ("…\n", "", True),
    ],
)
def test_an_ellipsis_stands_for_what_differs(wanted: str, output: str, fit: bool) -> None:
    assert fits(output, wanted) == fit
