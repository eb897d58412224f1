import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PiRun = Callable[..., "subprocess.CompletedProcess[str]"]

FILES = ["test_words.py", "tools.py", "words.yaml"]


def test_what_it_writes_passes_as_it_is(pi_run: PiRun, folder: Path) -> None:
    done = pi_run("init", "new/demo")

    assert done.returncode == 0
    assert done.stdout == "".join(f"new/demo/{name}: written\n" for name in FILES)
    assert pi_run("check", "new/demo/words.yaml").stdout == "new/demo/words.yaml: ok\n"
    assert pi_run("new/demo/words.yaml").stdout == "The text has 6 words.\n"


@pytest.mark.slow
def test_the_test_that_it_writes_passes(pi_run: PiRun, folder: Path) -> None:
    pi_run("init", "demo")
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "demo"],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert tests.returncode == 0, tests.stdout
    # Its spec is a test, too.
    assert "2 passed" in tests.stdout


def test_it_overwrites_nothing(pi_run: PiRun, folder: Path) -> None:
    (folder / "tools.py").write_text("mine", encoding="utf-8")
    done = pi_run("init")

    assert done.returncode == 0
    assert "tools.py: kept as it was\n" in done.stdout
    assert (folder / "tools.py").read_text(encoding="utf-8") == "mine"
    assert sorted(path.name for path in folder.iterdir()) == FILES


def test_it_says_nothing_where_it_is_to_be_quiet(pi_run: PiRun, folder: Path) -> None:
    for _ in range(2):
        done = pi_run("init", "demo", "-q")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(path.name for path in (folder / "demo").iterdir()) == FILES


def test_a_folder_that_cant_be_made_is_an_error(pi_run: PiRun, folder: Path) -> None:
    (folder / "file").touch()
    done = pi_run("init", "file")

    assert (done.returncode, done.stdout) == (6, "")
    assert done.stderr.startswith("pi-run: file: File exists; ")
