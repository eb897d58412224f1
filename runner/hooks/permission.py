"""Permissions: which calls are allowed, which need a question, and which are never run."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal
from urllib.parse import urlsplit

from runner.hooks.shell_parts import hides_its_program, spellings, split
from runner.json_text import line
from runner.terminal import TERMINAL, visible

Verdict = Literal["allow", "ask", "deny"]
Call = Mapping[str, Any]
"""``{tool_name, tool_call_id, arguments}``."""
Decision = dict[str, Any] | None
Answer = Callable[[Call], Decision | Awaitable[Decision]]
"""What becomes of a call that is asked for."""

_RULE = re.compile(r"([^()\s]+)(?:\((.*)\))?", re.DOTALL)
_SUBJECTS = ("path", "url")
"""The arguments that say what a call is about; where there is neither, all texts do."""
_DOT = re.compile(r"%2e", re.IGNORECASE)
_PORTS = {"http": 80, "https": 443}
_SHOWN = 4000
"""Characters of the arguments that a question shows of each of their two ends."""


@dataclass(frozen=True, slots=True)
class Rule:
    """``NAME`` or ``NAME(PATTERN)``; both may hold ``*``, ``?`` and ``[…]``."""

    text: str
    """As it is written."""
    name: str
    pattern: str | None

    @classmethod
    def read(cls, text: str) -> Rule:
        """Read a rule as a spec writes it."""
        found = _RULE.fullmatch(text)
        return cls(text, found[1], found[2]) if found is not None else cls(text, text, None)


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules of a spec."""

    allow: Sequence[Rule]
    ask: Sequence[Rule]
    deny: Sequence[Rule]

    @classmethod
    def read(cls, allow: Sequence[str], ask: Sequence[str], deny: Sequence[str]) -> Rules:
        """Read rules as a spec writes them."""
        return cls(*([Rule.read(text) for text in texts] for texts in (allow, ask, deny)))

    def verdict(self, call: Call, workspace: str) -> tuple[Verdict, str]:
        """What is to become of a call, and why: deny before allow before ask."""
        subject = _Subject(call["arguments"], workspace)
        for verdict, rules in (("deny", self.deny), ("allow", self.allow), ("ask", self.ask)):
            named = list(self._named(rules, call))
            if verdict == "allow":
                if subject.all_fit(named):
                    if subject.is_hidden and any(self._named(self.deny, call)):
                        return "ask", "it can't be told what all of it runs"
                    return "allow", "a rule allows it"
            elif rule := subject.first_hit(named):
                why = f"the rule {verdict}: {rule.text}"
                return ("deny", why) if verdict == "deny" else ("ask", why)
        return "ask", "no rule allows it"

    @staticmethod
    def _named(rules: Sequence[Rule], call: Call) -> Iterator[Rule]:
        """The rules that speak of a call's tool."""
        return (rule for rule in rules if fnmatchcase(call["tool_name"], rule.name))


class _Subject:
    """What patterns are held against: the parts of a command, or what else a call is about."""

    def __init__(self, arguments: Mapping[str, Any], workspace: str) -> None:
        self._strict: list[str] = []
        self._loose: set[str] = set()
        self._unclear = False
        self.is_hidden = False
        """Whether it runs what can't be told from it."""
        command = arguments.get("command")
        if isinstance(command, str):
            parts = split(command)
            self._strict, self._unclear = parts.texts, parts.unclear
            self._loose = {each for part in parts.texts for each in spellings(part)} | {command}
            self.is_hidden = any(map(hides_its_program, parts.texts))
            return
        named = [arguments[key] for key in _SUBJECTS if isinstance(arguments.get(key), str)]
        texts = named or list(_texts(arguments))
        self._loose = set(texts)
        if isinstance(arguments.get("path"), str):
            real = _real(arguments["path"], workspace)
            self._loose |= {os.path.normpath(arguments["path"]), real}
            texts[0] = real
        self._strict = [_plain(text) for text in texts]
        self._loose.update(self._strict)

    def all_fit(self, rules: Sequence[Rule]) -> bool:
        """Whether rules allow all of it."""
        if any(rule.pattern is None for rule in rules):
            return True
        if self._unclear or not self._strict:
            return any(rule.pattern == "*" for rule in rules)
        return all(any(fits(text, str(rule.pattern)) for rule in rules) for text in self._strict)

    def first_hit(self, rules: Sequence[Rule]) -> Rule | None:
        """The first rule that means any of it."""
        for rule in rules:
            if rule.pattern in (None, "*") or any(
                fits(text, str(rule.pattern)) for text in self._loose
            ):
                return rule
        return None


