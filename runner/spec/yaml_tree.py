"""A parser's events → a tree, without recursion.

So that no depth of nesting and no number of aliases costs more than its text does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import yaml

from runner.error import Fault
from runner.spec.core_schema import resolve
from runner.spec.node import ListNode, MapNode, Node, Place, ScalarNode, Source, join

MAX_NODES = 10_000
"""How many nodes a text may have once its aliases are expanded."""
MAX_DEPTH = 100
"""How deeply nodes may be nested."""

_TAG = "tag:yaml.org,2002:"


class GiveUp(Exception):  # noqa: N818 - it never leaves the reading of a text
    """Nothing more can be read after this fault."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault


class _Frame:
    """A list or map that is still open."""

    __slots__ = (
        "anchor",
        "awaits_key",
        "height",
        "key",
        "merge",
        "merging",
        "node",
        "size",
        "spoilt",
    )

    def __init__(self, node: ListNode | MapNode, anchor: str | None) -> None:
        self.node = node
        self.anchor = anchor
        self.size = 1
        """Of its tree, in nodes."""
        self.height = 1
        """Of its tree, in levels."""
        self.awaits_key = isinstance(node, MapNode)
        self.key: str | None = None
        """What the next value belongs to; None where that is to be dropped."""
        self.merging = False
        """Whether the next value is what ``<<`` merges."""
        self.merge: tuple[Place, Node | None] | None = None
        self.spoilt = False
        """Whether it is not what was meant, which is told already."""


