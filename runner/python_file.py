"""Python that a spec names: ``./tools/search.py:search`` or ``package.module:name``.

A file is loaded by its path, under a private name in ``sys.modules``, and nothing is put on
``sys.path``. Its folder is a package of its own, so two folders may each have their ``common.py``,
and what a person expects of a script works: ``import common`` finds the file beside it, at the top
or inside a function, and so does ``from .common import x``. The standard library wins over a file
of the same name. A file runs once per process: an edit is seen by the next process.
"""

from __future__ import annotations

import builtins
import hashlib
import importlib
import os
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from runner.error import UsageError, did_you_mean, nearest

_PREFIX = "_pi_run_"
_PRIVATE_NAME = re.compile(_PREFIX + r"[0-9a-f]+\.?")
_UNSETTLED = 2.0
"""Seconds in which a file's time stamp, as bytecode keeps it, may not tell two edits apart."""
_FEW = 12
"""Names that are all told where none is near."""
_lock = threading.RLock()
_folders: dict[str, Path] = {}
"""The folder of each private package, by its name."""


class TargetError(UsageError):
    """Python that a spec names can't be had; the message says where and why."""


def load_callable(target: str, folder: Path) -> Any:
    """What a target names: a function, a class, or another thing that can be called.

    Args:
        target: ``PATH.py:NAME``, ``package.module:NAME`` or ``package.module.NAME``; after a
            colon, ``NAME`` may be dotted. A module is looked for in the folder, then among what is
            installed.
        folder: The folder of the file that names it, to which a path is relative.

    Raises:
        TargetError: if there is no such thing, or its file can't be loaded.
    """
    place, name = _split(target)
    if _is_path(place):
        path = (folder / Path(place).expanduser()).resolve()
        module, where = load_file(path), str(path)
    else:
        module, where = _load_module(place, folder.resolve()), f"module {place}"
    found = _attribute(module, name, where)
    if not callable(found):
        raise TargetError(f'"{name}" of {where} is a {type(found).__name__}, not a function')
    return found


def file_of(target: str, folder: Path) -> Path | None:
    """The file that a target names, which need not be there; None where it names a module."""
    place = target.rpartition(":")[0]
    return (folder / Path(place).expanduser()).resolve() if _is_path(place) else None


def loaded_files() -> list[Path]:
    """The files that were loaded by their path so far, those that they imported included."""
    names = [name for name in list(sys.modules) if name.startswith(_PREFIX)]
    files = [getattr(sys.modules.get(name), "__file__", None) for name in names]
    return [Path(file) for file in files if file is not None]


def load_file(path: Path) -> ModuleType:
    """The module of a Python file, which is run now unless it was before in this process.

    Raises:
        TargetError: if it isn't there, can't be read, or raises.
    """
    path = path.resolve()
    if not path.is_file():
        raise TargetError(_no_file(path))
    stem = path.stem if path.suffix == ".py" else path.name
    name = f"{_package(path.parent)}.{stem.replace('.', '%')}"
    with _lock:
        if loaded := sys.modules.get(name):
            return loaded
        return _guarded(lambda: _run(name, path), path.parent, str(path))


def _split(target: str) -> tuple[str, str]:
    """A target's file or module, and the name in it."""
    place, colon, name = target.rpartition(":")
    if not colon and not _is_path(target):
        place, _, name = target.rpartition(".")
    if not place or not name:
        raise TargetError(f'"{target}" names no function; write ./FILE.py:NAME or MODULE:NAME')
    return place, name


def _is_path(place: str) -> bool:
    return place.endswith(".py") or "/" in place or place.startswith((".", "~"))


def _attribute(module: ModuleType, name: str, where: str) -> Any:
    found: Any = module
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            known = [n for n in dir(found) if not n.startswith("_")]
            raise TargetError(f'{where} has no "{part}"{_advice(part, known)}') from None
    return found


def _no_file(path: Path) -> str:
    if path.exists():
        return f"{path} is not a file"
    if not path.parent.is_dir():
        return f"there is no file {path}: there is no folder {path.parent}"
    try:
        files = [f for f in os.listdir(path.parent) if f.endswith(".py")]
    except OSError:
        files = []
    return f"there is no file {path}{_advice(path.name, files)}"


def _advice(name: str, known: list[str]) -> str:
    """The nearest known name, or all of them where these are few."""
    if not known or (len(known) > _FEW and nearest(name, known) is None):
        return ""
    return f"; {did_you_mean(name, known)}"


def _load_module(name: str, folder: Path) -> ModuleType:
    """A module by its dotted name, from the folder or from what is installed."""
    top = name.partition(".")[0]
    with _lock:
        full = f"{_package(folder)}.{name}" if _is_private(top, folder) else name
        if full == name and _installed(top) is None:
            raise TargetError(f'there is no module "{top}", neither in {folder} nor installed')
        return _guarded(lambda: importlib.import_module(full), folder, f"module {name}")


