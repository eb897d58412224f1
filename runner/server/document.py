"""The description of the server's API, as a document of OpenAPI 3.1.

Source: https://spec.openapis.org/oas/v3.1.1.html.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runner.api.telling import runner_version
from runner.server.question import ANSWERS

_Object = dict[str, Any]

_NULLABLE_NUMBER = {"type": ["number", "null"]}
_RUN_ID = {"type": "string", "pattern": "^[0-9a-z]{12}$"}
_STATUSES = [
    *("starting", "running", "ok", "failed", "error", "limit", "denied", "aborted"),
    "interrupted",
]

_QUESTION = {
    "type": "object",
    "required": ["id", "kind", "text"],
    "properties": {
        "id": {"type": "string"},
        "kind": {"enum": ["permission", "question"]},
        "text": {
            "type": "string",
            "description": "The question; of a permission what the call would change, if known.",
        },
        "tool_name": {"type": "string"},
        "tool_call_id": {"type": "string"},
        "arguments": {"description": "What the tool is called with."},
    },
}

_RUN = {
    "type": "object",
    "required": ["id", "spec", "status", "live", "started_at", "questions"],
    "properties": {
        "id": _RUN_ID,
        "spec": {"type": "string"},
        "status": {
            "enum": _STATUSES,
            "description": "`interrupted`: its log has no end, and no run here writes it.",
        },
        "live": {"type": "boolean", "description": "Whether it goes on."},
        "started_at": {"type": "string"},
        "questions": {"type": "array", "items": {"$ref": "#/components/schemas/Question"}},
        "exit_code": {"type": "integer"},
        "turns": {"type": "integer"},
        "tool_calls": {"type": "integer"},
        "cost_usd": _NULLABLE_NUMBER,
        "seconds": _NULLABLE_NUMBER,
        "error": {"type": ["string", "null"]},
        "text": {"type": "string"},
        "output": {"description": "The parsed output, where the spec declares one."},
        "usage": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
}

_SPEC = {
    "type": "object",
    "required": ["name", "description", "inputs", "asks_for_prompt"],
    "properties": {
        "name": {"type": "string"},
        "description": {"type": "string"},
        "inputs": {"type": "object", "description": "The JSON Schema of its inputs."},
        "asks_for_prompt": {"type": "boolean"},
    },
}

_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
        }
    },
}

_FRAME = {
    "type": "object",
    "description": "One event of the stream.",
    "properties": {
        "id": {"type": "string", "pattern": "^[0-9]+$"},
        "event": {"enum": ["message", "questions"]},
        "data": {
            "type": "string",
            "contentMediaType": "application/json",
            "description": "A line of the log, as schemas/log.schema.json says, or all questions.",
        },
    },
}

_REFUSALS = {
    400: "What was sent is not understood.",
    401: "The token is missing, or another one.",
    403: "It was asked for by a page of another origin.",
    404: "There is no such thing.",
    409: "The run has ended.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    421: "The server is not called like that.",
    422: "What was sent is not what is needed.",
    429: "As many runs go on as are allowed; see Retry-After.",
    503: "The server is stopping, or has too many readers; see Retry-After.",
}


def document(requests: Sequence[_Object]) -> _Object:
    """The document.

    Args:
        requests: For each spec the JSON Schema of what starts a run of it.
    """
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "pi-run",
            "version": runner_version(),
            "description": "Start runs of specs, watch them and lead them.",
        },
        "security": [{"token": []}],
        "paths": _paths(requests),
        "components": {
            "schemas": {"Run": _RUN, "Question": _QUESTION, "Spec": _SPEC, "Error": _ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _paths(requests: Sequence[_Object]) -> _Object:
    of_run = [_parameter("id", _RUN_ID)]
    return {
        "/specs": {
            "get": _operation(
                "list_specs", "The specs that can be run.", 200, _list("specs", "Spec")
            )
        },
        "/runs": {
            "get": {
                **_operation(
                    "list_runs",
                    "Runs, the newest first: those that go on, and those whose logs are there.",
                    200,
                    _list("runs", "Run", {"next": _RUN_ID}),
                    refusals=(422,),
                ),
                "parameters": [
                    _parameter("before", _RUN_ID, where="query"),
                    _parameter(
                        "limit",
                        {"type": "integer", "minimum": 1, "maximum": 200, "default": 50},
                        where="query",
                    ),
                ],
            },
            "post": _operation(
                "start_run",
                "Start a run of a spec.",
                201,
                _ref("Run"),
                body={"oneOf": list(requests)} if requests else {"not": {}},
                refusals=(429, 503),
            ),
        },
        "/runs/{id}": {
            "parameters": of_run,
            "get": _operation(
                "get_run", "A run, and what it came to.", 200, _ref("Run"), refusals=(404,)
            ),
        },
        "/runs/{id}/events": {"parameters": of_run, "get": _events()},
        "/runs/{id}/log": {
            "parameters": of_run,
            "get": _operation(
                "get_log",
                "Its log, as far as it is written: a JSON object a line.",
                200,
                {"type": "string"},
                media="application/x-ndjson",
                refusals=(404,),
            ),
        },
        "/runs/{id}/steer": {
            "parameters": of_run,
            "post": _leading("steer_run", "Queue a message for the next turn.", 202, _text("text")),
        },
        "/runs/{id}/follow_up": {
            "parameters": of_run,
            "post": _leading(
                "follow_up_run", "Queue a message for when it would stop.", 202, _text("text")
            ),
        },
        "/runs/{id}/abort": {
            "parameters": of_run,
            "post": _leading("abort_run", "End it in order; its log is whole.", 202, None),
        },
        "/runs/{id}/questions/{question}": {
            "parameters": [*of_run, _parameter("question", {"type": "string", "minLength": 1})],
            "post": _leading(
                "answer_question",
                f"Answer what it asks: a permission with {' or '.join(ANSWERS)}.",
                204,
                _text("answer", least=0),
            ),
        },
    }


def _events() -> _Object:
    operation = _operation(
        "watch_run",
        "Its events as they come, from the first one or the one after Last-Event-ID: each with "
        "its `seq` as the id and the log's line as data. An event `questions`, which has no id, "
        "tells all that the run asks now. The stream ends with the run.",
        200,
        _FRAME,
        media="text/event-stream",
        refusals=(400, 404, 503),
    )
    number = {"type": "string", "pattern": "^[0-9]{1,15}$"}
    operation["parameters"] = [_parameter("Last-Event-ID", number, where="header")]
    operation["responses"]["204"] = {"description": "It has ended, and no event is left."}
    return operation


def _leading(name: str, summary: str, status: int, body: _Object | None) -> _Object:
    return _operation(name, summary, status, None, body=body, refusals=(404, 409), changes=True)


def _operation(
    name: str,
    summary: str,
    status: int,
    answer: _Object | None,
    *,
    body: _Object | None = None,
    media: str = "application/json",
    refusals: Sequence[int] = (),
    changes: bool = False,
) -> _Object:
    """One operation, with all that it may be answered with."""
    also = {401, 421, *refusals}
    if changes or body is not None:
        also.add(403)
    if body is not None:
        also |= {400, 413, 415, 422}
    good: _Object = {"description": "As asked."}
    if answer is not None:
        good["content"] = {media: {"schema": answer}}
    operation: _Object = {
        "operationId": name,
        "summary": summary,
        "responses": {
            str(status): good,
            **{str(code): _refusal(_REFUSALS[code]) for code in sorted(also)},
        },
    }
    if body is not None:
        content = {"application/json": {"schema": body}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _refusal(description: str) -> _Object:
    return {"description": description, "content": {"application/json": {"schema": _ref("Error")}}}


def _ref(name: str) -> _Object:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(name: str, of: str, more: _Object | None = None) -> _Object:
    properties = {name: {"type": "array", "items": _ref(of)}, **(more or {})}
    return {"type": "object", "required": [name], "properties": properties}


def _text(name: str, *, least: int = 1) -> _Object:
    return {
        "type": "object",
        "required": [name],
        "properties": {name: {"type": "string", "minLength": least}},
        "additionalProperties": False,
    }


def _parameter(name: str, schema: _Object, *, where: str = "path") -> _Object:
    return {"name": name, "in": where, "required": where == "path", "schema": schema}
