from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from runner.error import SpecError
from runner.spec.load import load
from runner.spec.loaded import Loaded

Files = Mapping[str, str | bytes]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def load_spec(folder: Path) -> Callable[..., Loaded]:
    """Loads a text as ``s.yaml``, with other files beside it."""

    def load_spec(
        text: str | bytes,
        files: Files | None = None,
        sets: Iterable[str | tuple[str, Any]] = (),
    ) -> Loaded:
        for name, content in {"s.yaml": text, **(files or {})}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return load("s.yaml", sets=sets)

    return load_spec


@pytest.fixture
def faults(load_spec: Callable[..., Loaded], folder: Path) -> Callable[..., list[str]]:
    """What is wrong with a spec, a line each, the current folder as ``HERE``."""

    def faults(text: str | bytes, files: Files | None = None) -> list[str]:
        try:
            load_spec(text, files)
        except SpecError as error:
            return str(error).replace(str(folder), "HERE").splitlines()
        return []

    return faults