def _guarded(load: Callable[[], ModuleType], folder: Path, what: str) -> ModuleType:
    """Load, and tell a fault in a person's words."""
    try:
        return load()
    except (Exception, SystemExit) as error:
        if isinstance(error, SyntaxError) and os.path.isfile(error.filename or ""):
            raise TargetError(f"{error.filename}:{error.lineno or 1}: {error.msg}") from error
        said = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
        place = _own_line(error, folder) or what
        raise TargetError(f"{place}: {_PRIVATE_NAME.sub('', said)}") from error


def _own_line(error: BaseException, folder: Path) -> str | None:
    """``FILE:LINE`` of the innermost of the person's own lines that an error came through."""
    inside = f"{folder}{os.sep}"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename.startswith(inside):
            return f"{frame.filename}:{frame.lineno}"
    return None


# --- the private package of a folder --------------------------------------------------------------


def _package(folder: Path) -> str:
    """The name of a folder's private package, which is made where there is none yet."""
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    name = f"{_PREFIX}{digest}"
    with _lock:
        if name not in sys.modules:
            if _finder not in sys.meta_path:
                # First, since a path alone says nothing of how a private package's files are run.
                sys.meta_path.insert(0, _finder)
            _folders[name] = folder
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [str(folder)]
            sys.modules[name] = module_from_spec(spec)
    return name


def _run(name: str, path: Path) -> ModuleType:
    spec = spec_from_file_location(name, path, loader=_Loader(name, str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


class _Loader(SourceFileLoader):
    """Runs a file whose imports find the files of its private package's folder first."""

    def exec_module(self, module: ModuleType) -> None:
        package = module.__name__.partition(".")[0]
        # Code looks for builtins, so also for what its import statements call, in its own globals.
        module.__dict__["__builtins__"] = {
            **builtins.__dict__,
            "__import__": _importer(package, _folders[package]),
        }
        super().exec_module(module)

    def set_data(self, path: Any, data: Any, *, _mode: int = 0o666) -> None:
        # Bytecode knows its source by whole seconds and its size. What was edited just now may be
        # edited again within that second, so it is not kept.
        if time.time() - os.stat(self.path).st_mtime > _UNSETTLED:
            super().set_data(path, data, _mode=_mode)


class _Finder(MetaPathFinder):
    """Finds the modules of private packages."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if not name.startswith(_PREFIX) or path is None:
            return None
        for folder in path:
            if found := _sibling(Path(folder), name.rpartition(".")[2]):
                if found.is_dir():
                    spec = ModuleSpec(name, None, is_package=True)
                    spec.submodule_search_locations = [str(found)]
                    return spec
                inside = [str(found.parent)] if found.name == "__init__.py" else None
                return spec_from_file_location(
                    name, found, loader=_Loader(name, str(found)), submodule_search_locations=inside
                )
        return None


_finder = _Finder()


def _sibling(folder: Path, name: str) -> Path | None:
    """The file of a module in a folder; a folder without ``__init__.py`` stands for itself."""
    for candidate in (folder / name / "__init__.py", folder / f"{name}.py"):
        if candidate.is_file():
            return candidate
    inside = folder / name
    return inside if name.isidentifier() and inside.is_dir() and any(inside.glob("*.py")) else None


def _installed(name: str) -> ModuleSpec | None:
    """What a top-level name means to all of this process."""
    try:
        return find_spec(name)
    except (ImportError, ValueError):
        return None


def _is_private(name: str, folder: Path) -> bool:
    """Whether a top-level name means a file of the folder, and not what all others mean by it."""
    if name in sys.stdlib_module_names or not (sibling := _sibling(folder, name)):
        return False
    public = _installed(name)
    if sibling.is_dir():
        return public is None
    return public is None or public.origin is None or not _same(public.origin, sibling)


def _same(origin: str, path: Path) -> bool:
    try:
        return os.path.samefile(origin, path)
    except OSError:
        return False


def _importer(package: str, folder: Path) -> Any:
    """``__import__`` for the files of a folder."""
    private: dict[str, bool] = {}

    def import_(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        top = name.partition(".")[0]
        if not level and top not in private:
            private[top] = _is_private(top, folder)
        if level or not private[top]:
            return builtins.__import__(name, globals, locals, fromlist, level)
        if fromlist:
            return builtins.__import__(f"{package}.{name}", globals, locals, fromlist)
        importlib.import_module(f"{package}.{name}")
        return sys.modules[f"{package}.{top}"]

    return import_
