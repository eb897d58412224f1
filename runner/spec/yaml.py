"""YAML text → a tree of nodes, by the core schema of YAML 1.2, with every fault at its place.

PyYAML reads the syntax, which it does by YAML 1.1; what a value means is decided here. The tree
is built from its events, so that no depth of nesting and no number of aliases costs more than
their text does.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from runner.error import Fault
from runner.spec.node import ListNode, MapNode, Node, Place, ScalarNode, Source, join

MAX_BYTES = 1 << 20
"""The longest text that is read."""
MAX_NODES = 10_000
"""How many nodes a text may have once its aliases are expanded."""
MAX_DEPTH = 100
"""How deeply nodes may be nested."""

_TAG = "tag:yaml.org,2002:"
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_BOOLEAN = {text: text[0] in "tT" for text in ("true", "True", "TRUE", "false", "False", "FALSE")}
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_NUMBER = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_UNREADABLE = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Line breaks of YAML 1.1 that are none in 1.2; they are hidden from the parser.
_OLD_BREAKS = "\x85\u2028\u2029"
_LOADER: Any = getattr(yaml, "CLoader", yaml.Loader)


def parse(data: bytes, source: Source, faults: list[Fault], path: str = "") -> Node | None:
    """The tree of a YAML text.

    Args:
        data: UTF-8, with or without a byte order mark.
        source: What is named in faults.
        faults: Gets what is wrong; where it can, reading goes on after a fault.
        path: The PATH that the text stands for in its spec.

    Returns:
        None where the text can't be read as a whole.
    """
    text = decode(data, source, faults, path)
    if text is None:
        return None
    hidden = _hide_old_breaks(text)
    builder = _Builder(text, source, path, faults, {v: k for k, v in hidden.items()})
    try:
        for event in yaml.parse(text.translate(hidden), Loader=_LOADER):
            builder.take(event)
    except yaml.YAMLError as error:
        builder.syntax_fault(error)
        return None
    except _GiveUp as given_up:
        faults.append(given_up.fault)
        return None
    if builder.root is None:
        faults.append(Place(source, 1, 1).fault(path, "it is empty; a map of keys is needed"))
    return builder.root


def decode(data: bytes, source: Source, faults: list[Fault], path: str) -> str | None:
    """The text of a file's bytes, without its byte order mark; None where it is no text."""
    start = Place(source, 1, 1)
    if len(data) > MAX_BYTES:
        faults.append(start.fault(path, "it is larger than 1 MiB; keep data in other files"))
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        place = Place(source, line, error.start - data.rfind(b"\n", 0, error.start))
        faults.append(place.fault(path, "it is not UTF-8; save the file in that encoding"))
        return None
    if odd := _UNREADABLE.search(text):
        line = text.count("\n", 0, odd.start()) + 1
        place = Place(source, line, odd.start() - text.rfind("\n", 0, odd.start()))
        escape = f"\\x{ord(odd[0]):02x}" if odd[0] < "\x80" else f"\\u{ord(odd[0]):04x}"
        message = f'the character {escape} is not allowed; write "{escape}", in double quotes'
        faults.append(place.fault(path, message))
        return None
    return text


def resolve(text: str) -> str | int | float | bool | None:
    """What a plain scalar means by the core schema.

    Raises:
        ValueError: for a number with more digits than can be read.
    """
    if text in _NULL:
        return None
    if text in _BOOLEAN:
        return _BOOLEAN[text]
    if not (text[0].isdigit() or text[0] in "+-."):
        return text
    if _INTEGER.fullmatch(text):
        return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
    if _NUMBER.fullmatch(text):
        return float(text)
    if _INFINITE.fullmatch(text):
        return float(text.replace(".", "", 1))
    return text


def _hide_old_breaks(text: str) -> dict[int, int]:
    """Stand-ins, which the text has not, for line breaks that YAML 1.2 doesn't know."""
    if text.isascii():
        return {}
    free = (code for code in range(0xE000, 0xF8FF) if chr(code) not in text)
    return {ord(char): next(free) for char in _OLD_BREAKS if char in text}


class _GiveUp(Exception):  # noqa: N818 - it never leaves this module
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
        """Whether a key of it was no text, so that it is not what was meant."""


class _Builder:
    """Makes a tree of a parser's events, one call each."""

    def __init__(
        self, text: str, source: Source, path: str, faults: list[Fault], shown: dict[int, int]
    ) -> None:
        self.root: Node | None = None
        self._lines: list[str] | None = None
        self._text = text
        self._source = source
        self._path = path
        self._faults = faults
        self._shown = shown
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
            raise _GiveUp(place.fault(self._path, "a second document begins; a file is one spec"))

    def _start(self, event: Any) -> None:
        place = self._place(event.start_mark)
        top = self._frames[-1] if self._frames else None
        if top and top.awaits_key and not top.spoilt:
            self._complex_key(top, place)
        is_map = type(event) is yaml.MappingStartEvent
        self._check_tag(event.tag, place, ("map",) if is_map else ("seq",))
        node = MapNode(place) if is_map else ListNode(place)
        self._count(place, len(self._frames) + 1, 1)
        if event.anchor:
            self._anchors[event.anchor] = None
        self._frames.append(_Frame(node, event.anchor))

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
            raise _GiveUp(place.fault(self._here(), message))
        node, size, height = anchored
        self._aliased = True
        self._count(place, len(self._frames) + height, size)
        self._add(node, size, height)

    def _scalar(self, event: Any) -> None:
        place = self._place(event.start_mark)
        text: str = event.value
        if self._shown:
            text = text.translate(self._shown)
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
        self._check_tag(tag, node.place, ("str", "int", "float", "bool", "null"))
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
            first = keys.get(node.text, node.place)
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

    def _check_tag(self, tag: str | None, place: Place, allowed: tuple[str, ...]) -> None:
        if tag in (None, "!") or (tag and tag.removeprefix(_TAG) in allowed):
            return
        shown = tag.replace(_TAG, "!!", 1) if tag else ""
        message = f"the tag {shown} is not allowed; a spec has plain values only"
        self._faults.append(place.fault(self._here(), message))

    def _count(self, place: Place, depth: int, nodes: int) -> None:
        """Hold the tree to its bounds, before it has grown beyond them."""
        self._nodes += nodes
        if depth > MAX_DEPTH:
            message = f"it is nested more than {MAX_DEPTH} levels deep"
            raise _GiveUp(place.fault(self._here(), message))
        if self._aliased and self._nodes > MAX_NODES:
            message = f"with its aliases the spec has more than {MAX_NODES:,} values"
            raise _GiveUp(place.fault(self._here(), message))

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
