"""A spec on its way to other machines: its text, and that of the files that it names.

What travels: the spec, what it extends, includes and uses, the Python files of its tools and hooks
with those beside them that they import, and programs that are named by their path. What does not,
since it is no text of the spec's, has to be on the worker: Python packages, programs on the
``PATH``, models' files, and keys, which never get into a database.

A worker lays the files out under ``.pi-run/fleet/DIGEST`` of the folder it works in. The path is
the same for all workers, so that a log which one began is gone on with by another.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from runner import json_text
from runner.api import Compiled, RunOptions, compile_spec
from runner.bundled import folder
from runner.error import LogError, UsageError
from runner.log.redact import LogRedactor
from runner.python_file import file_of, loaded_files
from runner.spec import yaml
from runner.spec.decode import shape_of
from runner.spec.file import locate
from runner.spec.loaded import Loaded
from runner.spec.mark import Program, Target
from runner.spec.model import Spec
from runner.spec.node import ListNode, MapNode, ScalarNode, Source
from runner.spec.shape import Decoding

FORMAT = "pi-run-bundle/1"
FOLDER = Path(".pi-run/fleet")
"""Where a worker lays bundles out."""
MAX_BYTES = 4 * 1024 * 1024
"""Of all files of a spec."""
_DIGITS = 20


@dataclass(slots=True)
class Bundle:
    """A spec with its files, and how all of its runs are to be run."""

    digest: str
    content: str
    """JSON, as `unpack` takes it."""


def pack(compiled: Compiled) -> Bundle:
    """A compiled spec as something that can be sent.

    Raises:
        UsageError: where a file can't be read, there is too much, or a key stands in it.
    """
    files = _read(sorted(_files(compiled)))
    root = os.path.commonpath([os.path.dirname(path) for path in files])
    named = {PurePosixPath(os.path.relpath(path, root)).as_posix(): path for path in files}
    _hold_no_key(compiled, files)
    options = compiled.options
    content = json_text.canonical(
        {
            "format": FORMAT,
            "spec": os.path.relpath(os.path.abspath(compiled.loaded.file), root),
            "files": {name: _text(files[path]) for name, path in named.items()},
            "programs": [name for name, path in named.items() if os.access(path, os.X_OK)],
            "options": {
                "sets": [list(change) for change in options.sets],
                "prompt": options.prompt,
                "model": options.model,
                "yes": options.yes,
                "require_expect": options.require_expect,
                "workspace": options.workspace,
            },
        }
    )
    return Bundle(hashlib.sha256(content).hexdigest()[:_DIGITS], content.decode())


def unpack(bundle: Bundle, workspace: str | None = None) -> Compiled:
    """Lay a bundle's files out, and load and check its spec here.

    Args:
        bundle: As of `pack`.
        workspace: Where tools work, whatever the bundle says.

    Raises:
        UsageError: with all that is missing on this machine.
        LogError: where the files can't be written.
    """
    told = json_text.parse(bundle.content)
    if told.get("format") != FORMAT:
        raise UsageError(f"a bundle of {told.get('format')}: this pi-run knows {FORMAT}")
    place = FOLDER / bundle.digest
    programs = set(told["programs"])
    try:
        for name, text in told["files"].items():
            _write(place, name, _bytes(text), name in programs)
    except OSError as error:
        raise LogError(f"{error.filename or place}: {error.strerror or error}") from None
    given = told["options"]
    options = RunOptions(
        sets=[(path, value) for path, value in given["sets"]],
        prompt=given["prompt"],
        model=given["model"],
        yes=given["yes"],
        require_expect=given["require_expect"],
        workspace=workspace or given["workspace"],
        log="none",
    )
    return compile_spec(str(place / told["spec"]), options)


def hold_no_secret(compiled: Compiled, given: set[str]) -> None:
    """Refuse inputs that are secret: what a run is given is kept in the database.

    Args:
        compiled: The spec.
        given: The inputs of a run that have a value.

    Raises:
        UsageError: where one of them is secret.
    """
    for name, declared in compiled.loaded.inputs.items():
        if declared.secret and name in given:
            raise UsageError(
                f"{compiled.loaded.file}: the input {name} is secret, and inputs are kept in the "
                f"database; have the workers take it from their environment, as in env: [NAME]"
            )


# --- what travels ---------------------------------------------------------------------------------


def _files(compiled: Compiled) -> set[str]:
    """The full paths of the files that a spec is made of."""
    found: set[str] = set()
    folders: set[str] = set()
    for each in compiled.loaded.everything():
        found.update(_texts(os.path.abspath(each.file), each.data))
        sources = (node.place.source for node in each.included.values())
        found.update(os.path.join(one.folder, os.path.basename(one.name)) for one in sources)
        folders.add(each.folder)
        for path in _named(each):
            found.add(path)
            if path.endswith(".py"):
                folders.add(os.path.dirname(path))
    own = str(folder("tools"))
    for module in map(str, loaded_files()):
        if not module.startswith(own) and any(
            module.startswith(os.path.join(each, "")) for each in folders
        ):
            found.add(module)
    return {path for path in found if os.path.isfile(path)}


def _texts(path: str, data: bytes) -> Iterator[str]:
    """A spec's file, and those that it extends."""
    yield path
    source = Source(path, os.path.dirname(path))
    root = yaml.parse(data, source, [])
    extends = root.entries.get("extends") if isinstance(root, MapNode) else None
    for name in extends.items if isinstance(extends, ListNode) else [extends]:
        if isinstance(name, ScalarNode):
            base = locate(source.folder, name.text)
            with contextlib.suppress(OSError):
                yield from _texts(base, Path(base).read_bytes())


