"""The files that ``pi-run init`` writes. They lie beside this module as they are written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from runner.error import LogError

_FIRST = Path(__file__).with_name("first")


def write_first_files(directory: str) -> Iterator[tuple[Path, bool]]:
    """Write the first files into a folder, which is made where it isn't there.

    Yields:
        Each file's path, and whether it was written. What is there already is never changed.

    Raises:
        LogError: where one can't be written.
    """
    try:
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        for source in sorted(_FIRST.iterdir()):
            if source.is_file():  # installers put a __pycache__ beside
                yield folder / source.name, _write_new(folder / source.name, source.read_bytes())
    except OSError as error:
        raise LogError(
            f"{error.filename}: {error.strerror}; name a folder that can be written to"
        ) from None


def _write_new(path: Path, content: bytes) -> bool:
    try:
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError:
        return False
    return True
