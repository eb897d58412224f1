import json

import pytest

from runner.spec.reference import FILE, text
from runner.spec.schema import generate


def test_the_file_is_what_is_generated() -> None:
    assert FILE.read_text(encoding="utf-8") == text(), "run python -m runner.spec.reference"


def test_each_key_of_the_schema_has_a_row() -> None:
    lines = text().splitlines()
    schema = generate()
    maps = [schema, *schema["$defs"].values()]
    keys = {key for each in maps for key in each.get("properties", {})}
    # Said in the introduction, and beside each value for which a file may stand.
    keys -= {"$schema"}

    assert {key for key in keys if not any(line.startswith(f"| `{key}` |") for line in lines)} == (
        set()
    )


@pytest.mark.parametrize(
    "row",
    [
        "| `turns` | integer ≥ 1 or `null` | `50` | Model calls, each with its tools. |",
        "| `reasoning` | `off`, `minimal`, `low`, `medium`, `high` |  | How much the model",
        "| `api_key` | [`model.api_key`](#modelapi_key) |  | Where the key comes from;",
        '| `with` | text | `"[redacted]"` | What stands in its place. |',
        "| `prompt` | template, or `{file: PATH}` |",
        '| `provider` | text | `"scripted"` |',
    ],
)
def test_a_row_says_what_stands_there(row: str) -> None:
    assert any(line.startswith(row) for line in text().splitlines())


def test_rules_of_a_map_stand_above_its_keys() -> None:
    assert "Exactly one of `env`, `file`, `command`, `python` stands in it." in text()
    assert "At least one of `prompt`, `agent` stands in it." in text()


def test_links_lead_to_sections() -> None:
    found = text()
    titles = [line[3:] for line in found.splitlines() if line.startswith("## ")]
    kept = "abcdefghijklmnopqrstuvwxyz0123456789_-"
    anchors = ["".join(c for c in t.lower().replace(" ", "-") if c in kept) for t in titles]

    assert len(set(anchors)) == len(anchors), json.dumps(sorted(anchors))
    links = {part.partition(")")[0] for part in found.split("](#")[1:]}
    assert links <= set(anchors)
