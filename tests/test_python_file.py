import json
import os
import sys
import threading
from pathlib import Path

import pytest

from runner.error import UsageError
from runner.python_file import TargetError, load_callable, load_file


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / (name.replace("__in__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def fault(target: str, folder: Path) -> str:
    with pytest.raises(TargetError) as raised:
        load_callable(target, folder)
    assert isinstance(raised.value, UsageError)
    assert "\n" not in str(raised.value)
    assert "_pi_run_" not in str(raised.value)
    return str(raised.value)


def test_a_function_of_a_file_is_found_from_the_folder_that_names_it(tmp_path: Path) -> None:
    write(tmp_path, tools__in__search="def search(): return 'found'\nclass A:\n def b(): return 1")
    assert load_callable("./tools/search.py:search", tmp_path)() == "found"
    assert load_callable("tools/search.py:A.b", tmp_path)() == 1
    assert load_callable(f"{tmp_path}/tools/search.py:search", Path("/"))() == "found"
    assert load_callable("../tools/search.py:search", tmp_path / "tools")() == "found"


def test_an_installed_function_is_found_by_its_dotted_name(tmp_path: Path) -> None:
    assert load_callable("json:dumps", tmp_path) is json.dumps
    assert load_callable("json.dumps", tmp_path) is json.dumps
    assert load_callable("os.path:join", tmp_path) is os.path.join
    assert load_callable("json:JSONEncoder.encode", tmp_path) is json.JSONEncoder.encode


def test_a_dotted_name_may_be_in_the_folder(tmp_path: Path) -> None:
    write(tmp_path, own_part__in____init__="N = 4", own_part__in__leaf="from own_part import N")
    write(tmp_path, own_part__in__go="from own_part.leaf import N\ndef go(): return N")
    assert load_callable("own_part.go:go", tmp_path)() == 4
    assert load_callable("own_part.go.go", tmp_path) is load_callable("own_part.go:go", tmp_path)
    assert "own_part" not in sys.modules


def test_a_file_runs_once_and_is_in_sys_modules_while_it_does(tmp_path: Path) -> None:
    text = (
        "import sys\nfrom dataclasses import dataclass\nfrom __future__ import annotations\n"
        "assert sys.modules[__name__].__dict__ is globals()\n"
        "@dataclass\nclass P:\n    x: int = 1\n"
    )
    lines = text.splitlines()
    text = "\n".join([lines[2], lines[0], lines[1], *lines[3:]])
    write(tmp_path, a=text)
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    first = load_callable("a.py:P", tmp_path)
    assert load_callable("link/a.py:P", tmp_path) is first
    assert load_file(tmp_path / "a.py").P is first


@pytest.mark.parametrize(
    "line",
    [
        "import common as c\ndef go(): return c.WORD",
        "import common\ndef go(): return common.WORD",
        "from common import WORD\ndef go(): return WORD",
        "def go():\n    import common\n    return common.WORD",
        "from .common import WORD\ndef go(): return WORD",
        "from . import common\ndef go(): return common.WORD",
        "import part.deep\ndef go(): return part.deep.WORD",
        "from part import deep\ndef go(): return deep.WORD",
    ],
)
def test_siblings_are_imported_and_two_folders_are_kept_apart(tmp_path: Path, line: str) -> None:
    path, modules = list(sys.path), set(sys.modules)
    for word in ("one", "two"):
        write(tmp_path / word, a=line, common=f"WORD = '{word}'")
        write(tmp_path / word, part__in__deep="from common import WORD")
    assert load_callable("one/a.py:go", tmp_path)() == "one"
    assert load_callable("two/a.py:go", tmp_path)() == "two"
    assert sys.path == path
    assert not {"common", "part", "a"} & (set(sys.modules) - modules)


def test_the_standard_library_wins_over_a_sibling_and_a_sibling_over_what_is_installed(
    tmp_path: Path,
) -> None:
    write(tmp_path, a="import json, click\ndef go(): return json.dumps([click.MINE])")
    write(tmp_path, json="raise RuntimeError", click="MINE = 7")
    assert load_callable("a.py:go", tmp_path)() == "[7]"


def test_a_sibling_that_all_import_by_that_name_is_not_loaded_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, on_the_path_0815="X = []", a="import on_the_path_0815 as m\ndef go(): return m")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = load_callable("a.py:go", tmp_path)()
    assert module.__name__ == "on_the_path_0815"
    monkeypatch.delitem(sys.modules, "on_the_path_0815")


def test_siblings_may_import_each_other(tmp_path: Path) -> None:
    write(tmp_path, a="import b\nX = 1\ndef go(): return b.y()", b="import a\ndef y(): return a.X")
    assert load_callable("a.py:go", tmp_path)() == 1


def test_an_edit_is_seen_by_the_next_process(tmp_path: Path) -> None:
    write(tmp_path, a="def go(): return 1")
    assert load_callable("a.py:go", tmp_path)() == 1
    assert not (tmp_path / "__pycache__").exists()  # it could be edited within the same second
    os.utime(tmp_path / "a.py", (1e9, 1e9))
    write(tmp_path, b="def go(): return 2")
    os.utime(tmp_path / "b.py", (1e9, 1e9))
    assert load_callable("b.py:go", tmp_path)() == 2
    assert sys.dont_write_bytecode or (tmp_path / "__pycache__").exists()


def test_threads_that_load_a_file_at_once_run_it_once(tmp_path: Path) -> None:
    write(tmp_path, a="import time\ntime.sleep(0.05)\ndef go(): return 1")
    found: list[object] = []
    threads = [
        threading.Thread(target=lambda: found.append(load_callable("a.py:go", tmp_path)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(map(id, found))) == 1


def test_odd_file_names_are_fine(tmp_path: Path) -> None:
    for name in ("my-tool.py", "v1.2.py", "größe.py"):
        (tmp_path / name).write_text("def go(): return __file__", encoding="utf-8")
        assert load_callable(f"./{name}:go", tmp_path)().endswith(name)


def test_a_file_that_is_not_there_is_told_resolved(tmp_path: Path) -> None:
    write(tmp_path, search="")
    said = fault("./serch.py:go", tmp_path)
    assert said == f'there is no file {tmp_path}/serch.py; did you mean "search.py"?'
    assert f"no folder {tmp_path}/nowhere" in fault("nowhere/x.py:go", tmp_path)
    assert "is not a file" in fault("./:go", tmp_path)


def test_a_name_that_is_not_there_is_told_with_the_nearest(tmp_path: Path) -> None:
    write(tmp_path, a="def search(): ...\nLIMIT = 3")
    assert fault("a.py:serach", tmp_path) == (
        f'{tmp_path}/a.py has no "serach"; did you mean "search"?'
    )
    assert "is a int, not a function" in fault("a.py:LIMIT", tmp_path)
    assert "names no function" in fault("a.py", tmp_path)
    assert "names no function" in fault("json", tmp_path)
    assert "names no function" in fault("a.py:", tmp_path)
    assert 'no module "nothing_here"' in fault("nothing_here.x:go", tmp_path)


def test_a_syntax_error_is_told_with_its_line(tmp_path: Path) -> None:
    write(tmp_path, a="x = 1\ndef go(:\n", b="import a\ndef go(): ...")
    assert fault("a.py:go", tmp_path) == f"{tmp_path}/a.py:2: invalid syntax"
    assert fault("b.py:go", tmp_path) == f"{tmp_path}/a.py:2: invalid syntax"
    (tmp_path / "c.py").write_bytes(b"x = '\xff'\n")
    assert f"{tmp_path}/c.py" in fault("c.py:go", tmp_path)
    (tmp_path / "d.py").write_bytes(b"x = 1\0")
    assert f"{tmp_path}/d.py" in fault("d.py:go", tmp_path)


def test_an_exception_is_told_with_the_line_of_the_persons_own_file(tmp_path: Path) -> None:
    write(tmp_path, a="import json\n\njson.loads('{')\n", b="\nimport nothing_of_that_name\n")
    write(tmp_path, c="import sys\nsys.exit('no\\nway')", d="import a", e="from .gone import x")
    assert fault("a.py:go", tmp_path).startswith(f"{tmp_path}/a.py:3: JSONDecodeError: Expecting")
    assert "b.py:2: ModuleNotFoundError: No module named 'nothing_of" in fault("b.py:go", tmp_path)
    assert fault("c.py:go", tmp_path) == f"{tmp_path}/c.py:2: SystemExit: no way"
    assert fault("d.py:go", tmp_path).startswith(f"{tmp_path}/a.py:3: JSONDecodeError")
    assert "e.py:1: ModuleNotFoundError: No module named 'gone'" in fault("e.py:go", tmp_path)
    assert "d.a" not in sys.modules


def test_a_file_that_failed_is_tried_again(tmp_path: Path) -> None:
    write(tmp_path, a="1/0")
    assert "ZeroDivisionError" in fault("a.py:go", tmp_path)
    write(tmp_path, a="def go(): return 5")
    assert load_callable("a.py:go", tmp_path)() == 5