class TreeBuilder:
    """Makes a tree of a parser's events, one call each."""

    def __init__(
        self,
        text: str,
        source: Source,
        path: str,
        faults: list[Fault],
        reveal: Callable[[str], str] | None,
    ) -> None:
        self.root: Node | None = None
        self._lines: list[str] | None = None
        self._text = text
        self._source = source
        self._path = path
        self._faults = faults
        self._reveal = reveal
        self._frames: list[_Frame] = []
        self._anchors: dict[str, tuple[Node, int, int] | None] = {}
        self._aliased = False
        self._nodes = 0
        self._unquoted: int | None = None
        self._take = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: self._start,
            yaml.SequenceStartEvent: self._start,
            yaml.MappingEndEvent: self._end,
            yaml.SequenceEndEvent: self._end,
            yaml.AliasEvent: self._alias,
            yaml.DocumentStartEvent: self._document,
        }

    def take(self, event: Any) -> None:
        """Go on by one event."""
        if handler := self._take.get(type(event)):
            handler(event)

    def syntax_fault(self, error: yaml.YAMLError) -> None:
        """Tell what the parser could not read, in the words that help most."""
        if self._unquoted:
            return  # braces that are already told of are what made it
        mark: Any = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        place = self._place(mark) if mark else Place(self._source, 1, 1)
        frame = self._frames[-1] if self._frames else None
        if frame and self._at(frame.node.place).startswith(("{{", "{%", "{#")):
            self._say_quote(frame.node.place, self._here(-1))
            return
        self._faults.append(place.fault(self._here(), self._syntax_message(error, place)))

    def _syntax_message(self, error: yaml.YAMLError, place: Place) -> str:
        at = self._at(place)
        indent = self._line(place.line)[: place.column]
        if "\t" in indent and not indent.strip():
            return "a tab can't indent; use spaces"
        if at[:1] in ("@", "`", "%", "|", ">"):
            return f'a plain value can\'t begin with "{at[0]}"; put it in quotes'
        problem = getattr(error, "problem", None) or str(error)
        context = getattr(error, "context", None)
        begin: Any = getattr(error, "context_mark", None)
        hint = ""
        if problem.startswith("mapping values"):
            hint = '; put a text that has ": " in it in quotes'
        elif context and begin is not None:
            hint = f" {context} that began in line {begin.line + 1}"
        return f"this is not well-formed YAML: {problem}{hint}"

    # --- one event each ---------------------------------------------------------------------------

    def _document(self, event: Any) -> None:
        if self.root is not None:
            place = self._place(event.start_mark)
            raise GiveUp(place.fault(self._path, "a second document begins; a file is one spec"))

    def _start(self, event: Any) -> None:
        place = self._place(event.start_mark)
        top = self._frames[-1] if self._frames else None
        if top and top.awaits_key and not top.spoilt:
            self._complex_key(top, place)
        is_map = type(event) is yaml.MappingStartEvent
        sound = self._check_tag(event.tag, place, ("map",) if is_map else ("seq",))
        node = MapNode(place) if is_map else ListNode(place)
        self._count(place, len(self._frames) + 1, 1)
        if event.anchor:
            self._anchors[event.anchor] = None
        frame = _Frame(node, event.anchor)
        frame.spoilt = not sound
        self._frames.append(frame)

    def _end(self, event: Any) -> None:
        frame = self._frames.pop()
        node: Node = frame.node
        if isinstance(node, MapNode) and frame.merge:
            self._merge(node, *frame.merge)
        if frame.spoilt:
            node = ScalarNode(node.place, "", None, broken=True)
        if frame.anchor:
            self._anchors[frame.anchor] = (node, frame.size, frame.height)
        self._add(node, frame.size, frame.height)

    def _alias(self, event: Any) -> None:
        place = self._place(event.start_mark)
        name = event.anchor
        if name not in self._anchors:
            known = "; put the text in quotes if it is none" if not self._anchors else ""
            message = f'the alias "*{name}" names no anchor that stands before it{known}'
            self._faults.append(place.fault(self._here(), message))
            self._add(ScalarNode(place, "", None, broken=True), 1, 1)
            return
        anchored = self._anchors[name]
        if anchored is None:
            message = f'the alias "*{name}" stands inside of its own anchor; it would never end'
            raise GiveUp(place.fault(self._here(), message))
        node, size, height = anchored
        self._aliased = True
        self._count(place, len(self._frames) + height, size)
        self._add(node, size, height)

    def _scalar(self, event: Any) -> None:
        place = self._place(event.start_mark)
        text: str = event.value
        if self._reveal:
            text = self._reveal(text)
        node = ScalarNode(place, text, text)
        if event.implicit[0] or event.tag:
            self._interpret(node, event)
        if event.anchor:
            self._anchors[event.anchor] = (node, 1, 1)
        self._count(place, 1, 1)
        self._add(node, 1, 1)

    def _interpret(self, node: ScalarNode, event: Any) -> None:
        """Find what a plain or tagged scalar means."""
        tag = event.tag
        if not self._check_tag(tag, node.place, ("str", "int", "float", "bool", "null")):
            node.broken = True
        if tag and tag.removeprefix(_TAG) in ("!", "str"):
            return
        try:
            node.value = resolve(node.text)
        except ValueError:
            node.broken = True
            self._faults.append(node.place.fault(self._here(), "the number has too many digits"))
        node.plain = event.implicit[0]

    # --- the tree ---------------------------------------------------------------------------------

    def _add(self, node: Node, size: int, height: int) -> None:
        """Put a node where the innermost open one expects it."""
        if not self._frames:
            self.root = node
            return
        frame = self._frames[-1]
        frame.size += size
        frame.height = max(frame.height, height + 1)
        if isinstance(frame.node, ListNode):
            frame.node.items.append(node)
        elif frame.awaits_key:
            self._add_key(frame, node)
        else:
            self._add_value(frame, frame.node, node)

    def _add_key(self, frame: _Frame, node: Node) -> None:
        frame.awaits_key = False
        frame.key = None
        if frame.spoilt or not isinstance(node, ScalarNode) or isinstance(frame.node, ListNode):
            return
        keys = frame.node.keys
        frame.merging = node.plain and node.text == "<<" and not frame.merge
        if frame.merging:
            frame.merge = (node.place, None)
        elif node.plain and not node.text:
            self._faults.append(node.place.fault(self._here(), "a key is missing before the colon"))
        elif node.text in keys or (node.plain and node.text == "<<"):
            first = keys[node.text] if node.text in keys or not frame.merge else frame.merge[0]
            message = f"duplicate key; it stands in line {first.line} too"
            self._faults.append(node.place.fault(join(self._here(-1), node.text), message))
        else:
            frame.key = node.text
            keys[node.text] = node.place

    def _add_value(self, frame: _Frame, parent: MapNode, node: Node) -> None:
        frame.awaits_key = True
        if frame.merging and frame.merge:
            frame.merge = (frame.merge[0], node)
        elif frame.key is not None:
            parent.entries[frame.key] = node

    def _merge(self, node: MapNode, place: Place, merged: Node | None) -> None:
        """Lay a map over those that it merges; of these the first to have a key wins."""
        parts = merged.items if isinstance(merged, ListNode) else [merged]
        for part in parts:
            if not isinstance(part, MapNode):
                message = '"<<" merges a map or a list of maps, such as <<: *name'
                self._faults.append(place.fault(join(self._here(), "<<"), message))
                continue
            for key, value in part.entries.items():
                if key not in node.entries:
                    node.entries[key] = value
                    node.keys[key] = part.keys[key]

    # --- faults -----------------------------------------------------------------------------------

    def _complex_key(self, frame: _Frame, place: Place) -> None:
        """A key that is a list or a map: mostly a template that is not quoted."""
        frame.spoilt = True
        outer = frame.node.place
        if self._at(outer).startswith("{{"):
            self._say_quote(outer, self._here(-1))
        else:
            self._faults.append(place.fault(self._here(-1), "a key has to be a text"))

    def _say_quote(self, place: Place, path: str) -> None:
        self._unquoted = place.line
        begin = self._at(place)[:2]
        close = {"{%": "%}", "{#": "#}"}.get(begin, "}}")
        message = f'a value that begins with {begin} must be quoted: "{begin} … {close}"'
        self._faults.append(place.fault(path, message))

    def _check_tag(self, tag: str | None, place: Place, allowed: tuple[str, ...]) -> bool:
        if tag in (None, "!") or (tag and tag.removeprefix(_TAG) in allowed):
            return True
        shown = tag.replace(_TAG, "!!", 1) if tag else ""
        message = f"the tag {shown} is not allowed; a spec has plain values only"
        self._faults.append(place.fault(self._here(), message))
        return False

    def _count(self, place: Place, depth: int, nodes: int) -> None:
        """Hold the tree to its bounds, before it has grown beyond them."""
        self._nodes += nodes
        if depth > MAX_DEPTH:
            message = f"it is nested more than {MAX_DEPTH} levels deep"
            raise GiveUp(place.fault(self._here(), message))
        if self._aliased and self._nodes > MAX_NODES:
            message = f"with its aliases the spec has more than {MAX_NODES:,} values"
            raise GiveUp(place.fault(self._here(), message))

    def _here(self, stop: int | None = None) -> str:
        """The PATH of what comes next; with -1, that of the innermost open node."""
        path = self._path
        for frame in self._frames[:stop]:
            if isinstance(frame.node, ListNode):
                path = join(path, len(frame.node.items))
            elif frame.key is not None and not frame.awaits_key:
                path = join(path, frame.key)
        return path

    def _place(self, mark: Any) -> Place:
        return Place(self._source, mark.line + 1, mark.column + 1)

    def _line(self, number: int) -> str:
        if self._lines is None:
            self._lines = re.split(r"\r\n|\r|\n", self._text)
        return self._lines[number - 1] if number <= len(self._lines) else ""

    def _at(self, place: Place) -> str:
        return self._line(place.line)[place.column - 1 :]
