"""What is built and installed: one top-level name, its data in it, and not much else."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

WHERE = """\
from runner.bundled import folder
for kind in ("tools", "schemas", "specs"): print(folder(kind))
"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command, away from this checkout and its environment, and give its output."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=kept,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def site_packages(environment: Path) -> Path:
    return next(environment.glob("lib/python*/site-packages"))


def borrowing_environment(folder: Path) -> Path:
    """A new environment that finds the dependencies, and the build backend, in this one."""
    venv.create(folder, with_pip=False)
    borrowed = site_packages(folder) / "borrowed.pth"
    borrowed.write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, cwd=ROOT)
    return next(folder.glob("*.tar.gz"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the unpacked sdist, as an installer would that finds no wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    source = next(path for path in folder.iterdir() if path.is_dir())
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=source)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    environment = borrowing_environment(tmp_path_factory.mktemp("installed"))
    python = environment / "bin/python"
    run(python, "-m", "pip", "install", "-q", "--no-deps", wheel, cwd=environment)
    return environment


def test_wheel_has_one_top_level_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()

    assert {name.split("/")[0] for name in names} == {"runner", "pi_run-0.1.0.dist-info"}
    assert "runner/py.typed" in names
    assert not [name for name in names if "__pycache__" in name]


def test_wheel_carries_all_that_lies_beside_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())

    tracked = run("git", "ls-files", "tools", "schemas", "specs", "runner", cwd=ROOT).splitlines()
    beside = ("tools/", "schemas/", "specs/")
    missing = [
        path
        for path in tracked
        if (f"runner/_bundled/{path}" if path.startswith(beside) else path) not in names
        and not path.endswith(".gitkeep")
    ]
    assert missing == []


def test_installed_command_finds_what_it_ships(installed: Path, tmp_path: Path) -> None:
    command = installed / "bin/pi-run"

    assert run(command, "--version", cwd=tmp_path) == "pi-run 0.1.0\n"
    assert '"$schema"' in run(command, "schema", "spec", cwd=tmp_path)
    inside = site_packages(installed) / "runner/_bundled"
    folders = "\n".join(str(inside / kind) for kind in ("tools", "schemas", "specs"))
    assert run(installed / "bin/python", "-c", WHERE, cwd=tmp_path) == f"{folders}\n"


def test_installed_command_runs_what_it_writes(installed: Path, tmp_path: Path) -> None:
    command = installed / "bin/pi-run"
    run(command, "init", "first", cwd=tmp_path)

    assert run(command, "first/words.yaml", cwd=tmp_path) == "The text has 6 words.\n"


def test_editable_install_finds_the_checkouts_folders(tmp_path: Path) -> None:
    environment = borrowing_environment(tmp_path / "editable")
    python = environment / "bin/python"
    editable = ("install", "-q", "--no-deps", "--no-build-isolation", "-e", ROOT)
    run(python, "-m", "pip", *editable, cwd=tmp_path)

    folders = "\n".join(str(ROOT / kind) for kind in ("tools", "schemas", "specs"))
    assert run(python, "-c", WHERE, cwd=tmp_path) == f"{folders}\n"
    assert '"$schema"' in run(environment / "bin/pi-run", "schema", "spec", cwd=tmp_path)


def test_plain_install_is_small(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "plain", with_pip=False)
    folder = site_packages(tmp_path / "plain")
    python = tmp_path / "plain/bin/python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", wheel, cwd=tmp_path)

    packages = sorted(path.name.split("-")[0] for path in folder.glob("*.dist-info"))
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"\na plain install: {len(packages)} packages, {size / 1e6:.1f} MB")
    assert len(packages) <= 25, packages
    assert size <= 40e6
