"""The server's addresses, and what stands behind each."""

from __future__ import annotations

from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from runner.server.access import Access
from runner.server.answer import json_answer
from runner.server.body import read_form
from runner.server.endpoint import Endpoints
from runner.server.guard import App, Guard
from runner.server.hosting import Hosting
from runner.server.pages import Pages
from runner.server.refusal import Refusal

_CODES = {404: "not_found", 405: "not_allowed"}


def make_app(hosting: Hosting, access: Access) -> App:
    """The whole app, guarded.

    Args:
        hosting: Its runs.
        access: Who may come in.
    """
    pages = Pages()
    routes = [*Endpoints(hosting).routes, *_pages(pages, access)]
    inner = Starlette(
        routes=routes,
        exception_handlers={Refusal: _refused, HTTPException: _http_error, Exception: _bug},
    )

    async def login(scope: Any, receive: Any, send: Any) -> None:
        await pages.login(status=401)(scope, receive, send)

    return Guard(inner, access, ("/login", *pages.public), login)


# --- pages ----------------------------------------------------------------------------------------


def _pages(pages: Pages, access: Access) -> list[Route]:
    async def home(request: Request) -> Response:
        return pages.html("home")

    async def watch(request: Request) -> Response:
        return pages.html("watch")

    async def asset(request: Request) -> Response:
        return pages.asset(request.path_params["name"])

    async def login(request: Request) -> Response:
        if request.method != "POST":
            return pages.login()
        form = await read_form(request)
        if not access.knows(form.get("token", "")):
            return pages.login(status=401, wrong=True)
        cookie = access.set_cookie(secure=request.url.scheme == "https")
        return RedirectResponse("/", status_code=303, headers={"Set-Cookie": cookie})

    async def logout(request: Request) -> Response:
        clear = {"Set-Cookie": access.clear_cookie()}
        return RedirectResponse("/login", status_code=303, headers=clear)

    return [
        Route("/", home),
        Route("/watch/{id}", watch),
        Route("/assets/{name}", asset),
        Route("/login", login, methods=["GET", "POST"]),
        Route("/logout", logout, methods=["POST"]),
    ]


# --- what went wrong ------------------------------------------------------------------------------


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return json_answer(error.body, error.status, error.headers)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, "refused")
    refusal = Refusal(error.status_code, code, str(error.detail), dict(error.headers or {}))
    return await _refused(request, refusal)


async def _bug(request: Request, error: Exception) -> Response:
    told = f"this is a bug of pi-run: {type(error).__name__}"
    return await _refused(request, Refusal(500, "bug", told))
