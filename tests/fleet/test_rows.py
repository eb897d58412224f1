"""Files of rows: what is read of them, and what is said of those that can't be."""

import itertools
import json
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.api import RunOptions
from runner.error import LogError, UsageError
from runner.fleet import Work
from runner.fleet.rows import BadRow, Row, read_rows

SPEC = """\
version: 1
name: ask
inputs:
  n: {type: integer}
  word: {type: string, default: plain}
  tags: {type: array, default: []}
model: {provider: scripted, script: [{text: hi}]}
prompt: "Say {{ inputs.n }}."
"""

Make = Callable[..., Work]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Writes a file of rows, and looks at all of them."""
    monkeypatch.chdir(tmp_path)
    Path("ask.yaml").write_text(SPEC, encoding="utf-8")

    def make(name: str, text: str | bytes, **options: Any) -> Work:
        Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return Work.of(["ask.yaml"], RunOptions(environ={}), rows=name, **options)

    return make


def inputs(work: Work) -> list[dict[str, Any]]:
    return [job.inputs for job in work.jobs()]


ROWS = {
    "rows.jsonl": '{"n": 1, "tags": ["a"]}\n\n{"n": 2, "word": "x"}',
    "rows.ndjson": '\ufeff{"n": 1, "tags": ["a"]}\r\n{"n": 2, "word": "x"}\r\n',
    "rows.csv": 'n,word,tags\n1,,"[""a""]"\n2,x,\n',
    "rows.tsv": 'n\tword\ttags\n1\t\t["a"]\n2\tx\t\n',
    "rows.yaml": "# two\n---\n- n: 1\n  tags: [a]\n\n- {n: 2, word: x}\n...\n",
    "rows.yml": "  - {n: 1, tags: [a]}\n  -\n    n: 2\n    word: 'x'\n",
}


@pytest.mark.parametrize("name", ROWS)
def test_every_format_says_the_same(work: Make, name: str) -> None:
    assert inputs(work(name, ROWS[name])) == [
        {"n": 1, "word": "plain", "tags": ["a"]},
        {"n": 2, "word": "x", "tags": []},
    ]


def test_the_text_of_a_table_is_read_by_the_types_of_inputs(work: Make) -> None:
    [row] = inputs(work("rows.csv", 'n,word\n7,"two\nlines, 007"\n'))
    assert row == {"n": 7, "word": "two\nlines, 007", "tags": []}


BAD = {
    "json": ("a.jsonl", '{"n": 1}\n{"n": 1,}\n', ["a.jsonl:2:9: not JSON: Expecting property"]),
    "no object": ("a.jsonl", "[1]\n", ["a.jsonl:1:1: an object of inputs is needed"]),
    "type": ("a.jsonl", '\n{"n": "x"}\n', ['a.jsonl:2:1: the input "n": an integer is needed']),
    "unknown": ("a.jsonl", '{"n": 1, "wrod": 2}', ['a.jsonl:1:1: no input is called "wrod"']),
    "missing": ("a.jsonl", "{}", ['a.jsonl:1:1: the input "n" is missing']),
    "NaN": ("a.jsonl", '{"n": NaN}', ["a.jsonl:1:1: not JSON that can be used: NaN"]),
    "huge number": ("a.jsonl", '{"n": 1e999}', ["a.jsonl:1:1: not JSON that can be used"]),
    "deep": ("a.jsonl", "[" * 100_000, ["a.jsonl:1:1: not JSON that can be used"]),
    "bytes": ("a.jsonl", b'{"word": "\xff"}', ["a.jsonl:1:11: it is not UTF-8"]),
    "UTF-16": (
        "a.jsonl",
        '{"n": 1}\n'.encode("utf-16"),
        ["a.jsonl:1:1: it is not UTF-8", "a.jsonl:2:1: "],
    ),
    "empty": ("a.jsonl", "", ["a.jsonl: it has no rows"]),
    "blank": ("a.jsonl", "\n \n", ["a.jsonl: it has no rows"]),
    "cells": ("a.csv", "n,word\n1,a\n2\n", ["a.csv:3:1: it has 1 cells, and the first line names"]),
    "quote": ("a.csv", 'n\n1\n"2\n', ["a.csv:3:1: not CSV: unexpected end of data"]),
    "twice": ("a.csv", "n,n\n1,2\n", ['a.csv:1:1: two columns are called "n"']),
    "nameless": ("a.csv", "n,\n1,2\n", ["a.csv:1:1: a column has no name"]),
    "head alone": ("a.csv", "n\n", ["a.csv: it has no rows"]),
    "csv bytes": ("a.csv", b"n,word\n1,\xff\n", ["a.csv:2:1: it is not UTF-8"]),
    "NUL": ("a.csv", "n\n\0\n", ["a.csv:2:1: "]),
    "map": ("a.yaml", "n: 1\n", ["a.yaml:1:1: a list of maps is needed"]),
    "scalars": ("a.yaml", "- 1\n", ["a.yaml:1:1: a map is needed"]),
    "yaml": ("a.yaml", "- n: 1\n- n: [1\n- n: 3\n", ["a.yaml:3:1: this is not well-"]),
    "yaml twice": ("a.yaml", "- n: 1\n- {n: 1, n: 2}\n", ["a.yaml:2:10: "]),
    "tag": ("a.yaml", "- n: !!python/object:os.system 1\n", ["a.yaml:1:6: "]),
    "kind": ("a.txt", "x", ["a.txt: rows are read of .jsonl, .csv, .tsv and .yaml files"]),
    "all": (
        "a.jsonl",
        '{"n": "x"}\n{"n": 1}\n[]\n{"n": "x"}\n',
        ['a.jsonl:1:1: the input "n"', "a.jsonl:3:1: an object"],
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_told_with_its_place(work: Make, name: str) -> None:
    file, text, expected = BAD[name]
    with pytest.raises(UsageError) as caught:
        work(file, text)
    lines = str(caught.value).splitlines()
    assert len(lines) == len(expected)
    for line, beginning in zip(lines, expected, strict=True):
        assert line.startswith(beginning)


def test_of_the_same_fault_in_many_rows_the_first_is_told_and_their_number(work: Make) -> None:
    with pytest.raises(UsageError, match=r'^a\.jsonl:1:1: .*"x" \(and so 1,999 times more\)$'):
        work("a.jsonl", '{"n": "x"}\n' * 2000)
    with pytest.raises(UsageError) as caught:
        work("a.jsonl", "".join(f'{{"n": "{n}x"}}\n' for n in range(2000)))
    assert str(caught.value).splitlines()[-1] == "a.jsonl: and 1,980 more faults"


def test_a_line_without_an_end_is_not_read_to_it(work: Make) -> None:
    with pytest.raises(UsageError, match=r"a\.jsonl:1:1: it is longer than 16 MiB"):
        work("a.jsonl", '{"word": "' + "x" * (17 << 20))


def test_rows_that_say_the_same_are_one(work: Make) -> None:
    made = work("a.jsonl", '{"n": 1}\n{"n": 2}\n{"word": "plain", "n": 1}\n', repeat=2)
    assert (made.count, made.doubles) == (4, 1)
    jobs = list(made.jobs())
    assert [(job.line, job.number) for job in jobs] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert len({job.key for job in jobs}) == 4
    assert len({job.row_key for job in jobs}) == 2


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_shards_are_all_runs_and_none_twice(work: Make, parts: int) -> None:
    text = "".join(f'{{"n": {n}}}\n' for n in range(10))
    whole = {job.key for job in work("a.jsonl", text, repeat=2).jobs()}
    shards = [work("a.jsonl", text, repeat=2, shard=(n + 1, parts)) for n in range(parts)]
    keys = [job.key for shard in shards for job in shard.jobs()]
    assert sorted(keys) == sorted(whole)
    assert [shard.count for shard in shards] == [len(list(shard.jobs())) for shard in shards]


def test_a_shard_that_has_nothing_is_an_error(work: Make) -> None:
    with pytest.raises(UsageError, match=r"there are 1 runs, so shard 2/2 has none"):
        work("a.jsonl", '{"n": 1}', shard=(2, 2))


def test_rows_that_change_while_they_are_run_are_seen(work: Make) -> None:
    made = work("a.jsonl", '{"n": 1}\n{"n": 2}\n')
    jobs = made.jobs()
    next(jobs)
    Path("a.jsonl").write_text('{"n": 1}\n{"n": "two"}\n', encoding="utf-8")
    with pytest.raises(LogError, match="it has changed since it was checked"):
        list(made.jobs())


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "yaml"])
def test_a_million_rows_are_read_in_the_memory_of_a_few(tmp_path: Path, suffix: str) -> None:
    # Read in part, since a million take too long for a test; what is kept shows after a few.
    line = {"jsonl": '{{"n": {}}}\n', "csv": "{}\n", "yaml": "- n: {}\n"}[suffix]
    file = tmp_path / f"rows.{suffix}"
    with file.open("w", encoding="utf-8") as out:
        out.write("n\n" if suffix == "csv" else "")
        for start in range(0, 1_000_000, 10_000):
            out.writelines(line.format(n) for n in range(start, start + 10_000))
    rows = read_rows(str(file))
    some = 1_000 if suffix == "yaml" else 20_000
    assert len(list(itertools.islice(rows, some))) == some
    tracemalloc.start()
    try:
        for row in itertools.islice(rows, some):
            assert isinstance(row, Row)
        used, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 100_000
    assert peak < 1_000_000


@settings(deadline=None, max_examples=60)
@given(
    text=st.one_of(
        st.binary(max_size=200),
        st.text(alphabet="{}[]:,-\"n1 \n\r\t#&*!|>'\0é", max_size=60).map(str.encode),
    ),
    suffix=st.sampled_from(["jsonl", "csv", "tsv", "yaml"]),
)
def test_no_file_however_broken_raises(
    tmp_path_factory: pytest.TempPathFactory, text: bytes, suffix: str
) -> None:
    file = tmp_path_factory.mktemp("rows") / f"rows.{suffix}"
    file.write_bytes(text)
    for row in read_rows(str(file)):
        assert row.line >= 1
        if isinstance(row, BadRow):
            assert row.column >= 1
            assert row.message
            assert not re.search(r"[\r\n]", row.message)
        else:
            json.dumps([row.values, row.texts])
