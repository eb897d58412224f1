"""The URL of a tool: a template of which arguments fill in parts, and never say where it leads.

All up to the first argument is the author's: it has to hold the scheme and the whole host, and is
rendered without the arguments. In the rest, what each ``{{ … }}`` comes to is percent-encoded, a
slash too, so that it stays the part of the URL that it stands in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from runner.error import TemplateError
from runner.spec.template import Template, is_plain, told

_BLOCK = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_ARGUMENT = re.compile(r"\bargs\b")
_HOST = re.compile(r"https?://[^/?#\\@\s]+", re.IGNORECASE)
_DOTS = (".", "..")


class UrlTemplate:
    """A URL with places to fill in."""

    __slots__ = ("_compiled", "_head", "_tail", "where")

    def __init__(self, text: str, where: str) -> None:
        head, self._tail = _split(text)
        self._head = Template(head, where)
        self.where = where
        """Where it stands, for errors."""
        self._compiled: Any = None

    def render(self, names: Mapping[str, Any], args: Mapping[str, Any]) -> str:
        """The URL.

        Args:
            names: What all templates see.
            args: The arguments of the call.

        Raises:
            TemplateError: naming the place and the cause.
        """
        head = self._head.render(names)
        found = _HOST.match(head)
        whole = found is not None and head[found.end() : found.end() + 1] in ("/", "?", "#")
        if found is None or not (whole or (found.end() == len(head) and not self._tail)):
            raise TemplateError(
                f"{self.where}: {head!r:.200} is no http or https URL with its host"
            )
        url = head + self._rest({**names, "args": args})
        path = re.split(r"[?#]", url[found.end() :], maxsplit=1)[0]
        if any(unquote(part) in _DOTS for part in path.split("/")):
            raise TemplateError(
                f"{self.where}: a part of the path is . or .., which leads elsewhere"
            )
        return url

    def _rest(self, names: Mapping[str, Any]) -> str:
        if is_plain(self._tail):
            return self._tail
        with told(self.where):
            if self._compiled is None:
                from runner.spec.sandbox import URL_SANDBOX

                self._compiled = URL_SANDBOX.from_string(self._tail)
            text: str = self._compiled.render(**names)
            return text


def problem_of(text: str) -> str | None:
    """What is wrong with a URL's template, besides what is wrong with any template; else None."""
    head, tail = _split(text)
    # What another value than an argument comes to is the author's own affair.
    shown = _BLOCK.sub("x", head)
    if not tail:
        if shown.startswith("x") or _HOST.match(shown):
            return None
        return "it is no http or https URL with a host"
    if not re.match(r"(?:https?://[^/?#\\@\s]+|x[^?#]*)[/?#]", shown, re.IGNORECASE):
        return (
            "the scheme and the host stand before the first argument, and a slash or ? after them"
        )
    opened = len(re.findall(r"\{%-?\s*(?:if|for)\b", head))
    if opened != len(re.findall(r"\{%-?\s*end(?:if|for)\b", head)):
        return "no block may be open where the first argument stands"
    return None


def _split(text: str) -> tuple[str, str]:
    """What is before the first place that uses an argument, and the rest."""
    for block in _BLOCK.finditer(text):
        if _ARGUMENT.search(block[0]):
            return text[: block.start()], text[block.start() :]
    return text, ""