def fits(text: str, pattern: str) -> bool:
    """Whether a text fits a pattern; ``git *`` also means ``git`` alone."""
    return fnmatchcase(text, pattern) or (pattern.endswith(" *") and text == pattern[:-2])


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _real(path: str, workspace: str) -> str:
    """A path as the file tools come to see it: from the workspace, with no link in it."""
    try:
        return os.path.relpath(os.path.realpath(os.path.join(workspace, path)), workspace)
    except ValueError:  # a NUL, which no file has
        return path


def _plain(text: str) -> str:
    """A URL as a server comes to see it, any other text with no ``..`` in its path."""
    if not text.lower().startswith(("http://", "https://")):
        return os.path.normpath(text) if ".." in text.split("/") else text
    try:
        url = urlsplit(text)
        port = "" if url.port in (None, _PORTS[url.scheme]) else f":{url.port}"
    except ValueError:
        return text
    host = (url.hostname or "").rstrip(".")
    if ":" in host:
        host = f"[{host}]"
    name = f"{url.netloc.rpartition('@')[0]}@" if "@" in url.netloc else ""
    steps: list[str] = [""]
    for step in _DOT.sub(".", url.path).split("/")[1:]:
        if step == "..":
            steps[1:] = steps[1:-1]
        elif step != ".":
            steps.append(step)
    query = f"?{url.query}" if url.query else ""
    return f"{url.scheme}://{name}{host}{port}{'/'.join(steps)}{query}"


def refused_command(command: str, patterns: Sequence[str]) -> str | None:
    """Why a command may not be run where only those that fit patterns may; None if it may."""
    parts = split(command)
    if "*" in patterns:
        return None
    known = " | ".join(patterns) or "none"
    if parts.unclear:
        return (
            f"it can't be told what all of this command runs; write it plainly (allowed: {known})"
        )
    for part in parts.texts:
        if not any(fits(part, pattern) for pattern in patterns):
            return f'"{part}" is not allowed here; what may be run: {known}'
    return None if parts.texts else "it runs nothing"


# --- the hook -------------------------------------------------------------------------------------


def permission_hook(rules: Rules, workspace: str, answer: Answer) -> Callable[[Call], Any]:
    """What the loop asks before each call.

    Args:
        rules: The spec's.
        workspace: The folder that relative paths are in.
        answer: Decides of what is asked for.
    """
    workspace = os.path.realpath(workspace)

    def hook(call: Call) -> Any:
        verdict, why = rules.verdict(call, workspace)
        if verdict == "ask":
            return answer(call)
        return {"block": True, "reason": f"denied by {why}"} if verdict == "deny" else None

    return hook


def always(call: Call) -> Decision:
    """Answer with yes."""
    return None


def unattended(stop: bool) -> Answer:
    """Answer where nobody can be asked: deny the call, or end the run."""

    def answer(call: Call) -> Decision:
        reason = (
            f"{call['tool_name']} needs a person's permission, and nobody can be asked; allow it "
            "in the spec's permissions, or run with --yes"
        )
        return {"block": True, "reason": reason, **({"stop": True} if stop else {})}

    return answer


class Terminal:
    """Asks who sits at the terminal, one question at a time.

    Args:
        redact: Takes the secrets out of what is shown.
        preview: Tells more of a call than its arguments, such as what it would change in a file.
    """

    def __init__(
        self,
        redact: Callable[[str], str] = lambda text: text,
        preview: Callable[[Call], Awaitable[str | None]] | None = None,
    ) -> None:
        self._redact = redact
        self._preview = preview

    async def __call__(self, call: Call) -> Decision:
        """Ask for a call; anything but yes is no. An abort takes the question back."""
        more = None if self._preview is None else await self._preview(call)
        if more:
            about = _shortened(self._redact(more))
            # Each line of it is marked, so that none can be taken for the question's own.
            shown = "\n".join(f"  | {visible(each)}" for each in about.split("\n"))
            named = self._redact(_subject_of(call))
        else:
            shown, named = "", _shortened(self._redact(line(call["arguments"])))
        said = await TERMINAL.ask(
            f"pi-run: may this be run? [y/N]\n  {visible(call['tool_name'])} {visible(named)}\n"
            + shown
        )
        if said.lower() in ("y", "yes"):
            return None
        return {"block": True, "reason": "the person who was asked said no"}


def _subject_of(call: Call) -> str:
    """The arguments of a call but for those that its preview shows."""
    about = {key: call["arguments"][key] for key in _SUBJECTS if key in call["arguments"]}
    return line(about or call["arguments"])


def _shortened(text: str) -> str:
    return f"{text[:_SHOWN]} […] {text[-_SHOWN:]}" if len(text) > 2 * _SHOWN else text
