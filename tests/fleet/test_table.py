import hashlib
import tracemalloc

from hypothesis import given, settings
from hypothesis import strategies as st

from runner.fleet.table import Table


def key(number: int) -> bytes:
    return hashlib.sha256(b"%d" % number).digest()[:10]


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["put", "out"]), st.integers(0, 40), st.integers(0, 2**40)),
        max_size=200,
    )
)
def test_it_is_as_a_dict(steps: list[tuple[str, int, int]]) -> None:
    table, known = Table(10), {}
    for what, name, number in steps:
        if what == "put":
            table.put(key(name), number)
            known[name] = number
        else:
            table.take_out(key(name))
            known.pop(name, None)
        assert len(table) == len(known)
    assert {name: table.get(key(name)) for name in range(41)} == {
        name: known.get(name) for name in range(41)
    }
    assert sorted(table.numbers()) == sorted(known.values())


def test_it_grows_and_a_key_of_zeros_is_one() -> None:
    table = Table(10)
    assert table.get(bytes(10)) is None
    for number in range(5000):
        table.put(key(number), number)
    table.put(bytes(10), 7)
    assert [table.get(key(number)) for number in range(5000)] == list(range(5000))
    assert table.get(bytes(10)) == 7
    assert len(table) == 5001


def test_an_entry_takes_few_bytes() -> None:
    tracemalloc.start()
    try:
        table = Table(10)
        for number in range(40_000):
            table.put(key(number), number)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 40_000 * 60
