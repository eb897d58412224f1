"""The pages: each a file beside this module, with the scripts and styles that all pages share."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from starlette.responses import Response

from runner.server.refusal import Refusal
from runner.views import html

_FOLDER = Path(__file__).parent / "page"
_TYPES = {".css": "text/css", ".js": "text/javascript"}
_OWN = ("serve.css", "login.js", "common.js", "home.js", "watch.js")
_WRONG = "<!-- WRONG -->"


class Pages:
    """Answers with pages and with the files that they load."""

    public = ("/assets/serve.css", "/assets/view.css", "/assets/login.js")
    """What the login page loads."""

    def html(self, name: str) -> Response:
        """A page."""
        return Response(_text(f"{name}.html"), media_type="text/html")

    def login(self, *, status: int = 200, wrong: bool = False) -> Response:
        """The page that takes the token.

        Args:
            status: The answer's status.
            wrong: Whether another token was given before.
        """
        told = '<p class="wrong" role="alert">That is not the token.</p>' if wrong else ""
        page = _text("login.html").replace(_WRONG, told)
        return Response(page, status_code=status, media_type="text/html")

    def asset(self, name: str) -> Response:
        """A script or a style sheet.

        Raises:
            Refusal: where there is none of that name.
        """
        if name == "view.js":
            text = html.script()
        elif name == "view.css":
            text = html.style()
        elif name in _OWN:
            text = _text(name)
        else:
            raise Refusal(404, "not_found", "there is no such file")
        return Response(text, media_type=_TYPES[Path(name).suffix])


@cache
def _text(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
