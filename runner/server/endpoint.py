"""The addresses of the API, and what each answers."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from runner.server.answer import json_answer
from runner.server.body import fields, read_object, text_of
from runner.server.document import document
from runner.server.hosting import Hosting
from runner.server.past import RUN_ID
from runner.server.refusal import Refusal
from runner.server.stream import event_stream, file_pieces

_LISTED = 50
_MOST_LISTED = 200


class Endpoints:
    """Answers programs, and the scripts of the pages.

    Args:
        hosting: The runs.
    """

    def __init__(self, hosting: Hosting) -> None:
        self._hosting = hosting

    @property
    def routes(self) -> list[Route]:
        """Each address with what answers it."""
        return [
            Route("/specs", self._specs),
            Route("/runs", self._runs, methods=["GET", "POST"]),
            Route("/runs/{id}", self._describe),
            Route("/runs/{id}/events", self._events),
            Route("/runs/{id}/log", self._log),
            Route("/runs/{id}/steer", self._steer, methods=["POST"]),
            Route("/runs/{id}/follow_up", self._follow_up, methods=["POST"]),
            Route("/runs/{id}/abort", self._abort, methods=["POST"]),
            Route("/runs/{id}/questions/{question}", self._answer, methods=["POST"]),
            Route("/openapi.json", self._openapi),
        ]

    async def _specs(self, request: Request) -> Response:
        return json_answer({"specs": [spec.as_json() for spec in self._hosting.specs.values()]})

    async def _openapi(self, request: Request) -> Response:
        return json_answer(document([spec.request for spec in self._hosting.specs.values()]))

    # --- runs -------------------------------------------------------------------------------------

    async def _runs(self, request: Request) -> Response:
        return await (self._start if request.method == "POST" else self._list)(request)

    async def _start(self, request: Request) -> Response:
        body = await read_object(request)
        fields(body, {"spec": str, "inputs": dict, "prompt": str}, ("spec",))
        prompt = body.get("prompt")
        if prompt is not None:
            text_of({"prompt": prompt}, "prompt")
        run = self._hosting.start(body["spec"], body.get("inputs", {}), prompt)
        place = {"Location": f"/runs/{run.id}"}
        return json_answer(run.as_json(), 201, place)

    async def _list(self, request: Request) -> Response:
        before, limit = _part(request)
        runs = await self._hosting.list(before=before, limit=limit)
        following = {"next": runs[-1]["id"]} if len(runs) == limit else {}
        return json_answer({"runs": runs, **following})

    async def _describe(self, request: Request) -> Response:
        return json_answer(await self._hosting.describe(_id(request)))

    async def _events(self, request: Request) -> Response:
        if request.method == "HEAD":
            await self._hosting.feed(_id(request))
            return Response(media_type="text/event-stream")
        last = request.headers.get("last-event-id")
        return await event_stream(self._hosting, _id(request), last)

    async def _log(self, request: Request) -> Response:
        path, size = await self._hosting.log(_id(request))
        headers = {
            "Content-Disposition": f'attachment; filename="{path.name}"',
            "Content-Length": str(size),
        }
        kind = "application/x-ndjson"
        if request.method == "HEAD":
            return Response(media_type=kind, headers=headers)
        return StreamingResponse(file_pieces(path, size), media_type=kind, headers=headers)

    # --- leading them -----------------------------------------------------------------------------

    async def _steer(self, request: Request) -> Response:
        return await self._say(request, later=False)

    async def _follow_up(self, request: Request) -> Response:
        return await self._say(request, later=True)

    async def _say(self, request: Request, *, later: bool) -> Response:
        text = text_of(await read_object(request), "text")
        self._hosting.live(_id(request)).say(text, later=later)
        return Response(status_code=202)

    async def _abort(self, request: Request) -> Response:
        self._hosting.live(_id(request)).abort()
        return Response(status_code=202)

    async def _answer(self, request: Request) -> Response:
        body = await read_object(request)
        fields(body, {"answer": str}, ("answer",))
        questions = self._hosting.live(_id(request)).questions
        questions.answer(request.path_params["question"], body["answer"])
        return Response(status_code=204)


def _id(request: Request) -> str:
    run_id: str = request.path_params["id"]
    return run_id


def _part(request: Request) -> tuple[str, int]:
    """Which part of the list is wanted: before which run, and how much of it."""
    before = request.query_params.get("before")
    limit = request.query_params.get("limit", str(_LISTED))
    if before is not None and not RUN_ID.fullmatch(before):
        raise Refusal(422, "invalid_query", "before has to be the id of a run")
    if not re.fullmatch("[0-9]{1,3}", limit) or not 1 <= int(limit) <= _MOST_LISTED:
        raise Refusal(422, "invalid_query", f"limit has to be a number from 1 to {_MOST_LISTED}")
    return before or "", int(limit)