def _named(loaded: Loaded) -> Iterator[str]:
    """The Python files and the programs that a spec names by their path."""
    into = Decoding([], lambda _name, path, _mark: loaded.included.get(path))
    shape_of(Spec).read(loaded.root, "", into)
    for found in into.found:
        node = found.node
        place = node.place.source.folder
        if isinstance(found.mark, Target) and isinstance(node, ScalarNode):
            if (file := file_of(node.text, Path(place))) is not None:
                yield str(file)
        elif isinstance(found.mark, Program) and isinstance(node, ListNode) and node.items:
            program = node.items[0]
            if isinstance(program, ScalarNode) and program.text.startswith(("./", "../")):
                yield locate(place, program.text)


def _read(paths: list[str]) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    for path in paths:
        try:
            files[path] = Path(path).read_bytes()
        except OSError as error:
            raise UsageError(f"{path}: can't be read: {error.strerror or error}") from None
    if (size := sum(map(len, files.values()))) > MAX_BYTES:
        raise UsageError(
            f"the files of the spec have {size:,} bytes, and {MAX_BYTES:,} can be sent to workers; "
            "keep large ones on the workers"
        )
    return files


def _hold_no_key(compiled: Compiled, files: dict[str, bytes]) -> None:
    """Refuse files in which a key of a well-known service stands."""
    if not compiled.loaded.spec.log.redact_known:
        return
    redactor = LogRedactor()
    for path, data in files.items():
        text = data.decode("utf-8", "replace")
        if redactor.text(text) != text:
            raise UsageError(
                f"{path}: there is what looks like a key in it, and it would be kept in the "
                "database; take it from the environment (or set log.redact_known: false)"
            )


def _text(data: bytes) -> Any:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _bytes(text: Any) -> bytes:
    return text.encode() if isinstance(text, str) else base64.b64decode(text["base64"])


def _write(place: Path, name: str, data: bytes, program: bool) -> None:
    """Write one file of a bundle, unless it is there already."""
    inside = PurePosixPath(name)
    if inside.is_absolute() or ".." in inside.parts:
        raise UsageError(f"a bundle with a file {name}, which lies outside of it")
    path = place / inside
    with contextlib.suppress(FileNotFoundError):
        if path.read_bytes() == data and bool(path.stat().st_mode & stat.S_IXUSR) == program:
            return
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError), (FOLDER.parent / ".gitignore").open("x") as file:
        file.write("*\n")
    # Another worker may do the same in the same folder.
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.write_bytes(data)
    part.chmod(0o700 if program else 0o600)
    part.replace(path)


def with_inputs(compiled: Compiled, inputs: dict[str, Any]) -> RunOptions:
    """The options of one run of a spec."""
    return replace(compiled.options, values=inputs, texts={})
